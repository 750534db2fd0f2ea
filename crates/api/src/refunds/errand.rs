//! A refund as an errand: how the provider is asked for it, and what its rows do meanwhile.

use domain::{PaymentId, RefundId, RefundOutcome};
use idempotency::Finished;
use idempotency::postgres::Attempt;
use sqlx::PgConnection;
use tokio::time::Instant;
use uuid::Uuid;

use super::{Refund, settle, sql};
use crate::app::App;
use crate::operation::{Stop, outcome_unknown};
use crate::problem::Problem;
use crate::provider::client::{Answer, ProviderClient, RefundRequest, Unreachable};
use crate::provider::converse::{Errand, Points};
use crate::two_phase::TwoPhase;

impl Errand for Refund {
    type Outcome = RefundOutcome;
    const NAME: &'static str = "refund";
    const POINTS: Points =
        Points { before_send: "refund_before_send", after_send: "refund_after_send" };

    fn payment(&self) -> PaymentId {
        self.payment_id
    }

    /// Money that went astray goes back however long it takes: nobody is there to ask again.
    fn may_be_called_off(&self) -> bool {
        !self.automatic
    }

    async fn send(&self, provider: &ProviderClient) -> Answer<RefundOutcome> {
        provider.refund(&self.request()).await
    }

    async fn find(
        &self,
        provider: &ProviderClient,
    ) -> Result<Option<Option<RefundOutcome>>, Unreachable> {
        provider.refunded(&self.request()).await
    }

    async fn call_off(&self, provider: &ProviderClient) -> Answer<RefundOutcome> {
        provider.cancel_refund(&self.request()).await
    }

    fn refused(reason: String) -> Problem {
        Problem::invalid("/amount", reason)
    }
}

impl Refund {
    fn request(&self) -> RefundRequest {
        RefundRequest {
            provider_key: self.provider_key.clone(),
            charge: self.charge_key.clone(),
            amount: self.amount,
            reference: self.order_id.to_string(),
        }
    }
}

impl TwoPhase for Refund {
    const ANSWERED: &'static str = "refund_answered";

    async fn read(conn: &mut PgConnection, subject: Uuid) -> sqlx::Result<Option<Self>> {
        sql::get(conn, RefundId::from_uuid(subject)).await
    }

    async fn lose_answer(&mut self, conn: &mut PgConnection) -> sqlx::Result<()> {
        if let Ok(unknown) = self.status.lose_answer() {
            sql::set_status(conn, self.id, self.status, unknown).await?;
            self.status = unknown;
        }
        Ok(())
    }

    async fn take_back(&self, conn: &mut PgConnection) -> sqlx::Result<()> {
        sql::delete_unsent(conn, self.id).await?;
        Ok(())
    }

    async fn settle(
        &self,
        app: &App,
        attempt: &Attempt,
        outcome: RefundOutcome,
        until: Instant,
    ) -> Result<Finished, Stop> {
        settle::settle(app, attempt, self, &outcome, until).await
    }

    fn unknown(subject: Uuid) -> Problem {
        let id = RefundId::from_uuid(subject).to_string();
        let path = format!("/v1/refunds/{id}");
        outcome_unknown().member("refund_id", id).resource(&path)
    }
}
