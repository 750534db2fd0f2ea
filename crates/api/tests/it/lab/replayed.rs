//! A run looked at again: replay and presenter, by mouse and by keyboard alone.

use serde_json::{Value, json};

use super::clicked::Visit;
use crate::chromium::{Chromium, Habits, key};

const ONE: &str = "/lab?left=redis&right=&fault=double";

/// Where the playhead is, how far it can go, and how many rows are still to come.
async fn playhead(browser: &Chromium) -> (u64, u64, u64) {
    let told = "(() => { const head = document.getElementById('t-head'); return [\
                Number(head.value), Number(head.max), \
                document.querySelectorAll('.board.wide g.ev.future').length]; })()";
    serde_json::from_value(browser.says(told).await).unwrap()
}

async fn focused(browser: &Chromium) -> Value {
    browser.says("document.activeElement.id || document.activeElement.tagName").await
}

/// Tab until the focus is on it.
async fn tab_to(browser: &Chromium, id: &str) {
    for _ in 0..40 {
        browser.keys(&[key::TAB]).await;
        if focused(browser).await == id {
            return;
        }
    }
    panic!("Tab does not lead to {id}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_plays_pauses_steps_and_scrubs() {
    let visit = Visit::new(Habits::default()).await;
    let browser = &visit.browser;
    visit.double_click(ONE).await;
    let (at, last, _) = playhead(browser).await;
    assert!(last > 8 && at == last, "{at} of {last}");
    browser.click("#t-first").await;
    let (at, _, to_come) = playhead(browser).await;
    assert!(at == 0 && to_come >= last, "{at}, {to_come}");
    browser.click("#t-on").await;
    browser.click("#t-on").await;
    browser.click("#t-back").await;
    assert_eq!(playhead(browser).await.0, 1);
    assert_eq!(
        browser.says("document.getElementById('t-says').textContent").await,
        "Ada → API A: POST /pay"
    );
    browser.click("#t-play").await;
    assert_eq!(browser.text("#t-play").await, "Pause");
    browser.until("Number(document.getElementById('t-head').value) >= 3").await;
    browser.click("#t-play").await;
    assert_eq!(browser.text("#t-play").await, "Play");
    let (paused, _, to_come) = playhead(browser).await;
    assert!(paused < last && to_come > 0, "{paused} of {last}");
    // Scrubbing, as a finger on the slider does it.
    let slide = "(() => { const head = document.getElementById('t-head'); head.value = 5; \
                 head.dispatchEvent(new Event('input')); return head.getAttribute('aria-valuetext'); })()";
    let said = browser.says(slide).await;
    assert!(said.as_str().unwrap().contains(" ms "), "{said}");
    assert_eq!(playhead(browser).await.0, 5);
    browser.click("#t-last").await;
    assert_eq!(playhead(browser).await, (last, last, 0));
    visit.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lab_can_be_worked_with_the_keyboard_alone() {
    let visit = Visit::new(Habits::default()).await;
    let browser = &visit.browser;
    browser.go(ONE).await;
    tab_to(browser, "pay").await;
    let outline = "getComputedStyle(document.activeElement).outlineStyle";
    assert_eq!(browser.says(outline).await, "solid");
    browser.keys(&[key::ENTER, key::ENTER]).await;
    browser.until("document.querySelector('.verdict')").await;
    assert_eq!(browser.text(".verdict h2").await, "Ada was charged twice, $84.00");
    let (_, last, _) = playhead(browser).await;
    browser.keys(&[key::HOME]).await;
    assert_eq!(playhead(browser).await.0, 0);
    browser.keys(&[key::RIGHT, key::RIGHT, key::RIGHT, key::LEFT]).await;
    assert_eq!(playhead(browser).await.0, 2);
    browser.keys(&[key::SPACE]).await;
    assert_eq!(browser.text("#t-play").await, "Pause");
    browser.keys(&[key::SPACE]).await;
    assert_eq!(browser.text("#t-play").await, "Play");
    browser.keys(&[key::END]).await;
    assert_eq!(playhead(browser).await.0, last);
    tab_to(browser, "t-head").await;
    browser.keys(&[key::LEFT]).await;
    assert_eq!(playhead(browser).await.0, last - 1);
    tab_to(browser, "t-speed").await;
    // In a select the arrow keys belong to the select.
    let before = playhead(browser).await.0;
    browser.keys(&[key::LEFT]).await;
    assert_eq!(playhead(browser).await.0, before);
    browser.says("document.activeElement.blur()").await;
    browser.keys(&["1"]).await;
    assert_eq!(browser.says("document.activeElement.className").await, "half");
    visit.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_presenter_goes_through_a_run_with_the_arrow_keys_and_leaves_with_escape() {
    let visit = Visit::new(Habits::default()).await;
    let browser = &visit.browser;
    visit.double_click(ONE).await;
    browser.keys(&["p"]).await;
    browser.until("document.querySelector('body.present')").await;
    assert_eq!(browser.says("document.documentElement.dataset.theme").await, "dark");
    let step = "new URLSearchParams(location.search).get('step') || '1'";
    let all: u64 =
        browser.text(".present .step").await.rsplit(' ').next().unwrap().parse().unwrap();
    assert!(all > 8, "{all}");
    for expected in 2..=all {
        browser.keys(&[key::RIGHT]).await;
        browser
            .until(&format!("({step}) === '{expected}' && document.readyState === 'complete'"))
            .await;
    }
    assert_eq!(browser.text("h1").await, "Ada was charged twice, $84.00");
    assert_eq!(browser.says("document.querySelectorAll('.stmt tr').length").await, 3);
    browser.keys(&[key::LEFT]).await;
    browser
        .until(&format!("({step}) === '{}' && document.readyState === 'complete'", all - 1))
        .await;
    let no_spoilers = "document.querySelectorAll('.future').length > 0";
    assert_eq!(browser.says(no_spoilers).await, true);
    browser.keys(&["t"]).await;
    assert_eq!(browser.says("document.documentElement.dataset.theme").await, "light");
    browser.keys(&[key::ESCAPE]).await;
    browser.until("document.querySelector('.verdict')").await;
    assert_eq!(browser.text(".verdict h2").await, "Ada was charged twice, $84.00");
    visit.end().await;
}

/// Whoever presents one of two comes back to both, each on its side.
#[tokio::test(flavor = "multi_thread")]
async fn the_presenter_leaves_to_both_runs_it_came_from() {
    let visit = Visit::new(Habits::default()).await;
    let browser = &visit.browser;
    visit.double_click("/lab?left=none&right=payonce&fault=double").await;
    let verdicts = "[...document.querySelectorAll('.verdict h2')].map((h) => h.textContent.trim())";
    let guards = "['left', 'right'].map((name) => new URLSearchParams(location.search).get(name))";
    let before = browser.says(verdicts).await;
    assert_eq!(before[0], "Ada was charged twice, $84.00");
    for half in [1, 2] {
        browser.click(&format!(".half:nth-child({half}) a[href^='/lab/present']")).await;
        browser.until("document.querySelector('body.present')").await;
        browser.keys(&[key::RIGHT]).await;
        browser.until("new URLSearchParams(location.search).get('step') === '2'").await;
        browser.keys(&[key::ESCAPE]).await;
        browser.until("document.querySelectorAll('.verdict').length === 2").await;
        assert_eq!(browser.says(verdicts).await, before);
        assert_eq!(browser.says(guards).await, json!(["none", "payonce"]));
    }
    visit.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_phone_one_diagram_is_shown_and_the_other_a_tap_away() {
    let visit = Visit::new(Habits::default()).await;
    let browser = &visit.browser;
    browser.resize(360, 800).await;
    visit.double_click("/lab?left=none&right=payonce&fault=double").await;
    let seen = "[...document.querySelectorAll('section.narrow')].map((s) => s.getClientRects().length > 0)";
    assert_eq!(browser.says(seen).await, json!([true, false]));
    browser.click("#sides button:nth-child(2)").await;
    assert_eq!(browser.says(seen).await, json!([false, true]));
    assert_eq!(browser.says("document.querySelectorAll('.verdict').length").await, 2);
    visit.end().await;
}
