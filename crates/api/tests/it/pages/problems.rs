//! Where the `type` of a problem leads.

use api::problem::Code;

use super::Browser;
use crate::app::TestApp;

#[tokio::test]
async fn every_code_has_its_page_and_the_index_has_every_code() {
    let app = TestApp::start().await;
    let browser = Browser::new(&app);
    let index = browser.get("/problems").await.expect(200);
    for code in Code::ALL {
        index.says(&format!("href=\"{}\"", code.page()));
        let page = browser.get(&code.page()).await.expect(200);
        assert_eq!(page.heading().replace("&#39;", "'"), code.title());
        for words in [code.means(), code.advice()] {
            assert!(words.len() > 20, "{code:?}");
        }
    }
    browser.get("/problems/nothing").await.expect(404);
    assert_eq!(app.number("select count(*) from account where role = 'guest'").await, 0);
    app.finish().await;
}

#[tokio::test]
async fn the_type_of_a_refusal_leads_to_its_page() {
    let app = TestApp::start().await;
    let refused = app.anonymous().get("/v1/orders").await.problem(401, "unauthenticated");
    let page = Browser::new(&app).get(&refused.text("type")).await.expect(200);
    page.says("Who is asking is not known.");
    let lost = Browser::new(&app).get("/orders/nothing").await.expect(404);
    lost.says("href=\"/problems/not_found\"");
    app.finish().await;
}
