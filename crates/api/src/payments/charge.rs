//! A charge as the provider is asked for it.

use domain::{ChargeOutcome, PaymentId};

use super::Payment;
use crate::problem::Problem;
use crate::provider::client::{Answer, ChargeRequest, ProviderClient, Unreachable};
use crate::provider::converse::{Errand, Points};

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
        let request = ChargeRequest {
            provider_key: self.provider_key.clone(),
            reference: self.order_id.to_string(),
            amount: self.amount,
            payment_method: self.payment_method.clone(),
        };
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
        let charge = provider.find_charge(&self.provider_key).await?;
        Ok(charge.map(|charge| charge.outcome))
    }

    async fn call_off(&self, provider: &ProviderClient) -> Answer<ChargeOutcome> {
        provider.cancel_charge(&self.provider_key).await
    }

    fn refused(reason: String) -> Problem {
        Problem::invalid("/payment_method", reason)
    }
}
