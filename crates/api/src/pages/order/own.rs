//! Whose order it is: its account's, and that of whoever signed in while it was being placed.

pub(in crate::pages) mod sql;

use domain::OrderId;

use crate::app::App;
use crate::orders::{self, Order};
use crate::pages::visitor::Visitor;
use crate::problem::Problem;

/// The order, if the visitor may see it. An order placed by the guest that the visitor was comes
/// along late when signing in overtook it; its cart shows whose it is.
///
/// # Errors
/// `not_found`.
pub(in crate::pages) async fn claim(
    app: &App,
    visitor: &Visitor,
    id: OrderId,
) -> Result<Order, Problem> {
    let mut conn = app.db.connection().await?;
    let mut order = orders::sql::get(&mut conn, id).await?;
    let visible = order.as_ref().is_some_and(|order| order.is_visible_to(&visitor.account));
    if order.is_some() && !visible && !visitor.is_guest() {
        sql::adopt(&mut conn, id, visitor.account.id).await?;
        order = orders::sql::get(&mut conn, id).await?;
    }
    conn.done();
    order.filter(|order| order.is_visible_to(&visitor.account)).ok_or_else(Problem::not_found)
}
