//! Demo data: ten products, a shopper and a merchant. Safe to run at every start.

use domain::AccountId;
use sqlx::PgConnection;

use crate::accounts::{self, Account, Role, password};
use crate::clock::Clock;

/// Sign in to the demo with this.
pub const PASSWORD: &str = "click-twice-pay-once";
/// Buys.
pub const SHOPPER: &str = "shopper@payonce.test";
/// Sells.
pub const MERCHANT: &str = "merchant@payonce.test";
/// Everybody knows their password, so outside the demo they are nobody, also where one was before.
pub const ACCOUNTS: [&str; 2] = [SHOPPER, MERCHANT];

/// (SKU, name, description, price, currency, stock)
const PRODUCTS: &[(&str, &str, &str, i64, &str, i64)] = &[
    ("counter-bell", "Counter bell", "Brass. Rings once per press.", 2400, "USD", 120),
    ("enamel-mug", "Enamel mug", "Two rings, one handle.", 1800, "USD", 400),
    ("order-book", "Order book", "Numbered pages, no carbon.", 1200, "USD", 630),
    ("night-lamp", "Night-shift lamp", "For the person on call.", 8900, "USD", 100),
    ("signing-pen", "Signing pen", "Writes a name, once.", 6400, "USD", 190),
    ("sencha-tin", "Sencha tin", "100 g, from Uji.", 3200, "JPY", 250),
    ("slow-kettle", "Slow kettle", "Pours when it is ready.", 5300, "EUR", 110),
    ("station-clock", "Station clock", "Stops for nobody.", 7200, "USD", 0),
    ("linen-tote", "Linen tote", "Carries two of everything.", 2250, "EUR", 300),
    ("paper-lantern", "Paper lantern", "Folds flat, lights up.", 4800, "JPY", 160),
];

/// Inserts what is missing and leaves the rest alone.
///
/// # Errors
/// Those of the database.
pub async fn insert(conn: &mut PgConnection, clock: &Clock) -> anyhow::Result<()> {
    for (sku, name, description, price, currency, stock) in PRODUCTS {
        sqlx::query(
            "insert into product (sku, name, description, price, currency, initial_stock, stock)
             values ($1, $2, $3, $4, $5, $6, $6) on conflict (sku) do nothing",
        )
        .bind(sku)
        .bind(name)
        .bind(description)
        .bind(price)
        .bind(currency)
        .bind(stock)
        .execute(&mut *conn)
        .await?;
    }
    for (email, role, name) in [(SHOPPER, Role::Shopper, "Ada"), (MERCHANT, Role::Merchant, "Mo")] {
        insert_account(conn, clock, (email, role, name)).await?;
    }
    Ok(())
}

async fn insert_account(
    conn: &mut PgConnection,
    clock: &Clock,
    (email, role, name): (&str, Role, &str),
) -> anyhow::Result<()> {
    if accounts::sql::by_email(conn, email).await?.is_some() {
        return Ok(());
    }
    let hash = password::hash(PASSWORD.to_owned()).await.map_err(|e| anyhow::anyhow!("{e}"))?;
    let account = Account {
        id: AccountId::from_uuid(clock.new_id()),
        role,
        email: Some(email.to_owned()),
        name: Some(name.to_owned()),
        created_at: clock.now(),
    };
    match accounts::sql::insert(conn, &account, &hash, None).await {
        // Two replicas may start at once.
        Err(error) if crate::db::violated(&error) == Some("account_email_key") => Ok(()),
        result => Ok(result?),
    }
}
