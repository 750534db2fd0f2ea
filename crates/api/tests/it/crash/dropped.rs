//! Futures that are dropped after every number of polls: nothing is half done, nothing is stuck,
//! and no connection comes back with a transaction open.

use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use api::operation::{self, Answer, Asked, Operation};
use api::orders::cancel::Cancel;
use api::orders::create::{self as orders, CreateOrder};
use api::payments::create::{self as payments, CreatePayment};
use api::problem::Code;
use idempotency::fingerprint::Body;
use idempotency::{Claim, Identity, Key, Parts};

use crate::app::{Caller, TestApp, eventually};

/// Nobody is owed an answer here, so a dead holder may be cheap.
const LEASE_MS: u64 = 400;
const SWEEP_MAX: Duration = Duration::from_secs(120);
const POLLS_MAX: usize = 500;

/// What is dropped: the request that watches, or the work itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dropped {
    Request,
    Work,
}

/// Polls at most `polls` times, then drops; what it came to if it ended before.
async fn ended_within<F: Future>(polls: usize, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = polls;
    std::future::poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

fn claim(app: &TestApp, caller: &Caller, path: &str, key: &str) -> Claim {
    let identity =
        Identity { scope: caller.account().scope(), key: Key::from_bare(key.as_bytes()).unwrap() };
    let parts = Parts { method: "POST", path, query: "", content_type: None, body: Body::Empty };
    app.app().fingerprinter.claim(identity, parts, &[])
}

fn asked(claim: &Claim, path: &str) -> Asked {
    let (claim, path) = (claim.clone(), path.to_owned());
    Asked { claim, path, wait: Duration::from_secs(5), arrived: tokio::time::Instant::now() }
}

/// One operation under one key: dropped after `polls`, then sent again until it is answered.
/// `true` if it was not dropped but ended.
async fn drop_and_repeat<O: Operation>(
    app: &TestApp,
    caller: &Caller,
    (path, key): (&str, &str),
    (polls, dropped): (usize, Dropped),
    operation: impl Fn() -> O,
) -> bool {
    let claim = claim(app, caller, path, key);
    let ended = match dropped {
        Dropped::Request => {
            let work = operation::perform(app.app(), asked(&claim, path), operation());
            ended_within(polls, work).await.is_some()
        }
        Dropped::Work => match ended_within(polls, operation().execute(app.app(), &claim)).await {
            None => false,
            Some(Ok(_)) => true,
            Some(Err(stop)) => panic!("after {polls} polls: {stop:?}"),
        },
    };
    eventually("the key is settled", async || {
        let answer = operation::perform(app.app(), asked(&claim, path), operation()).await;
        match answer {
            Answer::Finished(finished, _) => {
                assert!(finished.reply.status() < 300, "{finished:?}");
                true
            }
            Answer::Problem(problem) => {
                assert!(problem.code != Code::Internal, "{problem:?}");
                false
            }
        }
    })
    .await;
    ended
}

async fn no_transaction_is_left_open(app: &TestApp) {
    let open = "select count(*) from pg_stat_activity where datname = current_database()
                and state like 'idle in transaction%'";
    eventually("no transaction is left open", async || app.number(open).await == 0).await;
}

/// Every number of polls until the operation ends before it is dropped.
async fn sweep(dropped: Dropped, what: &str, turn: impl AsyncFn(&TestApp, &Caller, usize) -> bool) {
    let app = TestApp::with(|options| options.lease_ms(LEASE_MS)).await;
    let shopper = app.shopper().await;
    let sweeping = async {
        for polls in 1..POLLS_MAX {
            let ended = turn(&app, &shopper, polls).await;
            no_transaction_is_left_open(&app).await;
            if ended {
                eprintln!("{what}, {dropped:?}: dropped after each of {} polls", polls - 1);
                assert!(polls > 1, "it was never dropped");
                return;
            }
        }
        panic!("{what} does not end");
    };
    tokio::time::timeout(SWEEP_MAX, sweeping).await.expect("a sweep ends in time");
    app.finish().await;
}

async fn order(app: &TestApp, caller: &Caller, polls: usize, dropped: Dropped) -> bool {
    let key = format!("order-{polls}");
    let wish = || {
        let body: CreateOrder =
            serde_json::from_value(crate::app::basket(&[("enamel-mug", 1)])).unwrap();
        orders::Create { account: caller.account().clone(), cart: None, body: Ok(body) }
    };
    drop_and_repeat(app, caller, ("/v1/orders", &key), (polls, dropped), wish).await
}

async fn payment(app: &TestApp, caller: &Caller, polls: usize, dropped: Dropped) -> bool {
    let order = caller.order(&format!("paid-{polls}")).await;
    let path = format!("/v1/orders/{order}/payments");
    let wish = || payments::Create {
        account: caller.account().clone(),
        order: Ok(order.parse().unwrap()),
        body: Ok(CreatePayment { payment_method: "pm_card_ok".to_owned(), amount: None }),
    };
    let key = format!("pay-{polls}");
    let ended = drop_and_repeat(app, caller, (&path, &key), (polls, dropped), wish).await;
    assert_eq!(app.captures(&order).await, 1);
    ended
}

async fn cancel(app: &TestApp, caller: &Caller, polls: usize, dropped: Dropped) -> bool {
    let order = caller.order(&format!("cancelled-{polls}")).await;
    let path = format!("/v1/orders/{order}/cancel");
    let wish = || Cancel {
        account: caller.account().clone(),
        order: Ok(order.parse().unwrap()),
        body: Ok(()),
    };
    let key = format!("cancel-{polls}");
    drop_and_repeat(app, caller, (&path, &key), (polls, dropped), wish).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_dropped_at_any_poll_is_placed_once() {
    for dropped in [Dropped::Request, Dropped::Work] {
        sweep(dropped, "order", async |app, caller, polls| {
            order(app, caller, polls, dropped).await
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_dropped_at_any_poll_charges_once() {
    for dropped in [Dropped::Request, Dropped::Work] {
        sweep(dropped, "payment", async |app, caller, polls| {
            payment(app, caller, polls, dropped).await
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_dropped_at_any_poll_returns_the_goods_once() {
    for dropped in [Dropped::Request, Dropped::Work] {
        sweep(dropped, "cancel", async |app, caller, polls| {
            cancel(app, caller, polls, dropped).await
        })
        .await;
    }
}
