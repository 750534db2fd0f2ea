//! `/cart`: quantities are set, never added to, so that a form sent twice changes nothing twice.

use askama::Template;

use super::basket::Basket;
use super::layout::Layout;
use super::marks::Notice;

#[derive(Debug, Template)]
#[template(path = "cart.html")]
pub struct Cart {
    pub page: Layout,
    pub basket: Basket,
    pub notice: Option<Notice>,
}
