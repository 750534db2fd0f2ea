//! Insert first: a row `processing` under a primary key before any money moves, three commits in
//! all. A nightly job deletes keys that are older than a day.

use crate::lab::shop::{Answer, Paid, Purchase, Refused, Row, Shop};

pub(super) async fn pay(shop: &Shop, purchase: &Purchase) -> Answer {
    let row = shop.insert_processing(&purchase.key).await?; // !race !day
    match row {
        Row::Mine => work(shop, purchase).await,
        Row::Done(answer) => answer.again(),         // !cart
        Row::Processing => Err(Refused::InProgress), // !crash
    }
}

async fn work(shop: &Shop, purchase: &Purchase) -> Answer {
    let charge = match shop.charge(purchase).await {
        Ok(charge) => charge,
        Err(refused) => {
            shop.set_done(&purchase.key, &Err(refused.clone())).await?; // !card
            return Err(refused);
        }
    };
    shop.set_charged(&purchase.key).await?;
    let order = shop.order(purchase, &charge).await?;
    let answer = Ok(Paid::now(order, charge, purchase));
    shop.set_done(&purchase.key, &answer).await?;
    answer
}
