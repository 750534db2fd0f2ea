//! Named points at which a test may make this process fail, and known mistakes it may plant.
//! Compiled in with the feature `faults` only; otherwise every point is nothing.
//!
//! | point | where |
//! |---|---|
//! | `before_order`, `order_committed` | around the one statement that places an order |
//! | `before_claim` | the order was read, the key is not claimed yet |
//! | `claimed`, `before_intent_commit` | inside the intent's transaction |
//! | `intent_committed` | nothing was sent yet |
//! | `before_send`, `after_send`, `answered` | around a call to the provider; outside any transaction |
//! | `before_settle_commit` | inside the settling transaction |
//! | `settle_committed` | money and reply are stored, nobody was told |
//! | `before_cache_write`, `after_cache_write` | around the write of a hint |

#[cfg(feature = "faults")]
mod armed;

#[cfg(feature = "faults")]
pub use armed::{arm, carried, defect, for_request, point};

#[cfg(not(feature = "faults"))]
pub use nothing::{carried, defect, for_request, point};

#[cfg(not(feature = "faults"))]
mod nothing {
    use actix_web::http::header::HeaderMap;

    use crate::operation::Stop;

    /// Passes.
    ///
    /// # Errors
    /// None.
    #[expect(clippy::unused_async, reason = "the same signature as with faults")]
    pub async fn point(_name: &'static str) -> Result<(), Stop> {
        Ok(())
    }

    /// The work as it is.
    pub fn for_request<F: Future>(_headers: &HeaderMap, work: F) -> F {
        work
    }

    /// The task as it is.
    pub fn carried<F: Future>(task: F) -> F {
        task
    }

    /// Never.
    pub const fn defect(_name: &str) -> bool {
        false
    }
}
