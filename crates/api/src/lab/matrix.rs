//! All guards under all faults, each cell by real runs, the worst of them shown.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::stream;
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::time::Instant;

use super::Lab;
use super::run::Run;
use super::spec::{Fault, Guard, Spec};

const RUNS_A_CELL: usize = 5;
/// Fewer than the lab allows, so that a visitor need not wait for the matrix.
const CELLS_AT_ONCE: usize = 4;

/// What one cell shows.
#[derive(Clone, Default)]
pub enum Cell {
    #[default]
    Queued,
    /// So many of so many.
    Running(usize, usize),
    /// The worst run.
    Done(Arc<Run>),
    /// A run came to nothing: never green.
    NoResult,
}

/// Cells by guard and fault, and how far the latest round is.
#[derive(Default)]
pub struct Matrix(Mutex<State>);

#[derive(Default)]
struct State {
    cells: HashMap<(Guard, Fault), Cell>,
    started: Option<Instant>,
    took: Option<Duration>,
    runs: usize,
}

/// How far the matrix is.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    pub running: bool,
    pub ever: bool,
    pub cells: usize,
    /// Of so many.
    pub all: usize,
    pub runs: usize,
    pub seconds: f64,
}

impl Matrix {
    /// What a cell shows now.
    pub fn cell(&self, guard: Guard, fault: Fault) -> Cell {
        self.state().cells.get(&(guard, fault)).cloned().unwrap_or_default()
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        let state = self.state();
        let done = |cell: &&Cell| matches!(cell, Cell::Done(_) | Cell::NoResult);
        let elapsed = state.started.map(|started| started.elapsed());
        Progress {
            running: state.started.is_some() && state.took.is_none(),
            ever: state.started.is_some(),
            cells: state.cells.values().filter(done).count(),
            all: Guard::ALL.len() * Fault::ALL.len(),
            runs: state.runs,
            seconds: state.took.or(elapsed).unwrap_or_default().as_secs_f64(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `false`: a round is running already.
    fn begin(&self) -> bool {
        let mut state = self.state();
        if state.started.is_some() && state.took.is_none() {
            return false;
        }
        *state = State { started: Some(Instant::now()), ..State::default() };
        true
    }

    fn set(&self, guard: Guard, fault: Fault, cell: Cell) {
        let mut state = self.state();
        if let Cell::Running(done, _) = cell {
            state.runs += usize::from(done > 0);
        }
        state.cells.insert((guard, fault), cell);
    }
}

impl Lab {
    /// Runs everything again, unless that is going on already.
    pub fn run_matrix(&self) {
        if self.0.matrix.begin() {
            self.0.runs.drop_matrix();
            tokio::spawn(self.clone().fill());
        }
    }

    async fn fill(self) {
        let mut cells = Vec::new();
        for guard in Guard::ALL {
            for fault in Fault::ALL {
                cells.push(self.clone().fill_cell(guard, fault).boxed());
            }
        }
        stream::iter(cells).buffer_unordered(CELLS_AT_ONCE).collect::<Vec<()>>().await;
        let mut state = self.0.matrix.state();
        state.took = state.started.map(|started| started.elapsed());
    }

    async fn fill_cell(self, guard: Guard, fault: Fault) {
        let matrix = &self.0.matrix;
        let runs = if fault.is_dear() { 1 } else { RUNS_A_CELL };
        let mut worst: Option<Arc<Run>> = None;
        matrix.set(guard, fault, Cell::Running(0, runs));
        for done in 1..=runs {
            let run = self.run_for_all(Spec::usual(guard, fault)).await;
            let Some(verdict) = run.verdict() else {
                return matrix.set(guard, fault, Cell::NoResult);
            };
            matrix.set(guard, fault, Cell::Running(done, runs));
            let before = worst.as_ref().and_then(|worst| worst.verdict());
            if before.is_none_or(|before| verdict.outcome > before.outcome) {
                worst = Some(run);
            }
        }
        if let Some(worst) = worst {
            self.remember(&worst);
            matrix.set(guard, fault, Cell::Done(worst));
        }
    }
}
