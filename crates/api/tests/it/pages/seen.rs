//! Every page as it is seen: on a phone and a desk, in the dark, by keyboard, without a network
//! beyond the shop's own.

use crate::app::TestApp;
use crate::chromium::{Chromium, Habits, key};
use crate::redis::TestRedis;

/// Pages that need nothing to have happened.
const PAGES: [&str; 27] = [
    "/",
    "/cart",
    "/checkout",
    "/orders",
    "/inspect",
    "/inspect?q=9c4e",
    "/mailbox",
    "/sign-in",
    "/orders/nothing-here",
    "/docs/",
    "/problems",
    "/problems/order_already_paid",
    "/statement",
    "/lab",
    "/lab/matrix",
    "/lab/plan",
    "/learn",
    "/learn/2",
    "/learn/3",
    "/learn/4",
    "/learn/5",
    "/learn/6",
    "/learn/7",
    "/learn/8",
    "/learn/9",
    "/learn/10",
    "/learn/red-flags",
];

struct Visit {
    app: TestApp,
    browser: Chromium,
    paths: Vec<String>,
    _redis: TestRedis,
}

impl Visit {
    /// Buys with several cards and runs an experiment, so that there is a page of every kind.
    async fn new() -> Self {
        let (app, redis) = (TestApp::start().await, TestRedis::start(None).await);
        let lab = api::lab::Lab::new(crate::lab::recipe(&app.database, &redis));
        assert!(app.app().lab.set(lab).is_ok());
        let browser = Chromium::at(&app.server.base_url(), Habits::default()).await;
        let mut paths: Vec<String> = PAGES.map(str::to_owned).into();
        for card in ["pm_card_ok", "pm_card_declined", "pm_card_down"] {
            let order = buy(&browser, card).await;
            paths.push(format!("/inspect?q={}", order.trim_start_matches("/orders/")));
            paths.push(order);
        }
        browser.go("/lab?left=none&right=payonce&fault=double").await;
        browser.click("#run-for-me").await;
        browser.until("document.querySelector('.verdict')").await;
        paths.push(browser.path().await);
        let present = browser
            .says("document.querySelector('a[href^=\"/lab/present\"]').getAttribute('href')");
        let present = present.await.as_str().unwrap().to_owned();
        paths.push(format!("{present}&step=3"));
        paths.push(format!("{present}&step=99"));
        // Something in the cart again.
        take_one(&browser).await;
        Self { app, browser, paths, _redis: redis }
    }

    async fn end(self) {
        self.app.app().lab.get().unwrap().stop().await;
        drop(self.browser);
        self.app.finish().await;
    }
}

/// Puts a bell into the empty cart.
async fn take_one(browser: &Chromium) {
    browser.go("/").await;
    browser.click("form[action='/cart'] button").await;
    browser.until("document.querySelector('.cartlink').textContent.includes('(1)')").await;
}

async fn buy(browser: &Chromium, card: &str) -> String {
    take_one(browser).await;
    browser.go("/checkout").await;
    browser.fill("input[type=email]", "ada@example.com").await;
    browser.click(&format!("label[for={card}]")).await;
    browser.click("button.pay").await;
    browser.until("location.pathname.startsWith('/orders/')").await;
    browser.path().await
}

#[tokio::test(flavor = "multi_thread")]
async fn no_page_is_wider_than_its_window_and_none_asks_for_anything_outside() {
    let visit = Visit::new().await;
    let (browser, base) = (&visit.browser, visit.app.server.base_url());
    let mut faults = Vec::new();
    browser.requests().await;
    for (width, height) in [(320, 640), (360, 800), (1280, 860)] {
        browser.resize(width, height).await;
        for path in &visit.paths {
            browser.go(path).await;
            let wide = "document.documentElement.scrollWidth - innerWidth";
            let too_wide = browser.says(wide).await.as_f64().unwrap();
            if too_wide > 0.0 && path != "/docs/" {
                faults.push(format!("{path} at {width}: {too_wide} too wide"));
            }
        }
    }
    let requests = browser.requests().await;
    assert!(requests.len() > 3 * visit.paths.len());
    let own = |url: &str| url.starts_with(&base) || url.starts_with("data:");
    faults
        .extend(requests.into_iter().filter(|url| !own(url)).map(|url| format!("asks for {url}")));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    visit.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_tab_leads_to_shows_that_it_is_there() {
    let visit = Visit::new().await;
    let browser = &visit.browser;
    let mut faults = Vec::new();
    let outlined = "(() => { const here = document.activeElement; if (here === document.body) return ''; \
                    const label = here.closest('label'); \
                    const seen = (e) => e && getComputedStyle(e).outlineStyle !== 'none' \
                                     && parseFloat(getComputedStyle(e).outlineWidth) >= 2; \
                    return (seen(here) || seen(label)) ? 'yes' : here.outerHTML.slice(0, 120); })()";
    for path in visit.paths.iter().filter(|path| *path != "/docs/") {
        browser.go(path).await;
        for _ in 0..12 {
            browser.keys(&[key::TAB]).await;
            let told = browser.says(outlined).await;
            if told != "yes" && told != "" {
                faults.push(format!("{path}: {told}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    visit.end().await;
}

/// `AXE` is the path of `axe.min.js`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs axe-core: scripts/soak axe fetches it and runs this"]
async fn axe_finds_no_serious_violation_on_any_page_light_or_dark() {
    let axe = std::fs::read_to_string(std::env::var_os("AXE").expect("AXE is not set")).unwrap();
    let visit = Visit::new().await;
    let browser = &visit.browser;
    let look = "axe.run(document, { resultTypes: ['violations'] }).then((found) => done(found.violations\
                .filter((v) => ['serious', 'critical'].includes(v.impact))\
                .map((v) => v.id + ': ' + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160) + ' ' \
                + (n.any[0] ? n.any[0].message : '')).join(' | '))));";
    let (mut faults, mut looked) = (Vec::new(), 0);
    for scheme in ["light", "dark"] {
        browser.prefer(scheme).await;
        for width in [360, 1280] {
            browser.resize(width, 860).await;
            for path in &visit.paths {
                browser.go(path).await;
                if path == "/docs/" {
                    browser.until("document.querySelector('.opblock')").await;
                }
                let found = browser.run(&format!("{axe}\n{look}")).await;
                looked += 1;
                for fault in found.as_array().unwrap() {
                    faults.push(format!("{path}, {scheme}, {width}: {}", fault.as_str().unwrap()));
                }
            }
        }
    }
    eprintln!("{looked} pages looked at, {} violations", faults.len());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    visit.end().await;
}
