//! The executions that run in this process: duplicates wait for them, one result for all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use crate::fingerprint::{Claim, Differences, Fingerprint, Marks};
use crate::key::Identity;

/// How often to look whether somebody waits.
const LOOK: Duration = Duration::from_millis(20);

/// All running executions, by identity. Cloning shares them.
pub struct Flights<T> {
    running: Arc<Mutex<HashMap<Identity, Running<T>>>>,
    count: Arc<watch::Sender<usize>>,
    most: usize,
}

struct Running<T> {
    fingerprint: Fingerprint,
    marks: Marks,
    landing: watch::Sender<Progress<T>>,
}

struct Progress<T> {
    landed: Option<T>,
    meanwhile: Option<T>,
}

/// What a request finds when it enters.
pub enum Entry<T> {
    /// Nobody is at this key here: execute, then [`Ticket::land`].
    Lead(Ticket<T>),
    /// The same request is running here: wait for it.
    Join(Waiter<T>),
    /// Another request is under way here under this key; which of them it belongs to, a record may say.
    Differs(Differences),
    /// As many keys as this process takes are running already.
    Full,
}

/// The duty to land. Dropped without landing, its waiters learn that it was lost.
pub struct Ticket<T> {
    identity: Identity,
    flights: Flights<T>,
    landing: watch::Sender<Progress<T>>,
}

/// A place in the queue for a running execution's result.
#[derive(Clone)]
pub struct Waiter<T>(watch::Receiver<Progress<T>>);

/// How waiting ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Waited<T> {
    /// The result.
    Landed(T),
    /// The execution ended without one: it panicked.
    Lost,
    /// It is still running; what its leader has to say meanwhile.
    TimedOut(Option<T>),
}

impl<T: Clone> Flights<T> {
    /// At most `most` keys at once.
    pub fn new(most: usize) -> Self {
        let (count, _) = watch::channel(0);
        Self { running: Arc::default(), count: Arc::new(count), most }
    }

    /// Leads, joins, or is told why not.
    pub fn enter(&self, claim: &Claim) -> Entry<T> {
        let mut running = self.lock();
        if let Some(flight) = running.get(&claim.identity) {
            return match flight.fingerprint == claim.fingerprint {
                true => Entry::Join(Waiter(flight.landing.subscribe())),
                false => Entry::Differs(flight.marks.differences(&claim.marks)),
            };
        }
        if running.len() >= self.most {
            return Entry::Full;
        }
        let landing = watch::Sender::new(Progress { landed: None, meanwhile: None });
        let flight = Running {
            fingerprint: claim.fingerprint,
            marks: claim.marks.clone(),
            landing: landing.clone(),
        };
        running.insert(claim.identity.clone(), flight);
        self.count.send_replace(running.len());
        Entry::Lead(Ticket { identity: claim.identity.clone(), flights: self.clone(), landing })
    }

    /// Whether a key is running.
    pub fn has(&self, identity: &Identity) -> bool {
        self.lock().contains_key(identity)
    }

    /// How many keys are running.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Ends when somebody waits for every execution that is running.
    pub async fn attended(&self) {
        // Who waits does not say when it stops waiting; this is asked once in the life of a process.
        while self.lock().values().any(|flight| flight.landing.receiver_count() == 0) {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Ends when no execution is running.
    pub async fn drained(&self) {
        let mut count = self.count.subscribe();
        // The sender lives in `self`, so the channel cannot close under us.
        let _ = count.wait_for(|running| *running == 0).await;
    }

    /// A panic cannot leave the map half changed: every critical section is one call.
    fn lock(&self) -> MutexGuard<'_, HashMap<Identity, Running<T>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Clone for Flights<T> {
    fn clone(&self) -> Self {
        Self { running: Arc::clone(&self.running), count: Arc::clone(&self.count), most: self.most }
    }
}

impl<T> Ticket<T> {
    /// A place to wait for this very execution.
    pub fn waiter(&self) -> Waiter<T> {
        Waiter(self.landing.subscribe())
    }

    /// What whoever does not wait to the end is told from now on.
    pub fn meanwhile(&self, word: T) {
        self.landing.send_if_modified(|progress| {
            progress.meanwhile = Some(word);
            // Nobody who waits for the result needs to wake up for it.
            false
        });
    }

    /// Gives every waiter the result.
    pub fn land(self, result: T) {
        self.landing.send_modify(|progress| progress.landed = Some(result));
    }
}

impl<T> Drop for Ticket<T> {
    fn drop(&mut self) {
        let mut running = self.flights.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.remove(&self.identity);
        self.flights.count.send_replace(running.len());
    }
}

impl<T: Clone> Waiter<T> {
    /// Waits, at most this long.
    pub async fn wait(mut self, at_most: Duration) -> Waited<T> {
        let landed = tokio::time::timeout(at_most, async {
            let progress = self.0.wait_for(|progress| progress.landed.is_some()).await;
            progress.ok().and_then(|progress| progress.landed.clone())
        });
        match landed.await {
            Ok(Some(result)) => Waited::Landed(result),
            Ok(None) => Waited::Lost,
            Err(_) => Waited::TimedOut(self.0.borrow().meanwhile.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fingerprint::{Body, Fingerprinter, Parts};
    use crate::key::{Key, Scope};

    fn claim(key: &str, path: &str) -> Claim {
        let key = Key::from_bare(key.as_bytes()).unwrap();
        let identity = Identity { scope: Scope::account([1; 16]), key };
        let parts =
            Parts { method: "POST", path, query: "", content_type: None, body: Body::Empty };
        Fingerprinter::new(b"s").claim(identity, parts, &[])
    }

    fn lead(flights: &Flights<u8>, claim: &Claim) -> Ticket<u8> {
        match flights.enter(claim) {
            Entry::Lead(ticket) => ticket,
            _ => panic!("somebody else leads"),
        }
    }

    fn join(flights: &Flights<u8>, claim: &Claim) -> Waiter<u8> {
        match flights.enter(claim) {
            Entry::Join(waiter) => waiter,
            _ => panic!("nobody leads"),
        }
    }

    #[tokio::test]
    async fn one_leads_and_all_get_its_result() {
        let flights = Flights::new(9);
        let same = claim("k", "/a");
        let ticket = lead(&flights, &same);
        let waiters: Vec<_> = (0..100).map(|_| join(&flights, &same)).collect();
        assert!(matches!(flights.enter(&claim("k", "/b")), Entry::Differs(differences)
            if differences.differs == ["path"]));
        ticket.land(7);
        for waiter in waiters {
            assert_eq!(waiter.wait(Duration::ZERO).await, Waited::Landed(7));
        }
        assert!(flights.is_empty());
        drop(lead(&flights, &same));
    }

    #[tokio::test]
    async fn a_lost_leader_frees_the_key_and_tells_its_waiters() {
        let flights = Flights::new(9);
        let same = claim("k", "/a");
        let ticket = lead(&flights, &same);
        let waiter = join(&flights, &same);
        assert!(flights.has(&same.identity));
        drop(ticket);
        assert_eq!(waiter.wait(Duration::from_secs(5)).await, Waited::Lost);
        assert!(!flights.has(&same.identity));
        drop(lead(&flights, &same));
    }

    #[tokio::test]
    async fn waiting_is_bounded_and_the_map_too() {
        let flights = Flights::new(1);
        let same = claim("k", "/a");
        let ticket = lead(&flights, &same);
        assert_eq!(join(&flights, &same).wait(Duration::ZERO).await, Waited::TimedOut(None));
        ticket.meanwhile(3);
        assert_eq!(join(&flights, &same).wait(Duration::ZERO).await, Waited::TimedOut(Some(3)));
        assert!(matches!(flights.enter(&claim("other", "/a")), Entry::Full));
        assert_eq!((flights.len(), flights.is_empty()), (1, false));
    }

    #[tokio::test]
    async fn attended_ends_with_the_last_execution_that_nobody_waits_for() {
        let flights = Flights::new(9);
        let (awaited, left) = (claim("k", "/a"), claim("other", "/a"));
        let _ticket = lead(&flights, &awaited);
        let _waiter = join(&flights, &awaited);
        let ticket = lead(&flights, &left);
        drop(join(&flights, &left));
        let attended = tokio::spawn({
            let flights = flights.clone();
            async move { flights.attended().await }
        });
        tokio::task::yield_now().await;
        assert!(!attended.is_finished());
        ticket.land(1);
        tokio::time::timeout(Duration::from_secs(5), attended).await.unwrap().unwrap();
        assert_eq!(flights.len(), 1);
    }

    #[tokio::test]
    async fn drained_ends_with_the_last_execution() {
        let flights = Flights::new(9);
        let ticket = lead(&flights, &claim("k", "/a"));
        let draining = tokio::spawn({
            let flights = flights.clone();
            async move { flights.drained().await }
        });
        tokio::task::yield_now().await;
        assert!(!draining.is_finished());
        ticket.land(1);
        tokio::time::timeout(Duration::from_secs(5), draining).await.unwrap().unwrap();
    }
}
