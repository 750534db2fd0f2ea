//! The shop and the provider as processes, a database and a cache; and what was said so far.

mod trouble;

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::task::JoinSet;

use super::step::{How, Step, Trouble, Wish};
use crate::crash::scene::sign_in;
use crate::invariants;
use crate::postgres::TestDatabase;
use crate::process::{Answer, Launch, Payonce, Request, free_port};
use crate::redis::TestRedis;

/// How long anything may take that goes on by itself.
const SETTLED_AFTER: Duration = Duration::from_secs(30);
const AGAIN: Duration = Duration::from_millis(100);
/// Answers that leave the key free, or open: another attempt may get another one.
const PASSING: [&str; 7] = [
    "request_in_progress",
    "outcome_unknown",
    "payment_in_progress",
    "refund_in_progress",
    "provider_unavailable",
    "busy",
    "idempotency_key_reused",
];
const GOODS: [(&str, &str); 4] = [
    ("enamel-mug", "order-book"),
    ("order-book", "enamel-mug"),
    ("counter-bell", "enamel-mug"),
    ("order-book", "counter-bell"),
];

pub(crate) struct Stage {
    shop: Payonce,
    provider: Payonce,
    redis: TestRedis,
    database: TestDatabase,
    launch: Launch,
    token: String,
    sent: Vec<Sent>,
    aside: JoinSet<(usize, Result<Answer, String>)>,
    remembered: Vec<(String, Vec<u8>, i64)>,
    cache_stopped: bool,
    commands: Vec<String>,
}

/// A request and the reply that its key has.
struct Sent {
    request: Request,
    reply: Option<Answer>,
    /// A wish that its key was not meant for.
    reuse: bool,
}

/// What went wrong, and the way there.
pub(crate) struct Failure {
    pub(crate) why: String,
    pub(crate) commands: Vec<String>,
}

impl Stage {
    pub(crate) async fn set() -> Self {
        let database = TestDatabase::new().await;
        let redis = TestRedis::start(None).await;
        let port = free_port();
        // One database for both, so that one look can compare their books.
        let provider = Launch::new("provider", &database.url)
            .flag("--provider-port=0")
            .flag("--log=warn")
            .env("PROVIDER_WEBHOOK_URL", &format!("http://127.0.0.1:{port}/v1/webhooks/provider"))
            .start();
        let launch = Launch::new("serve", &database.url)
            .flag("--demo")
            .flag(&format!("--port={port}"))
            .flag(&format!("--provider-url={}", provider.url()))
            .flag(&format!("--redis-url={}", redis.url()));
        let times = [
            "--workers=1",
            "--lease-ms=1000",
            "--deadline-ms=900",
            "--provider-timeout-ms=300",
            "--recover-every-ms=200",
            "--db-connections=8",
        ];
        let mut launch = times.into_iter().fold(launch, |launch, flag| launch.flag(flag));
        // To see what a mistake in the server looks like from here.
        if let Ok(defect) = std::env::var("PAYONCE_DEFECT") {
            launch = launch.env("PAYONCE_DEFECT", &defect);
        }
        let shop = launch.start();
        let token = sign_in(shop.port(), api::catalog::demo::SHOPPER).await;
        Self {
            shop,
            provider,
            redis,
            database,
            launch,
            token,
            sent: Vec::new(),
            aside: JoinSet::new(),
            remembered: Vec::new(),
            cache_stopped: false,
            commands: Vec::new(),
        }
    }

    pub(crate) fn failure(&mut self, why: String) -> Failure {
        let log = self.shop.log();
        let errors: Vec<&str> = log
            .lines()
            .filter(|line| line.contains("ERROR") || line.contains("panicked"))
            .collect();
        let mut commands = std::mem::take(&mut self.commands);
        commands.extend(errors.iter().rev().take(5).map(|line| format!("# log: {line}")));
        Failure { why, commands }
    }

    /// Plays the steps, lets everything settle, and looks.
    pub(crate) async fn play(&mut self, steps: &[Step]) -> Result<(), String> {
        for step in steps {
            match step {
                Step::New(wish, how) => {
                    if let Some(request) = self.request(wish) {
                        let reuse = matches!(wish, Wish::Reuse { .. });
                        self.sent.push(Sent { request, reply: None, reuse });
                        self.send(self.sent.len() - 1, *how).await?;
                    }
                }
                Step::Again(which, how) => {
                    if !self.sent.is_empty() {
                        self.send(which % self.sent.len(), *how).await?;
                    }
                }
                Step::Trouble(trouble) => self.trouble(*trouble).await,
            }
        }
        self.settle().await
    }

    /// The wish as a request with a key of its own, if there is what it is about.
    fn request(&self, wish: &Wish) -> Option<Request> {
        let key = format!("k{}", self.sent.len());
        let (path, body) = match wish {
            Wish::Order { goods, quantity } => {
                let (one, other) = GOODS[*goods];
                let lines =
                    json!([{ "sku": one, "quantity": quantity }, { "sku": other, "quantity": 1 }]);
                (
                    "/v1/orders".to_owned(),
                    Some(json!({ "lines": lines, "email": "ada@example.com" })),
                )
            }
            Wish::Pay { order, card } => {
                let order = self.made("ord_", *order)?;
                (format!("/v1/orders/{order}/payments"), Some(json!({ "payment_method": card })))
            }
            Wish::Cancel { order } => {
                (format!("/v1/orders/{}/cancel", self.made("ord_", *order)?), None)
            }
            Wish::Receipt { order } => {
                (format!("/v1/orders/{}/receipts", self.made("ord_", *order)?), None)
            }
            Wish::Refund { payment, part } => {
                let payment = self.made("pay_", *payment)?;
                let amount = json!({ "amount": { "amount": 100, "currency": "USD" } });
                (format!("/v1/payments/{payment}/refunds"), part.then_some(amount))
            }
            Wish::Reuse { sent } => {
                let other = &self.sent[sent % self.sent.len()].request;
                let mut request = other.clone().json(&json!({ "lines": [], "note": key }));
                request.headers.dedup_by(|a, b| a.0 == b.0);
                return Some(request);
            }
        };
        let request = Request::new("POST", path)
            .header("authorization", format!("Bearer {}", self.token))
            .header("idempotency-key", key)
            .header("prefer", "wait=2");
        Some(match body {
            Some(body) => request.json(&body),
            None => request,
        })
    }

    /// The id of something that was made, counted from the latest.
    fn made(&self, prefix: &str, which: usize) -> Option<String> {
        let ids: Vec<String> = self
            .sent
            .iter()
            .filter(|sent| !sent.reuse)
            .filter_map(|sent| sent.reply.as_ref())
            .map(|reply| reply.text("id"))
            .filter(|id| id.starts_with(prefix))
            .collect();
        let last = ids.len().checked_sub(1)?;
        Some(ids[last - which % ids.len()].clone())
    }

    async fn send(&mut self, which: usize, how: How) -> Result<(), String> {
        let request = self.sent[which].request.clone();
        let port = self.shop.port();
        self.commands.push(format!("{} # {how:?}", shown(&request)));
        match how {
            How::Patiently => {
                let answer = request.ask(port).await.map_err(|error| error.to_string());
                self.judge(which, answer)?;
            }
            How::Aside => self.start(which, &request),
            How::Together => {
                for _ in 0..3 {
                    self.start(which, &request);
                }
                self.join().await?;
            }
            How::Torn(ms) => {
                if let Ok(call) = request.send(port).await {
                    tokio::time::sleep(Duration::from_millis(ms)).await;
                    call.reset();
                }
            }
            How::Killed(ms) => {
                let call = request.send(port).await;
                tokio::time::sleep(Duration::from_millis(ms)).await;
                drop(call);
                self.trouble(Trouble::Kill).await;
            }
        }
        Ok(())
    }

    fn start(&mut self, which: usize, request: &Request) {
        let (request, port) = (request.clone(), self.shop.port());
        self.aside.spawn(async move {
            (which, request.ask(port).await.map_err(|error| error.to_string()))
        });
    }

    async fn join(&mut self) -> Result<(), String> {
        while let Some(answered) = self.aside.join_next().await {
            let (which, answer) = answered.map_err(|error| error.to_string())?;
            self.judge(which, answer)?;
        }
        Ok(())
    }

    /// A stored reply never changes; what is not stored is one of the answers that pass.
    fn judge(&mut self, which: usize, answer: Result<Answer, String>) -> Result<(), String> {
        // A connection that broke says nothing.
        let Ok(answer) = answer else { return Ok(()) };
        self.commands.push(format!("#   k{which}: {}", answer.shown()));
        let sent = &mut self.sent[which];
        let stored = answer.header("idempotency-key-expires").is_some();
        match (&sent.reply, stored) {
            (Some(reply), true) => same(reply, &answer),
            (Some(_), false) if sent.reuse => Ok(()),
            (Some(reply), false) if answer.status == 503 => {
                // The database is up all the time in these histories.
                Err(format!("{} became {}", reply.shown(), answer.shown()))
            }
            (Some(reply), false) => Err(format!("{} became {}", reply.shown(), answer.shown())),
            (None, true) => {
                sent.reply = Some(answer);
                Ok(())
            }
            (None, false) => {
                let code = answer.text("code");
                let refused = matches!(answer.status, 404 | 422);
                let passes = PASSING.contains(&code.as_str()) || refused;
                passes
                    .then_some(())
                    .ok_or_else(|| format!("an answer that nobody expects: {}", answer.shown()))
            }
        }
    }

    /// Nothing goes wrong any more: every request gets its reply, and everything adds up.
    async fn settle(&mut self) -> Result<(), String> {
        self.join().await?;
        self.cache_again().await;
        self.control(json!({ "down": false, "latency_ms": 0, "hold_webhooks": false })).await;
        for which in 0..self.sent.len() {
            self.answered(which).await?;
        }
        self.adds_up().await?;
        // Once more, when all is said: the same bytes, from a process that remembers nothing.
        self.trouble(Trouble::Kill).await;
        for which in 0..self.sent.len() {
            self.answered(which).await?;
        }
        self.adds_up().await
    }

    async fn answered(&mut self, which: usize) -> Result<(), String> {
        let until = Instant::now() + SETTLED_AFTER;
        let request = self.sent[which].request.clone();
        let mut last = String::new();
        while Instant::now() < until {
            let answer = request.ask(self.shop.port()).await.map_err(|error| error.to_string());
            if let Ok(answer) = &answer {
                last = answer.shown();
            }
            let is_final = answer.as_ref().is_ok_and(|answer| {
                let passing = answer.status == 409 || answer.status == 503;
                answer.header("idempotency-key-expires").is_some() || !passing
            });
            // A card whose provider is never there is refused for now, for ever.
            let down =
                last.contains("provider_unavailable") && request.body.contains("pm_card_down");
            self.judge(which, answer)?;
            if is_final || down {
                return Ok(());
            }
            tokio::time::sleep(AGAIN).await;
        }
        Err(format!("k{which} is stuck: {last}"))
    }

    async fn adds_up(&self) -> Result<(), String> {
        let until = Instant::now() + SETTLED_AFTER;
        let mut conn = self.database.connect().await;
        loop {
            let wrong = invariants::broken(&mut conn).await;
            match wrong.first() {
                None => return Ok(()),
                Some(wrong) if Instant::now() > until => return Err(wrong.clone()),
                Some(_) => tokio::time::sleep(AGAIN).await,
            }
        }
    }
}

fn same(reply: &Answer, answer: &Answer) -> Result<(), String> {
    let header = |name| reply.header(name) == answer.header(name);
    let same = reply.status == answer.status
        && reply.body == answer.body
        && header("location")
        && header("content-type")
        && header("content-digest")
        && header("idempotency-key-expires");
    same.then_some(()).ok_or_else(|| format!("{} became {}", reply.shown(), answer.shown()))
}

fn shown(request: &Request) -> String {
    let headers: String = request
        .headers
        .iter()
        .map(|(name, value)| match *name {
            "authorization" => " -H \"authorization: Bearer $TOKEN\"".to_owned(),
            _ => format!(" -H '{name}: {value}'"),
        })
        .collect();
    let body = match request.body.is_empty() {
        true => String::new(),
        false => format!(" -d '{}'", request.body),
    };
    format!("curl -X {} $SHOP{}{headers}{body}", request.method, request.path)
}
