//! Sequence diagrams: what happened as a scene, a clock that several scenes share, and the drawing.

mod clock;
mod draw;
mod scene;

pub use clock::{Clock, PARTS};
pub use draw::{Look, draw, gutter};
pub use scene::{Arrow, Kind, Lane, Scene};

/// Text as it may stand in markup.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
