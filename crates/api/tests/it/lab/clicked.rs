//! The lab under a person's hands: real mouse events in a real browser.

use serde_json::json;

use super::recipe;
use crate::app::TestApp;
use crate::chromium::{Chromium, Habits};
use crate::redis::TestRedis;

/// A shop with a lab, and a browser in it.
pub(super) struct Visit {
    pub(super) app: TestApp,
    pub(super) browser: Chromium,
    _redis: TestRedis,
}

impl Visit {
    pub(super) async fn new(habits: Habits) -> Self {
        let (app, redis) = (TestApp::start().await, TestRedis::start(None).await);
        let lab = api::lab::Lab::new(recipe(&app.database, &redis));
        assert!(app.app().lab.set(lab).is_ok());
        let browser = Chromium::at(&app.server.base_url(), habits).await;
        Self { app, browser, _redis: redis }
    }

    /// The two presses of an impatient person, 40 ms apart, and the page that comes of them.
    pub(super) async fn double_click(&self, setup: &str) {
        self.browser.go(setup).await;
        self.browser.clicks("#pay", 2, 40).await;
        self.browser.until("document.querySelector('.verdict')").await;
    }

    pub(super) async fn end(self) {
        self.app.app().lab.get().unwrap().stop().await;
        drop(self.browser);
        self.app.finish().await;
    }
}

const BOTH: &str = "/lab?left=none&right=payonce&fault=double";

#[tokio::test(flavor = "multi_thread")]
async fn a_persons_double_click_is_two_charges_without_a_guard_and_one_on_payonce() {
    let visit = Visit::new(Habits::default()).await;
    let browser = &visit.browser;
    visit.double_click(BOTH).await;
    let says = "[...document.querySelectorAll('.verdict h2')].map((h) => h.innerText.trim())";
    let verdicts = json!(["Ada was charged twice, $84.00", "Ada was charged once, $42.00"]);
    assert_eq!(browser.says(says).await, verdicts);
    let charges = "[...document.querySelectorAll('.half')].map((half) => \
                   [...half.querySelectorAll('.stmt td:nth-child(2)')].filter((td) => \
                   td.innerText.startsWith('PAYONCE LAB')).length)";
    assert_eq!(browser.says(charges).await, json!([2, 1]));
    let presses = "[...document.querySelectorAll('.half')].map((half) => \
                   half.querySelectorAll('.saw li').length)";
    assert_eq!(browser.says(presses).await, json!([2, 2]));
    visit.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_scripts_a_double_click_is_two_charges_without_a_guard_and_one_on_payonce() {
    let visit = Visit::new(Habits { scripts: false, ..Habits::default() }).await;
    let browser = &visit.browser;
    browser.go(BOTH).await;
    browser.clicks("#pay", 2, 40).await;
    browser.until("document.querySelector('.verdict')").await;
    assert_eq!(browser.text(".verdict:nth-child(1) h2").await, "Ada was charged twice, $84.00");
    assert_eq!(browser.text(".verdict:nth-child(2) h2").await, "Ada was charged once, $42.00");
    assert_eq!(
        browser.says("document.querySelectorAll('.board svg[role=img]').length > 0").await,
        true
    );
    visit.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_diagram_grows_while_the_run_is_going_on() {
    let visit = Visit::new(Habits::default()).await;
    let browser = &visit.browser;
    // The lab is built by a first run, so that the second one begins at once.
    visit.double_click(BOTH).await;
    // This client waits a second and a half before it retries: time enough to draw what was.
    browser.go("/lab?left=none&right=payonce&fault=lost").await;
    let watch = "const grown = []; const board = document.getElementById('board');\
                 const count = () => grown.push(board.querySelectorAll('.board.wide g.ev').length);\
                 new MutationObserver(count).observe(board, { childList: true });\
                 addEventListener('pagehide', () => { sessionStorage.grown = JSON.stringify(grown); });\
                 done(1);";
    browser.run(watch).await;
    browser.clicks("#run-for-me", 1, 0).await;
    browser.until("document.querySelector('.verdict')").await;
    let grown = browser.says("JSON.parse(sessionStorage.grown)").await;
    let grown: Vec<u64> = serde_json::from_value(grown).unwrap();
    let mut sizes = grown.clone();
    sizes.dedup();
    assert!(sizes.len() >= 3, "drawn in one go: {grown:?}");
    assert!(sizes.is_sorted(), "it shrinks: {grown:?}");
    visit.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shared_link_brings_guards_fault_and_timing_back_but_no_run() {
    let visit = Visit::new(Habits::default()).await;
    let browser = &visit.browser;
    let setup = "/lab?left=lookup&right=processing&fault=tabs&clicks=3&spacing=25";
    visit.double_click(setup).await;
    let link = browser.says("document.querySelector('.acts.end a').getAttribute('href')").await;
    assert_eq!(link, setup);
    let with_runs = browser.path().await;
    let other = Chromium::at(&visit.app.server.base_url(), Habits::default()).await;
    other.go(&with_runs).await;
    let fields = "['left', 'right', 'fault', 'clicks', 'spacing'].map((id) => document.getElementById(id).value)";
    assert_eq!(other.says(fields).await, json!(["lookup", "processing", "tabs", "3", "25"]));
    assert_eq!(other.says("document.querySelectorAll('.verdict').length").await, 0);
    visit.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_can_be_taken_away_as_a_picture_and_as_data_and_be_forgotten() {
    let visit = Visit::new(Habits::default()).await;
    let browser = &visit.browser;
    visit.double_click(BOTH).await;
    let fetched = |ending: &str, then: &str| {
        format!(
            "const href = document.querySelector('a[href$=\"{ending}\"]').href;\
             fetch(href).then(async (r) => done({then}));"
        )
    };
    let kind = "await r.clone().text().then((t) => [r.headers.get('content-type'), \
                new DOMParser().parseFromString(t, 'image/svg+xml').querySelectorAll('parsererror').length, \
                t.includes('charge $42.00 again')])";
    let picture = browser.run(&fetched("/diagram.svg", kind)).await;
    assert_eq!(picture, json!(["image/svg+xml", 0, true]));
    let data = browser.run(&fetched("/run.json", "await r.json()")).await;
    assert_eq!(data["verdict"]["outcome"], "twice");
    assert_eq!(data["experiment"]["guard"], "none");
    assert!(data["events"].as_array().unwrap().len() > 5);
    let href =
        browser.says("document.querySelector('a[href$=\"run.json\"]').getAttribute('href')").await;
    let here = browser.path().await;
    browser.click("form[action='/lab/reset'] button").await;
    browser.until("location.search === ''").await;
    let gone = format!("fetch({href}).then((r) => done(r.status));");
    assert_eq!(browser.run(&gone).await, 404);
    browser.go(&here).await;
    assert_eq!(browser.says("document.querySelectorAll('.verdict').length").await, 0);
    visit.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lab_and_lessons_speak_the_browsers_language_until_another_is_chosen() {
    let visit = Visit::new(Habits { language: "zh-CN", ..Habits::default() }).await;
    let browser = &visit.browser;
    for path in ["/lab", "/learn", "/lab/matrix", "/lab/plan", "/learn/red-flags"] {
        browser.go(path).await;
        assert_eq!(browser.says("document.documentElement.lang").await, "zh-Hans", "{path}");
    }
    visit.double_click(BOTH).await;
    assert_eq!(browser.text(".verdict h2").await, "Ada 被扣了两次，共 $84.00");
    browser.click(".tools form[action='/language'] button").await;
    browser.until("document.documentElement.lang === 'en'").await;
    // The same runs, in the other language.
    assert_eq!(browser.text(".verdict h2").await, "Ada was charged twice, $84.00");
    browser.go("/learn/4").await;
    assert_eq!(browser.text("h1").await, "Looking first is not a lock");
    visit.end().await;
}
