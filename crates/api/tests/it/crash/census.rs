//! What was made and what is missing, counted when a scene is over.

use std::ops::AddAssign;

use sqlx::PgConnection;

use super::couriers;
use super::scene::Scene;

#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Census {
    pub(super) orders: usize,
    pub(super) orders_lost: usize,
    pub(super) charges: i64,
    pub(super) charged_twice: i64,
    pub(super) refunds: i64,
    pub(super) refunded_twice: i64,
    pub(super) mails: usize,
    pub(super) mails_lost: usize,
    pub(super) events: usize,
    pub(super) events_lost: usize,
}

/// Counts, after everything that was on its way had time to arrive.
pub(super) async fn take(scene: &Scene) -> Result<Census, String> {
    scene.wake_shop();
    scene.wake_other();
    couriers::empty(scene).await?;
    let changed = scene.receiver.changed();
    if changed > 0 {
        return Err(format!("{changed} events came with other bytes than before"));
    }
    counted(scene).await.map_err(|error| error.to_string())
}

async fn counted(scene: &Scene) -> sqlx::Result<Census> {
    let mut shop = scene.look().await;
    let mut books = scene.database.connect("provider").await;
    let known = strings(&mut shop, r#"select 'ord_' || replace(id::text, '-', '') from "order""#);
    let known = known.await?;
    let lost = scene.acknowledged.iter().filter(|order| !known.contains(order)).count();
    let mails = strings(&mut shop, "select message_id from mail").await?;
    let came: Vec<String> =
        scene.mails.mails().iter().map(|mail| mail.header("Message-ID")).collect();
    let events = "select distinct 'evt_' || replace(event_id::text, '-', '') from delivery";
    let events = strings(&mut shop, events).await?;
    Ok(Census {
        orders: scene.acknowledged.len(),
        orders_lost: lost,
        charges: number(
            &mut books,
            "select count(*) from provider.charge where status = 'succeeded'",
        )
        .await?,
        charged_twice: number(
            &mut books,
            "select count(*) from (select from provider.charge where status = 'succeeded'
             group by reference having count(*) > 1) as twice",
        )
        .await?,
        refunds: number(
            &mut books,
            "select count(*) from provider.refund where status = 'succeeded'",
        )
        .await?,
        refunded_twice: number(
            &mut books,
            "select count(*) from (select from provider.refund where status = 'succeeded'
             group by charge_id having count(*) > 1) as twice",
        )
        .await?,
        mails: mails.len(),
        mails_lost: mails.iter().filter(|id| !came.contains(id)).count(),
        events: events.len(),
        events_lost: events.iter().filter(|id| scene.receiver.times(id) == 0).count(),
    })
}

async fn strings(conn: &mut PgConnection, statement: &'static str) -> sqlx::Result<Vec<String>> {
    sqlx::query_scalar(statement).fetch_all(conn).await
}

async fn number(conn: &mut PgConnection, statement: &'static str) -> sqlx::Result<i64> {
    sqlx::query_scalar(statement).fetch_one(conn).await
}

impl Census {
    /// What must never be.
    pub(super) fn wrong(&self) -> bool {
        let lost = self.orders_lost + self.mails_lost + self.events_lost;
        lost > 0 || self.charged_twice > 0 || self.refunded_twice > 0
    }
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
