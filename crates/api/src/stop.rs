//! The wish to stop: the first signal asks for a clean end, the second for one at once.

use tokio::select;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

const INTERRUPTED: i32 = 130;

/// How often this process was told to stop.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<usize>);

impl Stop {
    /// Listens to Ctrl-C and SIGTERM from now on, in place of dying from them.
    pub fn listen() -> std::io::Result<Self> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let (told, times) = watch::channel(0);
        tokio::spawn(async move {
            loop {
                select! { _ = interrupt.recv() => (), _ = terminate.recv() => () }
                told.send_modify(|times| *times += 1);
            }
        });
        Ok(Self(times))
    }

    /// Told by a sender instead of a signal: for a server that is one of several in its process.
    pub fn by_hand() -> (watch::Sender<usize>, Self) {
        let (told, times) = watch::channel(0);
        (told, Self(times))
    }

    pub fn is_asked(&self) -> bool {
        *self.0.borrow() > 0
    }

    pub async fn asked(&self) {
        self.told(1).await;
    }

    /// Lets `work`, which ends by itself once asked, come to its end, unless somebody cannot
    /// wait and asks again: then the process ends the way Ctrl-C ends any other.
    pub async fn patient<T>(&self, work: impl Future<Output = T>) -> T {
        select! {
            done = work => done,
            () = self.told(2) => std::process::exit(INTERRUPTED),
        }
    }

    async fn told(&self, times: usize) {
        let mut seen = self.0.clone();
        if seen.wait_for(|told| *told >= times).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
