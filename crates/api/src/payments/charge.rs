//! A payment as an errand: how the provider is asked for its charge, and what its rows do meanwhile.

use domain::{ChargeOutcome, PaymentId};
use idempotency::Finished;
use idempotency::postgres::Attempt;
use sqlx::PgConnection;
use tokio::time::Instant;
use uuid::Uuid;

use super::{Payment, settle, sql};
use crate::app::App;
use crate::operation::{Stop, outcome_unknown};
use crate::orders;
use crate::problem::Problem;
use crate::provider::client::{Answer, ChargeRequest, ProviderClient, Unreachable};
use crate::provider::converse::{Errand, Points};
use crate::two_phase::TwoPhase;

impl Errand for Payment {
    type Outcome = ChargeOutcome;
    const NAME: &'static str = "charge";
    const POINTS: Points = Points { before_send: "before_send", after_send: "after_send" };

    fn payment(&self) -> PaymentId {
        self.id
    }

    fn may_be_called_off(&self) -> bool {
        true
    }

    async fn send(&self, provider: &ProviderClient) -> Answer<ChargeOutcome> {
        let request = self.request();
        #[cfg(feature = "faults")]
        let request = super::planted::request(&request);
        let answer = provider.charge(&request).await;
        if let Answer::Settled(outcome) = &answer {
            tracing::info!(target: "payonce::flow", step = "charged",
                outcome = outcome.status().as_str(), "the provider has answered");
        }
        answer
    }

    async fn find(
        &self,
        provider: &ProviderClient,
    ) -> Result<Option<Option<ChargeOutcome>>, Unreachable> {
        provider.charged(&self.request()).await
    }

    async fn call_off(&self, provider: &ProviderClient) -> Answer<ChargeOutcome> {
        provider.cancel_charge(&self.request()).await
    }

    fn refused(reason: String) -> Problem {
        Problem::invalid("/payment_method", reason)
    }
}

impl Payment {
    fn request(&self) -> ChargeRequest {
        ChargeRequest {
            provider_key: self.provider_key.clone(),
            reference: self.order_id.to_string(),
            amount: self.amount,
            payment_method: self.payment_method.clone(),
        }
    }
}

impl TwoPhase for Payment {
    const ANSWERED: &'static str = "answered";

    async fn read(conn: &mut PgConnection, subject: Uuid) -> sqlx::Result<Option<Self>> {
        sql::get(conn, PaymentId::from_uuid(subject)).await
    }

    async fn lose_answer(&mut self, conn: &mut PgConnection) -> sqlx::Result<()> {
        if let Ok(unknown) = self.status.lose_answer() {
            sql::set_status(conn, self.id, self.status, unknown).await?;
            self.status = unknown;
        }
        Ok(())
    }

    async fn take_back(&self, conn: &mut PgConnection) -> sqlx::Result<()> {
        orders::sql::unlink_payment(conn, self.order_id, self.id).await?;
        sql::delete_unsent(conn, self.id).await?;
        Ok(())
    }

    async fn settle(
        &self,
        app: &App,
        attempt: &Attempt,
        outcome: ChargeOutcome,
        until: Instant,
    ) -> Result<Finished, Stop> {
        settle::settle(app, attempt, self, &outcome, until).await
    }

    fn unknown(subject: Uuid) -> Problem {
        let id = PaymentId::from_uuid(subject).to_string();
        let path = format!("/v1/payments/{id}");
        outcome_unknown().member("payment_id", id).resource(&path)
    }
}
