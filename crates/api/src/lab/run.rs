//! Runs: started, watched while they run, remembered for a while, each for its own visitor.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use idempotency::Key;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};

use super::events::{self, Event};
use super::faults::Bench;
use super::spec::{Fault, Spec};
use super::verdict::{self, Verdict};
use super::{Lab, ledger, server};

/// Older runs are forgotten.
const REMEMBERED: usize = 240;
/// Runs of one visitor that have not ended: two side by side, and the next two.
const UNFINISHED_MAX: usize = 4;
/// No run is drawn with more.
const EVENTS_MAX: usize = 2000;
/// No run takes longer.
const LIMIT: Duration = Duration::from_secs(60);
/// The last events are on their way from another process.
const LAST_EVENTS: Duration = Duration::from_millis(60);

/// One experiment.
pub struct Run {
    pub id: String,
    pub spec: Spec,
    /// Who started it; nobody else sees it. `None`: one of the matrix, which everybody sees.
    owner: Option<String>,
    events: Mutex<Vec<Event>>,
    ended: Mutex<Option<Result<Verdict, String>>>,
    /// Grows with every event, and once more at the end.
    changes: watch::Sender<usize>,
    clicks: Mutex<Option<mpsc::UnboundedSender<Instant>>>,
}

impl Run {
    fn new(spec: Spec, owner: Option<String>) -> Arc<Self> {
        Arc::new(Self {
            id: hex::encode(rand::random::<[u8; 12]>()),
            spec,
            owner,
            events: Mutex::default(),
            ended: Mutex::default(),
            changes: watch::Sender::new(0),
            clicks: Mutex::default(),
        })
    }

    /// An experiment that nobody has begun.
    pub fn not_yet(spec: Spec) -> Arc<Self> {
        Self::new(spec, None)
    }

    /// What has happened so far, in the order of time.
    pub fn events(&self) -> Vec<Event> {
        let mut events = locked(&self.events).clone();
        events.sort_by_key(|event| event.at_us);
        events
    }

    /// What it came to, once it has ended; or why it came to nothing.
    pub fn ended(&self) -> Option<Result<Verdict, String>> {
        locked(&self.ended).clone()
    }

    /// The verdict, once there is one.
    pub fn verdict(&self) -> Option<Verdict> {
        self.ended()?.ok()
    }

    /// Tells of every change.
    pub fn changes(&self) -> watch::Receiver<usize> {
        self.changes.subscribe()
    }

    /// One more press by the visitor. `false`: it comes too late.
    pub fn press(&self) -> bool {
        locked(&self.clicks).as_ref().is_some_and(|clicks| clicks.send(Instant::now()).is_ok())
    }

    /// Until the end.
    pub async fn finished(&self) {
        let mut changes = self.changes();
        while self.ended().is_none() {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    fn hear(&self, event: Event) {
        let mut events = locked(&self.events);
        if events.len() < EVENTS_MAX {
            events.push(event);
        }
        drop(events);
        self.changes.send_modify(|change| *change += 1);
    }

    fn end(&self, ended: Result<Verdict, String>) {
        *locked(&self.ended) = Some(ended);
        *locked(&self.clicks) = None;
        self.changes.send_modify(|change| *change += 1);
    }

    /// Of a crowd, one customer is drawn.
    fn keep_only(&self, customer: u32) {
        locked(&self.events).retain(|event| event.customer == customer || event.step == "killed");
    }
}

/// What a visitor wants by sending a form. The form sent again is about the same runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Wanted {
    /// Who sent it.
    pub visitor: String,
    /// Drawn into the form, new each time.
    pub key: Key,
    /// What is to be run, side by side.
    pub specs: Vec<Spec>,
}

/// The runs behind each form.
type Forms = Mutex<HashMap<Wanted, Vec<Arc<Run>>>>;

/// What is remembered.
#[derive(Default)]
pub struct Runs {
    runs: Mutex<VecDeque<Arc<Run>>>,
    started: Forms,
    pressed: Forms,
}

impl Runs {
    /// A run that this visitor may see.
    pub fn get(&self, id: &str, visitor: &str) -> Option<Arc<Run>> {
        let runs = locked(&self.runs);
        let run = runs.iter().find(|run| run.id == id)?;
        run.owner.as_ref().is_none_or(|owner| owner == visitor).then(|| Arc::clone(run))
    }

    /// Forgets what this visitor ran, but for what still runs.
    pub fn forget(&self, visitor: &str) {
        let stays = |run: &Run| run.owner.as_deref() != Some(visitor) || run.ended().is_none();
        locked(&self.runs).retain(|run| stays(run));
        for forms in [&self.started, &self.pressed] {
            locked(forms).retain(|wanted, _| wanted.visitor != visitor);
        }
    }

    /// Whether this visitor may start so many more: nobody keeps the lab busy for all others by
    /// starting runs and going away.
    fn has_room(&self, visitor: &str, more: usize) -> bool {
        let runs = locked(&self.runs);
        let own = runs.iter().filter(|run| run.owner.as_deref() == Some(visitor));
        own.filter(|run| run.ended().is_none()).count() + more <= UNFINISHED_MAX
    }

    fn remember(&self, run: &Arc<Run>) {
        let mut runs = locked(&self.runs);
        if runs.len() >= REMEMBERED {
            // Runs of the matrix are replaced by the next matrix, not by visitors.
            if let Some(oldest) = runs.iter().position(|run| run.owner.is_some()) {
                runs.remove(oldest);
            }
        }
        runs.push_back(Arc::clone(run));
    }

    pub(super) fn drop_matrix(&self) {
        locked(&self.runs).retain(|run| run.owner.is_some());
    }
}

impl Lab {
    /// Runs whose presses are made for the visitor, begun by the first copy of the form; none while
    /// too many of the visitor have not ended.
    pub fn start(&self, wanted: &Wanted) -> Option<Vec<Arc<Run>>> {
        self.of(&self.0.runs.started, wanted, |spec| {
            let run = Run::new(spec, Some(wanted.visitor.clone()));
            self.0.runs.remember(&run);
            tokio::spawn(self.clone().perform(Arc::clone(&run), None));
            run
        })
    }

    /// One press of the visitor's own. The first one on a form begins its runs, the next ones on
    /// the same form press again. None while too many of the visitor have not ended.
    pub fn press(&self, wanted: &Wanted) -> Option<Vec<Arc<Run>>> {
        let listen = |spec| self.listen(spec, &wanted.visitor);
        let runs = self.of(&self.0.runs.pressed, wanted, listen)?;
        for run in &runs {
            run.press();
        }
        Some(runs)
    }

    /// The runs of a form, begun if it was never sent before.
    fn of(
        &self,
        forms: &Forms,
        wanted: &Wanted,
        begin: impl Fn(Spec) -> Arc<Run>,
    ) -> Option<Vec<Arc<Run>>> {
        let mut forms = locked(forms);
        if let Some(runs) = forms.get(wanted) {
            return Some(runs.clone());
        }
        if !self.0.runs.has_room(&wanted.visitor, wanted.specs.len()) {
            return None;
        }
        if forms.len() > REMEMBERED {
            forms.retain(|_, runs| runs.iter().any(|run| run.ended().is_none()));
        }
        let runs: Vec<_> = wanted.specs.iter().map(|spec| begin(*spec)).collect();
        forms.insert(wanted.clone(), runs.clone());
        Some(runs)
    }

    fn listen(&self, spec: Spec, visitor: &str) -> Arc<Run> {
        let run = Run::new(spec, Some(visitor.to_owned()));
        let (sender, clicks) = mpsc::unbounded_channel();
        *locked(&run.clicks) = Some(sender);
        self.0.runs.remember(&run);
        let clicks = spec.fault.takes_clicks().then_some(clicks);
        tokio::spawn(self.clone().perform(Arc::clone(&run), clicks));
        run
    }

    /// A run for everybody, awaited.
    pub(super) async fn run_for_all(&self, spec: Spec) -> Arc<Run> {
        let run = Run::new(spec, None);
        self.clone().perform(Arc::clone(&run), None).await;
        run
    }

    pub(super) fn remember(&self, run: &Arc<Run>) {
        self.0.runs.remember(run);
    }

    async fn perform(self, run: Arc<Run>, clicks: Option<mpsc::UnboundedReceiver<Instant>>) {
        let Ok(_slot) = self.0.slots.acquire().await else { return };
        let (wire, mut heard) = mpsc::unbounded_channel();
        events::connect(&run.id, wire);
        let listening = tokio::spawn({
            let run = Arc::clone(&run);
            async move {
                while let Some(event) = heard.recv().await {
                    run.hear(event);
                }
            }
        });
        let ended = match timeout(LIMIT, self.play(&run, clicks)).await {
            Ok(Ok(verdict)) => Ok(verdict),
            Ok(Err(error)) => Err(format!("{error:#}")),
            Err(_) => Err("It took longer than a minute.".to_owned()),
        };
        tokio::time::sleep(LAST_EVENTS).await;
        events::disconnect(&run.id);
        // Nothing hangs on it: the wire is cut, and the task ends with it.
        let _ = listening.await;
        if let (Fault::Crowd, Ok(verdict)) = (run.spec.fault, &ended) {
            run.keep_only(verdict.worst);
        }
        if let Err(error) = &ended {
            tracing::warn!(%error, guard = run.spec.guard.name(), fault = run.spec.fault.name(), "a run of the lab came to nothing");
        }
        run.end(ended);
    }

    async fn play(
        &self,
        run: &Run,
        clicks: Option<mpsc::UnboundedReceiver<Instant>>,
    ) -> anyhow::Result<Verdict> {
        let world = self.world().await?;
        let stock = match run.spec.fault {
            Fault::Crowd => i64::try_from(world.crowd)? * 2,
            _ => ledger::STOCK,
        };
        let account = ledger::sandbox(world, &run.id, stock).await?;
        let bench = Bench::new(world, run.spec, run.id.clone(), account);
        let presses = bench.play(clicks).await?;
        let books = self.settled_books(run, account).await?;
        Ok(verdict::judge(run.spec.fault, books, presses))
    }

    /// The books, once nothing changes any more: a server may still be at work for a client that
    /// gave up.
    async fn settled_books(&self, run: &Run, account: uuid::Uuid) -> anyhow::Result<ledger::Books> {
        let world = self.world().await?;
        let pause = Duration::from_millis(250);
        let mut before = ledger::read(world, run.spec.guard, &run.id, account).await?;
        for _ in 0..40 {
            tokio::time::sleep(pause).await;
            let now = ledger::read(world, run.spec.guard, &run.id, account).await?;
            let calm = now.charges.len() == before.charges.len()
                && now.orders.len() == before.orders.len()
                && now.open == 0
                && !server::is_working(&run.id);
            before = now;
            if calm {
                break;
            }
        }
        Ok(before)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
