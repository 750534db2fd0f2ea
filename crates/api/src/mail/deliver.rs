//! Mails on their way out. A request queues a mail and never waits for one.

use sqlx::PgConnection;

use super::smtp::Failure;
use super::sql::{self, Due};
use crate::app::App;
use crate::courier::{Counts, Courier, pause_seconds, run_once as run};
use crate::db;
use crate::fault;

/// Half a day in all; then the mail is dead.
const SCHEDULE_SECONDS: &[f64] =
    &[5.0, 15.0, 60.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 14_400.0, 14_400.0];

/// Carries mails.
pub struct Mails;

impl Courier for Mails {
    type Due = Due;
    const NAME: &'static str = "mail";
    const AT_ONCE: usize = 8;

    async fn claim(conn: &mut PgConnection) -> sqlx::Result<Option<Due>> {
        sql::claim(conn).await
    }

    async fn deliver(app: App, due: Due) -> bool {
        fault::at("mail_claimed").await;
        let sent = app.mailer.send(&due).await;
        fault::at("mail_sent").await;
        if let Err(error) = db::retrying(|| note(&app, &due, &sent)).await {
            // The lease runs out, and it is sent again under the same Message-ID.
            tracing::warn!(%error, "could not write down what came of a mail");
        }
        fault::at("mail_noted").await;
        sent.is_ok()
    }
}

/// Sends everything that is due now.
///
/// # Errors
/// Those of the database while looking for work.
pub async fn run_once(app: &App) -> sqlx::Result<Counts> {
    run::<Mails>(app).await
}

async fn note(app: &App, due: &Due, sent: &Result<(), Failure>) -> sqlx::Result<()> {
    let mut conn = app.db.connection().await?;
    let noted = match sent {
        Ok(()) => sql::sent(&mut conn, due).await,
        Err(Failure { reason, permanent }) => {
            let pause = pause_seconds(due.attempts, SCHEDULE_SECONDS).filter(|_| !permanent);
            tracing::info!(mail = %due.id, attempts = due.attempts, reason,
                dead = pause.is_none(), "a mail did not go out");
            sql::failed(&mut conn, due, reason, pause).await
        }
    };
    conn.end(noted).map(drop)
}
