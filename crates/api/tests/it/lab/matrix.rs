//! The matrix in a browser: it fills while one looks, opens by keyboard, and Payonce's row is green.

use serde_json::json;

use super::clicked::Visit;
use crate::chromium::{Habits, key};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: scripts/soak lab runs it"]
async fn the_matrix_fills_while_one_looks_and_payonces_row_is_green() {
    let visit = Visit::new(Habits::default()).await;
    let browser = &visit.browser;
    browser.go("/lab/matrix").await;
    browser.click("form[action='/lab/matrix'] button").await;
    browser.until("document.getElementById('matrix').dataset.running").await;
    browser.says("window.same = 'page'").await;
    let done = "document.querySelectorAll('.matrix td a').length";
    for cells in [1, 20, 40, 60, 77] {
        for _ in 0..10 {
            if browser.says(&format!("{done} >= {cells}")).await == true {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_secs(6)).await;
        }
        browser.until(&format!("{done} >= {cells}")).await;
    }
    // It was filled in place, not loaded again.
    assert_eq!(browser.says("window.same").await, "page");
    let rows = "[...document.querySelectorAll('.matrix tbody tr')].map((tr) => \
                tr.querySelectorAll('td.twice, td.unsure').length)";
    let red: Vec<u64> = serde_json::from_value(browser.says(rows).await).unwrap();
    assert_eq!(red.len(), 7);
    assert_eq!(red[6], 0, "Payonce: {red:?}");
    assert!(red[..6].iter().all(|cells| *cells > 0), "{red:?}");
    browser.says("document.querySelector('.matrix td a').focus()").await;
    browser.keys(&[key::RIGHT, key::DOWN]).await;
    assert_eq!(browser.text("#p-says").await, "Ada was charged twice, $84.00");
    browser.keys(&[key::ENTER]).await;
    browser.until("document.querySelector('.verdict')").await;
    assert_eq!(browser.says("document.querySelectorAll('.code .ln.bad').length > 0").await, true);
    let fields = "['left', 'right', 'fault'].map((id) => document.getElementById(id).value)";
    assert_eq!(browser.says(fields).await, json!(["button", "", "network"]));
    visit.end().await;
}
