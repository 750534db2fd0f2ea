//! What the shop sells: names and prices in process, stock in the database.

pub mod demo;
pub mod movement;
pub mod read;
pub mod sql;

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use domain::{Money, Offer, Sku};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use utoipa::ToSchema;

use crate::money::MoneyBody;

/// A product as the catalogue keeps it.
#[derive(Debug, Clone)]
pub struct Listed {
    /// The row's number, by which stock is locked in order.
    pub id: i32,
    /// What an order line takes over.
    pub offer: Offer,
}

/// Names and prices of all products. They change rarely; the guarded update of an order checks
/// the price it was made with, so an outdated copy sells nothing at an old price.
pub struct Catalogue {
    listed: RwLock<Arc<HashMap<Sku, Listed>>>,
}

impl Catalogue {
    /// Reads all products.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn load(conn: &mut PgConnection) -> sqlx::Result<Self> {
        Ok(Self { listed: RwLock::new(Arc::new(sql::listed(conn).await?)) })
    }

    /// Reads all products again. Returns what was read, whoever else reads at the same time.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn reload(&self, conn: &mut PgConnection) -> sqlx::Result<Arc<HashMap<Sku, Listed>>> {
        let fresh = Arc::new(sql::listed(conn).await?);
        *self.listed.write().expect("no reader panics") = Arc::clone(&fresh);
        Ok(fresh)
    }

    /// All products, as of one moment.
    pub fn listed(&self) -> Arc<HashMap<Sku, Listed>> {
        Arc::clone(&self.listed.read().expect("no writer panics"))
    }
}

/// A product as rows have it.
#[derive(Debug, Clone)]
pub struct Product {
    /// Its name in requests.
    pub sku: Sku,
    /// Its name for people.
    pub name: String,
    /// One line.
    pub description: String,
    /// Of one piece.
    pub price: Money,
    /// What can still be sold.
    pub stock: i64,
}

/// A product on the wire.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Product)]
pub struct ProductBody {
    /// Its name in requests.
    #[schema(value_type = String, example = "counter-bell")]
    pub sku: Sku,
    /// Its name for people.
    #[schema(example = "Counter bell")]
    pub name: String,
    /// One line.
    #[schema(example = "Brass. Rings once per press.")]
    pub description: String,
    /// Of one piece.
    pub price: MoneyBody,
    /// What can still be sold.
    #[schema(example = 120, minimum = 0)]
    pub stock: i64,
}

impl From<Product> for ProductBody {
    fn from(product: Product) -> Self {
        let Product { sku, name, description, price, stock } = product;
        Self { sku, name, description, price: price.into(), stock }
    }
}
