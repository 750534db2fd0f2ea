//! The merchant's statement: every movement of money, carried to a balance, and the proof.

use api::catalog::demo;

use super::Browser;
use crate::app::{Caller, TestApp};

async fn merchant(app: &TestApp) -> Browser {
    let browser = Browser::new(app);
    browser.sign_in(demo::MERCHANT, demo::PASSWORD).await.leads_to();
    browser
}

async fn paid(shopper: &Caller, key: &str, sku: &str) -> (String, String) {
    let order = shopper.ordered(&format!("o-{key}"), &[(sku, 1)]).await;
    let order = order["id"].as_str().unwrap().to_owned();
    let payment = shopper.pay(&order, &format!("p-{key}"), "pm_card_ok").await.expect(201);
    (order, payment.text("id"))
}

/// The cells of the last column, from the opening to the closing balance.
fn balances(html: &str) -> Vec<&str> {
    let cells = html.split("<td class=\"n b\">").skip(1);
    cells.map(|rest| rest.split("</td>").next().unwrap()).collect()
}

#[tokio::test]
async fn the_merchant_sees_every_movement_and_what_the_accounts_come_to() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let (order, payment) = paid(&shopper, "mug", "enamel-mug").await;
    paid(&shopper, "book", "order-book").await;
    paid(&shopper, "tin", "sencha-tin").await;
    let part = serde_json::json!({ "amount": { "amount": 500, "currency": "USD" } });
    let refunds = format!("/v1/payments/{payment}/refunds");
    let refund = shopper.post(&refunds, "refund", &part).await.expect(201).text("id");

    let browser = merchant(&app).await;
    browser.get("/").await.says("href=\"/statement\"");
    let sheet = browser.get("/statement").await.expect(200);
    assert_eq!(balances(sheet.html()), ["$0.00", "$18.00", "$30.00", "$25.00", "$25.00"]);
    for link in [&format!("/orders/{order}"), &format!("/inspect?q={payment}")] {
        sheet.says(&format!("href=\"{link}\""));
        browser.get(link).await.expect(200);
    }
    browser.get(&format!("/inspect?q={refund}")).await.says("Charged once, $18.00");
    sheet.says("<dt>Sum</dt><dd class=\"o-once\">$0.00</dd>");

    let sales = browser.get("/statement?account=sales&currency=USD").await.expect(200);
    assert_eq!(balances(sales.html()), ["$0.00", "-$18.00", "-$30.00", "-$30.00"]);
    let yen = browser.get("/statement?account=provider_clearing&currency=JPY").await.expect(200);
    assert_eq!(balances(yen.html()), ["¥0", "¥3,200", "¥3,200"]);
    app.finish().await;
}

#[tokio::test]
async fn older_sheets_end_where_the_newer_ones_begin() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    for number in 0..60 {
        paid(&shopper, &number.to_string(), "order-book").await;
    }
    let browser = merchant(&app).await;
    let mut path = "/statement".to_owned();
    let (mut lines, mut sheets, mut expected) = (0, 0, "$720.00".to_owned());
    loop {
        let sheet = browser.get(&path).await.expect(200);
        let column = balances(sheet.html());
        assert_eq!(*column.last().unwrap(), expected);
        expected = column[0].to_owned();
        lines += column.len() - 2;
        sheets += 1;
        let Some(older) = sheet
            .html()
            .split("\">Older entries")
            .next()
            .filter(|before| before.len() < sheet.html().len())
        else {
            break;
        };
        path = older.rsplit("href=\"").next().unwrap().replace("&#38;", "&").replace("&amp;", "&");
    }
    assert_eq!((lines, sheets, &*expected), (60, 3, "$0.00"));
    app.finish().await;
}

#[tokio::test]
async fn the_statement_is_the_merchants_and_nobody_elses() {
    let app = TestApp::start().await;
    let nobody = Browser::new(&app);
    let page = nobody.get("/statement").await.expect(403);
    assert_eq!(page.heading(), "This is not for this account");
    assert_eq!(app.number("select count(*) from account where role = 'guest'").await, 0);
    nobody.get("/").await.expect(200);
    nobody.get("/statement").await.expect(403);
    nobody.sign_in(demo::SHOPPER, demo::PASSWORD).await.leads_to();
    nobody.get("/statement").await.expect(403);
    assert!(!nobody.get("/").await.html().contains("/statement"));
    let browser = merchant(&app).await;
    browser.get("/statement").await.says("No money has moved here yet.");
    for nothing in ["?account=cash", "?currency=XXX", "?cursor=x"] {
        browser.get(&format!("/statement{nothing}")).await.expect(404);
    }
    app.finish().await;
}

#[tokio::test]
async fn the_sheet_adds_up_while_money_moves() {
    let app = TestApp::start().await;
    let browser = merchant(&app).await;
    let shopper = app.shopper().await;
    let paying = tokio::spawn(async move {
        for number in 0..40 {
            paid(&shopper, &number.to_string(), "order-book").await;
        }
    });
    let mut looks = 0;
    while !paying.is_finished() {
        let sheet = browser.get("/statement").await.expect(200);
        sheet.says("<dt>Sum</dt><dd class=\"o-once\">$0.00</dd>");
        let column = balances(sheet.html());
        if let Some(closing) = column.last() {
            sheet.says(&format!("<dt>Held by the provider</dt><dd>{closing}</dd>"));
            looks += 1;
        }
    }
    paying.await.unwrap();
    assert!(looks > 0);
    app.finish().await;
}
