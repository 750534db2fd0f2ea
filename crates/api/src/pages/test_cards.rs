//! The test cards of the demo checkout: each stands for one way in which a provider behaves.

/// A card the shopper may choose.
#[derive(Debug)]
pub(super) struct TestCard {
    pub token: &'static str,
    pub ending: &'static str,
    pub name: &'static str,
    pub says: &'static str,
}

pub(super) static TEST_CARDS: [TestCard; 8] = [
    card("pm_card_ok", "4242", "Approves", "In a fraction of a second."),
    card("pm_card_declined", "0002", "Declined", "The bank says no. No charge."),
    card("pm_card_insufficient_funds", "9995", "No funds", "The bank says no. No charge."),
    card("pm_card_slow", "0008", "Slow", "Approves after 2 seconds."),
    card("pm_card_lost_answer", "0410", "Answer lost", "Charges, then says nothing."),
    card("pm_card_reset", "0104", "Line cut", "Charges, then the line breaks."),
    card("pm_card_down", "0503", "Provider down", "Turns every charge away."),
    card("pm_card_key_in_use", "0409", "Busy at first", "Says “wait” once, then approves."),
];

/// "card ending 4242"; a card we do not know is "your card".
pub(super) fn describe(token: &str) -> String {
    let known = TEST_CARDS.iter().find(|card| card.token == token);
    known.map_or_else(|| "your card".to_owned(), |card| format!("card ending {}", card.ending))
}

const fn card(
    token: &'static str,
    ending: &'static str,
    name: &'static str,
    says: &'static str,
) -> TestCard {
    TestCard { token, ending, name, says }
}
