//! A server of the lab: one route for each guard, on a port of its own, on loopback only.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use actix_web::dev::ServerHandle;
use actix_web::web::{self, Data, Json, Path};
use actix_web::{App as Web, HttpRequest, HttpResponse, HttpServer};
use serde::{Deserialize, Serialize};
use tracing::Instrument as _;

use super::guards;
use super::shop::{Purchase, Shop};
use super::spec::Guard;
use crate::app::{App, Ingredients};
use crate::config::{Limits, Mail, Timing};
use crate::provider::client::ProviderClient;

/// How long an answer that gets lost is held back: longer than any client waits.
const SWALLOWED: Duration = Duration::from_secs(5);
/// Short, so that nobody has to wait half a minute to see a lease run out.
const LEASE: Duration = Duration::from_secs(4);

/// What a server is made from; a process of its own gets it on its standard input.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Plan {
    pub(super) name: String,
    pub(super) database_url: String,
    pub(super) redis_url: Option<String>,
    pub(super) provider_url: String,
    pub(super) secret: [u8; 32],
    pub(super) db_connections: usize,
}

/// A server that answers.
pub(super) struct LabServer {
    pub(super) url: String,
    pub(super) app: App,
    handle: ServerHandle,
}

#[derive(Clone)]
struct Tools {
    name: String,
    app: App,
    redis: Option<deadpool_redis::Pool>,
}

impl LabServer {
    pub(super) async fn start(plan: Plan) -> anyhow::Result<Self> {
        let http = crate::serve::http()?;
        let timing = timing();
        let redis = plan.redis_url.as_deref().map(pool).transpose()?;
        let app = App::new(Ingredients {
            database_url: plan.database_url,
            db_connections: plan.db_connections,
            threads: 1,
            redis_url: plan.redis_url,
            secret: plan.secret,
            provider: ProviderClient::new(&plan.provider_url, http, timing.provider_timeout),
            limits: timing,
            clients: Limits::default(),
            demo: true,
            metrics_open: false,
            webhook_secrets: Vec::new(),
            allow_loopback_webhooks: false,
            // Nothing sends mails here; they are counted.
            mail: Mail { smtp_url: None, from: "Payonce <lab@payonce.test>".parse()? },
        })
        .await?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let url = format!("http://{}", listener.local_addr()?);
        let tools = Data::new(Tools { name: plan.name, app: app.clone(), redis });
        let server = HttpServer::new(move || {
            Web::new().app_data(tools.clone()).route("/lab/api/{guard}/pay", web::post().to(pay))
        })
        .workers(1)
        .disable_signals()
        .shutdown_timeout(1)
        .listen(listener)?
        .run();
        let handle = server.handle();
        tokio::spawn(server);
        Ok(Self { url, app, handle })
    }

    pub(super) async fn stop(&self) {
        self.handle.stop(false).await;
        self.app.db.close();
    }
}

/// The usual proportions on a shorter scale.
fn timing() -> Timing {
    Timing {
        lease: LEASE,
        deadline: Duration::from_millis(3500),
        provider_timeout: Duration::from_secs(3),
        retention: Duration::from_hours(24),
        reservation: Duration::from_mins(15),
        recover_every: Duration::from_secs(2),
        grace: Duration::from_secs(1),
    }
}

pub(super) fn pool(url: &str) -> anyhow::Result<deadpool_redis::Pool> {
    let config = deadpool_redis::Config::from_url(url);
    Ok(config.create_pool(Some(deadpool_redis::Runtime::Tokio1))?)
}

/// Presses that are being served, by run: a client that gives up does not end them.
static WORKING: Mutex<BTreeMap<String, usize>> = Mutex::new(BTreeMap::new());

/// Whether a server of this process is still at a press of this run.
pub(super) fn is_working(run: &str) -> bool {
    WORKING.lock().unwrap_or_else(PoisonError::into_inner).contains_key(run)
}

/// One press that is being served.
struct Working(String);

impl Working {
    fn on(run: &str) -> Self {
        let mut working = WORKING.lock().unwrap_or_else(PoisonError::into_inner);
        *working.entry(run.to_owned()).or_default() += 1;
        Self(run.to_owned())
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        let mut working = WORKING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(presses) = working.get_mut(&self.0) {
            *presses -= 1;
            if *presses == 0 {
                working.remove(&self.0);
            }
        }
    }
}

async fn pay(
    tools: Data<Tools>,
    request: HttpRequest,
    guard: Path<Guard>,
    purchase: Json<Purchase>,
) -> HttpResponse {
    let (guard, purchase) = (guard.into_inner(), purchase.into_inner());
    let header = |name: &str| {
        request
            .headers()
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
            .to_owned()
    };
    let press = header("x-lab-press");
    // Of a crowd, only those who retry are drawn.
    let run = if press == "0" { String::new() } else { purchase.run.clone() };
    let span = tracing::info_span!(target: "payonce::flow", "press", run, press,
        server = tools.name, customer = purchase.customer);
    let shop =
        Shop { app: tools.app.clone(), redis: tools.redis.clone(), run: purchase.run.clone() };
    let working = Working::on(&purchase.run);
    let answer = tools.app.runtime_spawn(
        async move {
            let _working = working;
            guards::pay(guard, &shop, &purchase).await
        }
        .instrument(span),
    );
    let answer = answer.await;
    if header("x-lab-lose") == "1" {
        tokio::time::sleep(SWALLOWED).await;
    }
    match answer {
        Ok(answer) => HttpResponse::Ok().json(answer),
        Err(_) => HttpResponse::InternalServerError().finish(),
    }
}
