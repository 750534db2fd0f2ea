//! One row for each moment at which something happened, a band for each silence. Scenes that are
//! looked at together share one clock, so equal height is equal time.

use std::collections::BTreeMap;

/// Rows stand for milliseconds; what happened within one of them has rows of its own.
pub const PARTS: i64 = 16;
/// A silence longer than this is folded.
const QUIET_MS: i64 = 20;

/// Where each moment is drawn.
#[derive(Debug, Clone)]
pub struct Clock {
    rows: BTreeMap<i64, f64>,
    pub folds: Vec<Fold>,
    pub top: f64,
    pub row: f64,
    pub end: f64,
}

/// A silence.
#[derive(Debug, Clone, Copy)]
pub struct Fold {
    pub y: f64,
    pub height: f64,
    pub ms: i64,
    /// The row it lies before.
    pub index: usize,
}

impl Clock {
    /// For these moments, `scale` times the usual size.
    pub fn new(moments: impl IntoIterator<Item = i64>, scale: f64) -> Self {
        let (row, fold, top) = (30.0 * scale, 34.0 * scale, 64.0 * scale);
        let moments: std::collections::BTreeSet<i64> = moments.into_iter().collect();
        let (mut rows, mut folds) = (BTreeMap::new(), Vec::new());
        let (mut y, mut before) = (top + row, None);
        for (index, moment) in moments.into_iter().enumerate() {
            let ms = moment / PARTS;
            if let Some(before) = before
                && ms - before > QUIET_MS
            {
                let height = fold - 12.0 * scale;
                folds.push(Fold { y: y - row * 0.32, height, ms: ms - before, index });
                y += fold;
            }
            before = Some(ms);
            rows.insert(moment, y);
            y += row;
        }
        let end = if rows.is_empty() { top + row * 7.0 } else { y - row * 0.35 };
        Self { rows, folds, top, row, end }
    }

    /// The height of a moment.
    pub fn y(&self, moment: i64) -> f64 {
        self.rows.get(&moment).copied().unwrap_or(self.end)
    }

    /// The number of a moment's row.
    pub fn index(&self, moment: i64) -> usize {
        self.rows.range(..moment).count()
    }

    /// All moments, with their heights.
    pub fn rows(&self) -> impl Iterator<Item = (i64, f64)> {
        self.rows.iter().map(|(moment, y)| (moment / PARTS, *y))
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Nothing has happened yet.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silence_is_folded_and_rows_keep_their_order() {
        let clock = Clock::new([0, 3 * PARTS, 90 * PARTS], 1.0);
        assert_eq!(clock.folds.len(), 1);
        assert_eq!(clock.folds[0].ms, 87);
        assert!(clock.y(0) < clock.y(3 * PARTS) && clock.y(3 * PARTS) < clock.folds[0].y);
        assert!(clock.folds[0].y < clock.y(90 * PARTS));
    }
}
