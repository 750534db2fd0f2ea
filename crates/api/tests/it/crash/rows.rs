//! The rows of the matrix: every operation, every point of it, and the faults that say something there.

use Deed::{
    Account, Cancel, Delivery, Endpoint, EndpointDeletion, Event, Mail, Movement, Order, Payment,
    Receipt, Refund, Replay,
};
use Fault::{AckLost, DatabaseRestart, Kill, RedisFlush, Reset, Stop};

/// Where something goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) name: &'static str,
    pub(crate) deed: Deed,
    pub(crate) faults: &'static [Fault],
}

/// What the server is doing there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Deed {
    /// Placing an order.
    Order,
    /// Paying.
    Payment,
    /// Replaying a payment in a process that does not remember it.
    Replay,
    /// Giving everything back, goods and all.
    Refund,
    /// Making an account.
    Account,
    /// Correcting stock.
    Movement,
    /// Cancelling an order.
    Cancel,
    /// Asking for a receipt.
    Receipt,
    /// Making a webhook endpoint.
    Endpoint,
    /// Deleting one.
    EndpointDeletion,
    /// Taking in an event of the provider about a refund that nobody here asked for.
    Event,
    /// Sending a mail.
    Mail,
    /// Delivering an event to a merchant.
    Delivery,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fault {
    Kill,
    Reset,
    AckLost,
    DatabaseRestart,
    RedisFlush,
    Stop,
}

pub(crate) const FAULTS: [Fault; 6] = [Stop, DatabaseRestart, Kill, AckLost, Reset, RedisFlush];

const fn point(deed: Deed, name: &'static str, faults: &'static [Fault]) -> Point {
    Point { name, deed, faults }
}

/// The three points of an operation of one phase: in its transaction, at the end of it, after it.
/// A process that stops inside a transaction is told apart from others at one operation only: it
/// costs five seconds, the time after which the database undoes it.
const INSIDE: &[Fault] = &[Kill];
const AT_THE_END: &[Fault] = &[Kill, AckLost, DatabaseRestart, Reset];
const AT_THE_END_AND_STOP: &[Fault] = &[Kill, AckLost, DatabaseRestart, Reset, Stop];
const AFTER: &[Fault] = &[Kill, Reset, RedisFlush, Stop];
/// What leaves by itself has no client who could hang up; a receiver can.
const CLAIMED: &[Fault] = &[Kill, AckLost, DatabaseRestart, Stop];
const CLAIMED_AND_RESET: &[Fault] = &[Kill, AckLost, DatabaseRestart, Reset, Stop];
const SENT: &[Fault] = &[Kill, AckLost, DatabaseRestart, Stop];
const NOTED: &[Fault] = &[Kill, DatabaseRestart, Stop];

pub(crate) const POINTS: [Point; 49] = [
    point(Order, "before_order", &FAULTS),
    point(Order, "order_committed", &FAULTS),
    point(Payment, "before_claim", &FAULTS),
    point(Payment, "claimed", &FAULTS),
    point(Payment, "before_intent_commit", &FAULTS),
    point(Payment, "intent_committed", &FAULTS),
    point(Payment, "before_send", &FAULTS),
    point(Payment, "after_send", &FAULTS),
    point(Payment, "answered", &FAULTS),
    point(Payment, "before_settle_commit", &FAULTS),
    point(Payment, "settle_committed", &FAULTS),
    point(Replay, "before_cache_write", &FAULTS),
    point(Replay, "after_cache_write", &FAULTS),
    point(Refund, "refund_before_claim", &FAULTS),
    point(Refund, "refund_claimed", &FAULTS),
    point(Refund, "refund_before_intent_commit", &FAULTS),
    point(Refund, "refund_intent_committed", &FAULTS),
    point(Refund, "refund_before_send", &FAULTS),
    point(Refund, "refund_after_send", &FAULTS),
    point(Refund, "refund_answered", &FAULTS),
    point(Refund, "refund_before_settle_commit", &FAULTS),
    point(Refund, "refund_settle_committed", &FAULTS),
    point(Account, "effects_written", INSIDE),
    point(Account, "record_inserted", AT_THE_END),
    point(Account, "operation_committed", AFTER),
    point(Movement, "effects_written", INSIDE),
    point(Movement, "record_inserted", AT_THE_END),
    point(Movement, "operation_committed", AFTER),
    point(Cancel, "effects_written", INSIDE),
    point(Cancel, "record_inserted", AT_THE_END_AND_STOP),
    point(Cancel, "operation_committed", AFTER),
    point(Receipt, "effects_written", INSIDE),
    point(Receipt, "record_inserted", AT_THE_END),
    point(Receipt, "operation_committed", AFTER),
    point(Endpoint, "effects_written", INSIDE),
    point(Endpoint, "record_inserted", AT_THE_END),
    point(Endpoint, "operation_committed", AFTER),
    point(EndpointDeletion, "effects_written", INSIDE),
    point(EndpointDeletion, "record_inserted", AT_THE_END),
    point(EndpointDeletion, "operation_committed", AFTER),
    point(Event, "event_marked", &FAULTS),
    point(Event, "before_event_commit", &FAULTS),
    point(Event, "event_committed", &FAULTS),
    point(Mail, "mail_claimed", CLAIMED),
    point(Mail, "mail_sent", SENT),
    point(Mail, "mail_noted", NOTED),
    point(Delivery, "delivery_claimed", CLAIMED_AND_RESET),
    point(Delivery, "delivery_sent", SENT),
    point(Delivery, "delivery_noted", NOTED),
];

impl Fault {
    pub(crate) fn title(self) -> &'static str {
        match self {
            Kill => "SIGKILL",
            Reset => "TCP reset",
            AckLost => "commit answer lost",
            DatabaseRestart => "database restart",
            RedisFlush => "Redis flush",
            Stop => "SIGSTOP past the lease",
        }
    }

    pub(super) fn hits_database(self) -> bool {
        matches!(self, AckLost | DatabaseRestart)
    }
}

impl Deed {
    /// As the table has it.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Order => "order",
            Payment => "payment",
            Replay => "replay of a payment",
            Refund => "refund with goods",
            Account => "account",
            Movement => "stock movement",
            Cancel => "cancel",
            Receipt => "receipt",
            Endpoint => "webhook endpoint",
            EndpointDeletion => "deletion of one",
            Event => "event of the provider",
            Mail => "mail",
            Delivery => "event for a merchant",
        }
    }

    /// The first word of a key.
    pub(super) fn word(self) -> &'static str {
        self.title().split(' ').next().unwrap()
    }

    pub(super) fn is_about_an_order(self) -> bool {
        matches!(self, Payment | Replay | Refund | Cancel | Receipt | Event)
    }

    pub(super) fn is_courier(self) -> bool {
        matches!(self, Mail | Delivery)
    }
}
