//! A refund as the provider is asked for it.

use domain::{PaymentId, RefundOutcome};

use super::Refund;
use crate::problem::Problem;
use crate::provider::client::{Answer, ProviderClient, RefundRequest, Unreachable};
use crate::provider::converse::{Errand, Points};

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
        let request = RefundRequest {
            provider_key: self.provider_key.clone(),
            charge: self.charge_key.clone(),
            amount: self.amount,
            reference: self.order_id.to_string(),
        };
        provider.refund(&request).await
    }

    async fn find(
        &self,
        provider: &ProviderClient,
    ) -> Result<Option<Option<RefundOutcome>>, Unreachable> {
        let refund = provider.find_refund(&self.provider_key).await?;
        Ok(refund.map(|refund| refund.outcome))
    }

    async fn call_off(&self, provider: &ProviderClient) -> Answer<RefundOutcome> {
        provider.cancel_refund(&self.provider_key).await
    }

    fn refused(reason: String) -> Problem {
        Problem::invalid("/amount", reason)
    }
}
