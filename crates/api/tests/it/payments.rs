//! Payments: one key, at most one charge, and the truth when nobody knows yet.

mod cards;
mod copies;
mod unknown;

use crate::app::{Response, TestApp};

fn count(answers: &[Response], status: u16) -> usize {
    answers.iter().filter(|answer| answer.status == status).count()
}

async fn status(app: &TestApp, order: &str) -> (String, Option<String>) {
    let mut conn = app.database.connect().await;
    let id = uuid::Uuid::parse_str(order.trim_start_matches("ord_")).unwrap();
    sqlx::query_as(
        r#"select o.status, p.status from "order" o
           left join payment p on p.id = o.live_payment_id where o.id = $1"#,
    )
    .bind(id)
    .fetch_one(&mut conn)
    .await
    .unwrap()
}
