//! What the schema refuses by itself.

use crate::app::TestApp;

/// Unique indexes with a column that may be empty, and why two empty ones are no duplicate.
const MAY_BE_EMPTY: [(&str, &str, &str); 5] = [
    ("account_email_key", "email", "a guest has none, and is told apart by a cookie"),
    ("account_made_by_key", "key", "a guest is made by no request"),
    ("account_made_by_key", "made_by", "a guest is made by no request"),
    ("order_cart_id_key", "cart_id", "an order by the API comes from no cart"),
    ("refund_provider_refund_id_key", "provider_refund_id", "not known before it is made"),
];

/// An empty value is equal to nothing, so a unique index with one in it stops no duplicate.
#[tokio::test]
async fn no_guard_against_duplicates_has_an_empty_value_in_it() {
    let app = TestApp::start().await;
    let mut conn = app.database.connect().await;
    let found: Vec<(String, String)> = sqlx::query_as(
        "select c.relname::text, a.attname::text
         from pg_index i
         join pg_class c on c.oid = i.indexrelid
         join pg_namespace n on n.oid = c.relnamespace and n.nspname = 'public'
         join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any (i.indkey)
         where i.indisunique and not i.indnullsnotdistinct and not a.attnotnull
         order by 1, 2",
    )
    .fetch_all(&mut conn)
    .await
    .unwrap();
    let found: Vec<(&str, &str)> = found.iter().map(|(i, c)| (i.as_str(), c.as_str())).collect();
    assert_eq!(found, MAY_BE_EMPTY.map(|(index, column, _)| (index, column)));
    app.finish().await;
}
