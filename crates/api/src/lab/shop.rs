//! The tools a guard works with: the provider, Postgres, Redis. Each says what it does, as the
//! product's own code does.

use std::fmt::Display;

use deadpool_redis::redis::AsyncCommands as _;
use domain::{ChargeOutcome, Currency, Money};
use serde::{Deserialize, Serialize};
use sqlx::Row as _;
use uuid::Uuid;

use crate::app::App;
use crate::provider::client::{Answer as Provider, ChargeRequest};

/// One bell.
pub(super) const PRICE: i64 = 4200;

/// A press of Pay, as it arrives.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Purchase {
    pub(super) run: String,
    pub(super) customer: u32,
    /// 0: one bell. 1: another cart, of two.
    pub(super) cart: u32,
    pub(super) key: String,
    pub(super) card: String,
    /// Whose keys these are, where accounts count.
    pub(super) account: Uuid,
    /// After a decline the form belongs to an order that exists.
    pub(super) order: Option<String>,
}

impl Purchase {
    pub(super) fn quantity(&self) -> i64 {
        i64::from(self.cart) + 1
    }

    pub(super) fn amount(&self) -> Money {
        let dollars: Currency = "USD".parse().expect("the dollar is a currency");
        Money::new(self.quantity() * PRICE, dollars)
    }
}

/// What a press is told.
pub(super) type Answer = Result<Paid, Refused>;

/// The goods are on their way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Paid {
    pub(super) order: String,
    pub(super) charge: String,
    /// Which cart the answer is about.
    pub(super) cart: u32,
    /// An answer that was given before.
    pub(super) again: bool,
}

/// Why there is nothing to send.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Refused {
    Declined,
    /// Declined, and there is an order that can still be paid.
    DeclinedFor(String),
    InProgress,
    KeyReused,
    /// Paid under this key before; here is the link.
    PaidBefore,
    Other(String),
}

impl Paid {
    pub(super) fn now(order: String, charge: String, purchase: &Purchase) -> Self {
        Self { order, charge, cart: purchase.cart, again: false }
    }
}

impl Refused {
    pub(super) fn broken(error: impl Display) -> Self {
        Self::Other(error.to_string())
    }

    pub(super) fn about(self, order: &str) -> Self {
        match self {
            Self::Declined => Self::DeclinedFor(order.to_owned()),
            other => other,
        }
    }
}

/// An answer that is kept to be given again.
pub(super) struct Kept(Answer);

impl Kept {
    pub(super) fn again(self) -> Answer {
        self.0.map(|paid| Paid { again: true, ..paid })
    }

    fn read(text: &str) -> Result<Self, Refused> {
        serde_json::from_str(text).map(Self).map_err(Refused::broken)
    }
}

/// What inserting a row first came to.
pub(super) enum Row {
    Mine,
    Done(Kept),
    Processing,
}

/// One server's tools for one run.
pub(super) struct Shop {
    pub(super) app: App,
    pub(super) redis: Option<deadpool_redis::Pool>,
    pub(super) run: String,
}

/// Says what is about to happen, or what came back.
macro_rules! flow {
    ($step:literal, $with:literal, $does:literal $(, $name:ident = $value:expr)*) => {
        tracing::info!(target: "payonce::flow", step = $step, with = $with, does = $does $(, $name = $value)*)
    };
}

impl Shop {
    pub(super) fn sku(&self, purchase: &Purchase) -> String {
        sku(&purchase.run)
    }

    /// Charges the card: whoever calls this twice charges twice.
    pub(super) async fn charge(&self, purchase: &Purchase) -> Result<String, Refused> {
        let request = ChargeRequest {
            // No guard but Payonce tells the provider that two charges are one.
            provider_key: format!("{}.{}", purchase.run, hex::encode(rand::random::<[u8; 8]>())),
            reference: format!("{}.{}.{}", purchase.run, purchase.customer, purchase.cart),
            amount: purchase.amount(),
            payment_method: purchase.card.clone(),
        };
        tracing::info!(target: "payonce::flow", step = "charge", amount = %request.amount);
        match self.app.provider.charge(&request).await {
            Provider::Settled(ChargeOutcome::Succeeded { charge_id }) => {
                tracing::info!(target: "payonce::flow", step = "charged", outcome = "succeeded");
                Ok(charge_id)
            }
            Provider::Settled(_) => {
                tracing::info!(target: "payonce::flow", step = "charged", outcome = "declined");
                Err(Refused::Declined)
            }
            other => Err(Refused::Other(format!("{other:?}"))),
        }
    }

    /// Order, stock and mail in one transaction.
    pub(super) async fn order(&self, purchase: &Purchase, charge: &str) -> Result<String, Refused> {
        self.write_order(purchase, charge, None).await
    }

    /// The same under a unique key.
    pub(super) async fn order_once(
        &self,
        purchase: &Purchase,
        charge: &str,
    ) -> Result<String, Refused> {
        let key = format!("{}.{}", purchase.customer, purchase.key);
        self.write_order(purchase, charge, Some(&key)).await
    }

    async fn write_order(
        &self,
        purchase: &Purchase,
        charge: &str,
        unique_key: Option<&str>,
    ) -> Result<String, Refused> {
        flow!("call", "postgres", "insert-order");
        let mut tx = self.app.db.begin().await?;
        let order: i64 = sqlx::query(
            "insert into lab_order (run, customer, cart, charge_id, unique_key)
             values ($1, $2, $3, $4, $5) returning id",
        )
        .bind(&purchase.run)
        .bind(purchase.customer.cast_signed())
        .bind(purchase.cart.cast_signed())
        .bind(charge)
        .bind(unique_key)
        .fetch_one(&mut *tx)
        .await
        .inspect_err(|_| flow!("back", "postgres", "taken"))?
        .try_get("id")?;
        sqlx::query("update product set stock = stock - $2 where sku = $1")
            .bind(self.sku(purchase))
            .bind(purchase.quantity())
            .execute(&mut *tx)
            .await?;
        sqlx::query("insert into lab_mail (run, customer, order_id) values ($1, $2, $3)")
            .bind(&purchase.run)
            .bind(purchase.customer.cast_signed())
            .bind(order)
            .execute(&mut *tx)
            .await?;
        tx.commit().await?;
        Ok(order.to_string())
    }

    pub(super) async fn redis_get(&self, key: &str) -> Result<Option<Kept>, Refused> {
        flow!("call", "redis", "get");
        let mut redis = self.redis().await.inspect_err(|_| flow!("back", "redis", "gone"))?;
        let kept: Option<String> = redis.get(self.redis_name(key)).await?;
        if kept.is_some() {
            flow!("back", "redis", "found");
        } else {
            flow!("back", "redis", "nothing");
        }
        kept.map(|text| Kept::read(&text)).transpose()
    }

    pub(super) async fn redis_set(
        &self,
        key: &str,
        answer: &Answer,
        life_seconds: u64,
    ) -> Result<(), Refused> {
        flow!("call", "redis", "set");
        let text = serde_json::to_string(answer).map_err(Refused::broken)?;
        self.redis().await?.set_ex::<_, _, ()>(self.redis_name(key), text, life_seconds).await?;
        Ok(())
    }

    pub(super) async fn look_up(&self, key: &str) -> Result<Option<Kept>, Refused> {
        flow!("call", "postgres", "select-key");
        let mut conn = self.app.db.connection().await?;
        let found: sqlx::Result<Option<String>> =
            sqlx::query_scalar("select answer from lookup_key where run = $1 and key = $2")
                .bind(&self.run)
                .bind(key)
                .fetch_optional(&mut *conn)
                .await;
        let found = conn.end(found)?;
        if found.is_some() {
            flow!("back", "postgres", "found");
        } else {
            flow!("back", "postgres", "no-row");
        }
        found.map(|text| Kept::read(&text)).transpose()
    }

    pub(super) async fn insert_key(&self, key: &str, answer: &Answer) -> Result<(), Refused> {
        flow!("call", "postgres", "insert-key");
        let text = serde_json::to_string(answer).map_err(Refused::broken)?;
        let mut conn = self.app.db.connection().await?;
        let inserted = sqlx::query(
            "insert into lookup_key (run, key, answer) values ($1, $2, $3) on conflict do nothing",
        )
        .bind(&self.run)
        .bind(key)
        .bind(text)
        .execute(&mut *conn)
        .await;
        conn.end(inserted)?;
        Ok(())
    }

    pub(super) async fn insert_processing(&self, key: &str) -> Result<Row, Refused> {
        flow!("call", "postgres", "insert-processing");
        let mut conn = self.app.db.connection().await?;
        let inserted = sqlx::query(
            "insert into processing_key (run, key) values ($1, $2) on conflict do nothing",
        )
        .bind(&self.run)
        .bind(key)
        .execute(&mut *conn)
        .await?;
        if inserted.rows_affected() == 1 {
            conn.done();
            flow!("back", "postgres", "first");
            return Ok(Row::Mine);
        }
        let found: (String, Option<String>) =
            sqlx::query_as("select state, answer from processing_key where run = $1 and key = $2")
                .bind(&self.run)
                .bind(key)
                .fetch_one(&mut *conn)
                .await?;
        conn.done();
        match found {
            (_, Some(answer)) => {
                flow!("back", "postgres", "found");
                Ok(Row::Done(Kept::read(&answer)?))
            }
            (_, None) => {
                flow!("back", "postgres", "still-processing");
                Ok(Row::Processing)
            }
        }
    }

    pub(super) async fn set_charged(&self, key: &str) -> Result<(), Refused> {
        flow!("call", "postgres", "set-charged");
        self.set_state(key, "charged", None).await
    }

    pub(super) async fn set_done(&self, key: &str, answer: &Answer) -> Result<(), Refused> {
        flow!("call", "postgres", "set-done");
        let text = serde_json::to_string(answer).map_err(Refused::broken)?;
        self.set_state(key, "done", Some(text)).await
    }

    async fn set_state(
        &self,
        key: &str,
        state: &str,
        answer: Option<String>,
    ) -> Result<(), Refused> {
        let mut conn = self.app.db.connection().await?;
        let set = sqlx::query(
            "update processing_key set state = $3, answer = $4 where run = $1 and key = $2",
        )
        .bind(&self.run)
        .bind(key)
        .bind(state)
        .bind(answer)
        .execute(&mut *conn)
        .await;
        conn.end(set)?;
        Ok(())
    }

    async fn redis(&self) -> Result<deadpool_redis::Connection, Refused> {
        let pool = self.redis.as_ref().ok_or_else(|| Refused::Other("no Redis".to_owned()))?;
        pool.get().await.map_err(Refused::broken)
    }

    fn redis_name(&self, key: &str) -> String {
        format!("lab:{}:{key}", self.run)
    }
}

/// What a run sells.
pub(super) fn sku(run: &str) -> String {
    format!("bell-{run}")
}

impl From<sqlx::Error> for Refused {
    fn from(error: sqlx::Error) -> Self {
        match crate::db::violated(&error) {
            Some("lab_order_unique_key") => Self::Other("order exists".to_owned()),
            _ => Self::broken(error),
        }
    }
}

impl From<deadpool_redis::redis::RedisError> for Refused {
    fn from(error: deadpool_redis::redis::RedisError) -> Self {
        Self::broken(error)
    }
}
