//! Named points at which a test may make this process fail, and known mistakes it may plant.
//! Compiled in with the feature `faults` only; otherwise every point is nothing.
//!
//! | point | where |
//! |---|---|
//! | `before_order`, `order_committed` | around the one statement that places an order |
//! | `effects_written`, `record_inserted` | inside the transaction of any other operation of one phase |
//! | `operation_committed` | effects and reply are stored, nobody was told |
//! | `before_claim` | the order was read, the key is not claimed yet |
//! | `claimed`, `before_intent_commit` | inside the intent's transaction |
//! | `intent_committed` | nothing was sent yet |
//! | `before_send`, `after_send`, `answered` | around a call to the provider; outside any transaction |
//! | `before_settle_commit` | inside the settling transaction |
//! | `settle_committed` | money and reply are stored, nobody was told |
//! | `before_release` | the provider took nothing, the key is to be freed |
//! | `refund_…` | the same steps of a refund |
//! | `event_marked`, `before_event_commit`, `event_committed` | taking in an event of the provider |
//! | `mail_…`, `delivery_…`: `claimed`, `sent`, `noted` | a mail or an event on its way out |
//! | `before_cache_write`, `after_cache_write` | around the write of a hint |

#[cfg(feature = "faults")]
mod armed;

#[cfg(feature = "faults")]
pub use armed::{arm, carried, defect, for_request, point};

#[cfg(not(feature = "faults"))]
pub use nothing::{carried, defect, for_request, point};

/// A point of work that nobody waits for: it cannot be made to fail there, only to stop or to wait.
pub async fn at(name: &'static str) {
    let _ = point(name).await;
}

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
