//! What was made and what is missing, counted when a scene is over.

use std::collections::HashSet;
use std::ops::AddAssign;

use sqlx::PgConnection;

use super::couriers;
use super::scene::Scene;

#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Census {
    pub(super) orders: usize,
    pub(super) orders_lost: usize,
    pub(super) charges: usize,
    pub(super) charged_twice: usize,
    pub(super) refunds: usize,
    pub(super) refunded_twice: usize,
    pub(super) mails: usize,
    pub(super) mails_lost: usize,
    pub(super) events: usize,
    pub(super) events_lost: usize,
}

/// Counts, after everything that was on its way had time to arrive, and says what must not be.
pub(super) async fn take(scene: &Scene) -> Result<(Census, Vec<String>), String> {
    scene.wake_shop();
    scene.wake_other();
    couriers::empty(scene).await?;
    let changed = scene.receiver.changed();
    if changed > 0 {
        return Err(format!("{changed} events came with other bytes than before"));
    }
    counted(scene).await.map_err(|error| error.to_string())
}

async fn counted(scene: &Scene) -> sqlx::Result<(Census, Vec<String>)> {
    let mut shop = scene.look().await;
    let mut books = scene.database.connect("provider").await;
    let orders = r#"select 'ord_' || replace(id::text, '-', '') from "order""#;
    let orders = strings(&mut shop, orders).await?;
    let orders_lost: Vec<&String> =
        scene.acknowledged.iter().filter(|order| !orders.contains(order)).collect();
    let charges = "select reference from provider.charge where status = 'succeeded'";
    let charges = strings(&mut books, charges).await?;
    let refunds = "select charge_id from provider.refund where status = 'succeeded'";
    let refunds = strings(&mut books, refunds).await?;
    let (charged_twice, refunded_twice) = (repeated(&charges), repeated(&refunds));
    let mails = strings(&mut shop, "select message_id from mail").await?;
    let came: Vec<String> =
        scene.mails.mails().iter().map(|mail| mail.header("Message-ID")).collect();
    let mails_lost: Vec<&String> = mails.iter().filter(|id| !came.contains(id)).collect();
    let events = "select distinct 'evt_' || replace(event_id::text, '-', '') from delivery";
    let events = strings(&mut shop, events).await?;
    let events_lost: Vec<&String> =
        events.iter().filter(|id| scene.receiver.times(id) == 0).collect();
    let census = Census {
        orders: scene.acknowledged.len(),
        orders_lost: orders_lost.len(),
        charges: charges.len(),
        charged_twice: charged_twice.len(),
        refunds: refunds.len(),
        refunded_twice: refunded_twice.len(),
        mails: mails.len(),
        mails_lost: mails_lost.len(),
        events: events.len(),
        events_lost: events_lost.len(),
    };
    let wrong = [
        ("orders are lost", orders_lost),
        ("orders are charged twice", charged_twice),
        ("charges are refunded twice", refunded_twice),
        ("mails are lost", mails_lost),
        ("events are lost", events_lost),
    ];
    let wrong = wrong.into_iter().filter(|(_, which)| !which.is_empty());
    Ok((census, wrong.map(|(what, which)| format!("{what}: {which:?}")).collect()))
}

/// Each of those that are there more than once.
fn repeated(all: &[String]) -> Vec<&String> {
    let mut seen = HashSet::new();
    all.iter().filter(|one| !seen.insert(*one)).collect()
}

async fn strings(conn: &mut PgConnection, statement: &'static str) -> sqlx::Result<Vec<String>> {
    sqlx::query_scalar(statement).fetch_all(conn).await
}

impl AddAssign for Census {
    fn add_assign(&mut self, other: Self) {
        self.orders += other.orders;
        self.orders_lost += other.orders_lost;
        self.charges += other.charges;
        self.charged_twice += other.charged_twice;
        self.refunds += other.refunds;
        self.refunded_twice += other.refunded_twice;
        self.mails += other.mails;
        self.mails_lost += other.mails_lost;
        self.events += other.events;
        self.events_lost += other.events_lost;
    }
}
