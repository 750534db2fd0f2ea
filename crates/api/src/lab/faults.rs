//! What each fault does to a customer, step by step, on the real servers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::stream;
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep, sleep_until};
use uuid::Uuid;

use super::browser::{self, PATIENT, Press, Saw, Sending};
use super::child::Doomed;
use super::events::{self, Event};
use super::fragile::Fragile;
use super::ledger;
use super::shop::Purchase;
use super::spec::{Fault, Guard, Spec};
use super::world::World;

/// A connection that a proxy gives up on.
const PROXY: Duration = Duration::from_millis(90);
/// A customer who waits no longer.
const IMPATIENT: Duration = Duration::from_millis(1500);
/// Until somebody presses again after an error.
const THINKS: Duration = Duration::from_millis(250);
/// Of a crowd, every so manieth retries.
const RETRIES_EVERY: u32 = 32;
const CROWD_AT_ONCE: usize = 48;
/// After this long without a press, the visitor is done.
const QUIET: Duration = Duration::from_millis(1200);

/// One run's part of the world.
pub(super) struct Bench<'a> {
    pub(super) world: &'a World,
    pub(super) spec: Spec,
    pub(super) run: String,
    pub(super) account: Uuid,
    /// The button of each tab.
    enabled: [AtomicBool; 2],
}

impl<'a> Bench<'a> {
    pub(super) fn new(world: &'a World, spec: Spec, run: String, account: Uuid) -> Self {
        let enabled = [AtomicBool::new(true), AtomicBool::new(true)];
        Self { world, spec, run, account, enabled }
    }

    /// Runs the fault to its end.
    pub(super) async fn play(
        &self,
        clicks: Option<UnboundedReceiver<Instant>>,
    ) -> anyhow::Result<Vec<Press>> {
        match (self.spec.fault, clicks) {
            (Fault::Double | Fault::Tabs, Some(clicks)) => Ok(self.clicked(clicks).await),
            (Fault::Double | Fault::Tabs, None) => Ok(self.scripted_clicks().await),
            (Fault::Network, _) => Ok(self.network().await),
            (Fault::Lost, _) => self.lost(false).await,
            (Fault::Flush, _) => self.lost(true).await,
            (Fault::Stop, _) => self.stopped().await,
            (Fault::Kill, _) => self.kill().await,
            (Fault::Cart, _) => Ok(self.other_cart().await),
            (Fault::Card, _) => Ok(self.other_card().await),
            (Fault::Day, _) => self.day_after().await,
            (Fault::Crowd, _) => Ok(self.crowd().await),
        }
    }

    /// A form's key. Two tabs of one shop have two keys, unless the key belongs to the cart.
    fn key(&self, tab: u32) -> String {
        match (self.spec.guard, tab) {
            (Guard::Payonce, _) | (_, 0) => format!("{}-key", self.run),
            (_, tab) => format!("{}-key-{tab}", self.run),
        }
    }

    fn purchase(&self, tab: u32) -> Purchase {
        Purchase {
            run: self.run.clone(),
            customer: 0,
            cart: 0,
            key: self.key(tab),
            card: "pm_card_ok".to_owned(),
            account: self.account,
            order: None,
        }
    }

    fn to(&self, press: u32) -> Sending<'_> {
        let (server, url) = match press % 2 {
            1 => ("A", &self.world.a.url),
            _ => ("B", &self.world.b.url),
        };
        Sending { url, server, press, patience: PATIENT, loses: false, drawn: true, tab: 0 }
    }

    /// A press in a browser: where the button is the guard, a disabled one sends nothing.
    async fn press(&self, purchase: &Purchase, sending: Sending<'_>) -> Press {
        let button = &self.enabled[sending.tab as usize % 2];
        if self.spec.guard == Guard::Button && !button.swap(false, Ordering::SeqCst) {
            let event = Event::outside(&self.run, sending.press, "disabled");
            events::tell(event.with("tab", sending.tab));
            let (number, customer, cart) = (sending.press, purchase.customer, purchase.cart);
            return Press { number, customer, saw: Saw::NothingSent, cart, order: None };
        }
        let press = self.send(purchase, sending).await;
        button.store(true, Ordering::SeqCst);
        press
    }

    async fn send(&self, purchase: &Purchase, sending: Sending<'_>) -> Press {
        browser::press(&self.world.http, self.spec.guard, purchase, sending).await
    }

    /// Presses as the spec has them.
    async fn scripted_clicks(&self) -> Vec<Press> {
        let presses: Vec<_> =
            (1..=self.spec.clicks).map(|number| self.click_in_time(number).boxed()).collect();
        join_all(presses).await
    }

    async fn click_in_time(&self, number: u32) -> Press {
        sleep(Duration::from_millis(self.spec.spacing_ms * u64::from(number - 1))).await;
        self.click(number).await
    }

    async fn click_at(&self, number: u32, due: Instant) -> Press {
        sleep_until(due).await;
        self.click(number).await
    }

    async fn click(&self, number: u32) -> Press {
        let tab = if self.spec.fault == Fault::Tabs { (number - 1) % 2 } else { 0 };
        self.press(&self.purchase(tab), Sending { tab, ..self.to(number) }).await
    }

    /// Presses as they come in, until nobody presses for a while. Those that came in while the lab
    /// was being built keep their distance.
    async fn clicked(&self, mut clicks: UnboundedReceiver<Instant>) -> Vec<Press> {
        let mut running = stream::FuturesUnordered::new();
        let (mut presses, mut number) = (Vec::new(), 0);
        let mut late = None;
        loop {
            tokio::select! {
                click = clicks.recv(), if number < 9 => match click {
                    Some(at) => {
                        number += 1;
                        let late = *late.get_or_insert_with(|| at.elapsed());
                        running.push(self.click_at(number, at + late).boxed());
                    }
                    None => break,
                },
                Some(press) = running.next(), if !running.is_empty() => presses.push(press),
                () = sleep(QUIET), if number > 0 => break,
            }
        }
        presses.extend(running.collect::<Vec<_>>().await);
        presses.sort_by_key(|press: &Press| press.number);
        presses
    }

    /// The button is pressed once; the network sends the request twice.
    async fn network(&self) -> Vec<Press> {
        let purchase = self.purchase(0);
        let first = self.send(&purchase, Sending { patience: PROXY, ..self.to(1) }).await;
        let second = self.send(&purchase, self.to(2)).await;
        vec![first, second]
    }

    /// The server is done, the answer is lost, the customer tries again.
    async fn lost(&self, flushes: bool) -> anyhow::Result<Vec<Press>> {
        let purchase = self.purchase(0);
        let sending = Sending { patience: IMPATIENT, loses: true, ..self.to(1) };
        let first = self.press(&purchase, sending).await;
        if flushes {
            self.flush().await?;
        }
        sleep(THINKS).await;
        Ok(vec![first, self.press(&purchase, self.to(2)).await])
    }

    async fn flush(&self) -> anyhow::Result<()> {
        ledger::flush(self.world, &self.run).await?;
        events::tell(Event::outside(&self.run, 0, "flushed"));
        Ok(())
    }

    /// As above, on two servers whose Redis dies in between.
    async fn stopped(&self) -> anyhow::Result<Vec<Press>> {
        let mut fragile = Fragile::start(self.world, &self.run).await?;
        let purchase = self.purchase(0);
        let (a, b) = fragile.urls();
        let sending = Sending { url: &a, patience: IMPATIENT, loses: true, ..self.to(1) };
        let first = self.press(&purchase, sending).await;
        let pid = fragile.stop_redis().await?;
        events::tell(Event::outside(&self.run, 0, "stopped").with("pid", pid));
        sleep(THINKS).await;
        let second = self.press(&purchase, Sending { url: &b, ..self.to(2) }).await;
        fragile.stop().await;
        Ok(vec![first, second])
    }

    async fn kill(&self) -> anyhow::Result<Vec<Press>> {
        let mut doomed = Doomed::start(self.world).await?;
        let charging = doomed.charging();
        // The charge takes two seconds, in the middle of which the server dies.
        let purchase = Purchase { card: "pm_card_slow".to_owned(), ..self.purchase(0) };
        let url = doomed.url.clone();
        let sending = Sending { url: &url, ..self.to(1) };
        let death = async {
            charging.await?;
            sleep(Duration::from_millis(150)).await;
            let killed = Event::outside(&self.run, 1, "killed").with("pid", doomed.pid);
            doomed.kill().await?;
            events::tell(killed.with("to", "A"));
            anyhow::Ok(())
        };
        let (first, death) = tokio::join!(self.press(&purchase, sending), death);
        death?;
        let mut presses = vec![first];
        for press in [2, 3] {
            sleep(THINKS).await;
            let again = self.press(&purchase, Sending { press, ..self.to(2) }).await;
            let done = again.saw != Saw::StillWorking;
            presses.push(again);
            if done {
                break;
            }
        }
        Ok(presses)
    }

    async fn other_cart(&self) -> Vec<Press> {
        let first = self.press(&self.purchase(0), self.to(1)).await;
        sleep(THINKS).await;
        let other = Purchase { cart: 1, ..self.purchase(0) };
        vec![first, self.press(&other, self.to(2)).await]
    }

    async fn other_card(&self) -> Vec<Press> {
        let declined = Purchase { card: "pm_card_declined".to_owned(), ..self.purchase(0) };
        let first = self.press(&declined, self.to(1)).await;
        sleep(THINKS).await;
        let mut again = self.purchase(0);
        if first.order.is_some() {
            // Payonce draws the order's own form now, with a key of its own.
            again.key = format!("{}-second", self.run);
            again.order.clone_from(&first.order);
        }
        vec![first, self.press(&again, self.to(2)).await]
    }

    async fn day_after(&self) -> anyhow::Result<Vec<Press>> {
        let purchase = self.purchase(0);
        let first = self.press(&purchase, self.to(1)).await;
        ledger::a_day_passes(self.world, &self.run, self.account).await?;
        events::tell(Event::outside(&self.run, 0, "day"));
        Ok(vec![first, self.press(&purchase, self.to(2)).await])
    }

    async fn crowd(&self) -> Vec<Press> {
        let size = u32::try_from(self.world.crowd).unwrap_or(1000);
        let customers: Vec<_> = (0..size).map(|customer| self.customer(customer).boxed()).collect();
        stream::iter(customers).buffer_unordered(CROWD_AT_ONCE).concat().await
    }

    /// Most press once. Some press twice, a moment apart.
    async fn customer(&self, customer: u32) -> Vec<Press> {
        let key = format!("{}-{customer}", self.run);
        let purchase = Purchase { customer, key, ..self.purchase(0) };
        let retries = customer.is_multiple_of(RETRIES_EVERY);
        let first = self.send(&purchase, Sending { drawn: retries, ..self.to(1) });
        if !retries {
            return vec![first.await];
        }
        let second = async {
            sleep(Duration::from_millis(self.spec.spacing_ms)).await;
            // The page was loaded again, and its button is a new one.
            self.send(&purchase, self.to(2)).await
        };
        let (first, second) = tokio::join!(first, second);
        vec![first, second]
    }
}
