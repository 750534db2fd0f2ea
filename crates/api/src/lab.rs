//! The double-click lab: what popular half-measures do under real faults, read off real tables.
//!
//! A lab has a database and a provider of its own, two servers (API A and API B) on ports of
//! their own, and, where a server has to die, a third in a process of its own. Nothing in it can
//! be reached from the shop's addresses, and nothing it does shows up in the shop's books. It
//! observes and does not pretend: the servers emit ordinary `tracing` events, from which the
//! diagrams are drawn, and every verdict is read from the tables and the provider's ledger.

mod events;
mod guards;
mod ledger;
mod server;
mod shop;
mod world;

mod browser;
mod faults;
mod fragile;

pub mod child;
pub mod diagram;
pub mod matrix;
pub mod run;
pub mod spec;
pub mod verdict;
pub mod words;

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{OnceCell, Semaphore};

pub use browser::{Press, Saw};
pub use events::{Event, listener};
pub use guards::source;
pub use run::{Run, Runs, Wanted};
pub use spec::{Fault, Guard, Spec};
use world::World;

/// Runs at once; more wait for their turn.
const RUNS_AT_ONCE: usize = 6;

/// What a lab is made from.
#[derive(Debug, Clone)]
pub struct Recipe {
    /// The server on which the lab makes a database of its own.
    pub database_url: String,
    /// Without one, the guard that needs it cannot be tried.
    pub redis_url: Option<String>,
    /// The `payonce` program: the server that has to die is a process of its own.
    pub program: PathBuf,
    /// How many customers are a crowd.
    pub crowd: usize,
}

/// The lab of this process. Cloning shares it. It is built when it is first asked for something.
#[derive(Clone)]
pub struct Lab(Arc<Inner>);

struct Inner {
    recipe: Recipe,
    world: OnceCell<World>,
    slots: Semaphore,
    runs: Runs,
    matrix: matrix::Matrix,
}

impl Lab {
    /// A lab that costs nothing until somebody enters it.
    pub fn new(recipe: Recipe) -> Self {
        Self(Arc::new(Inner {
            recipe,
            world: OnceCell::new(),
            slots: Semaphore::new(RUNS_AT_ONCE),
            runs: Runs::default(),
            matrix: matrix::Matrix::default(),
        }))
    }

    /// The runs that are remembered.
    pub fn runs(&self) -> &Runs {
        &self.0.runs
    }

    /// All guards under all faults.
    pub fn matrix(&self) -> &matrix::Matrix {
        &self.0.matrix
    }

    /// Whether the guard that needs Redis can be tried.
    pub fn has_redis(&self) -> bool {
        self.0.recipe.redis_url.is_some()
    }

    /// Ends what the lab started. Its database stays until the next lab begins.
    pub async fn stop(&self) {
        if let Some(world) = self.0.world.get() {
            world.stop().await;
        }
    }

    async fn world(&self) -> anyhow::Result<&World> {
        self.0
            .world
            .get_or_try_init(|| async {
                let recipe = self.0.recipe.clone();
                let runtime = tokio::runtime::Handle::current();
                // Making a database takes a moment; it has a thread to itself.
                tokio::task::spawn_blocking(move || runtime.block_on(World::open(&recipe))).await?
            })
            .await
    }
}
