//! `payonce reconcile` as somebody runs it: what it prints, and how it ends.

use serde_json::json;

use super::scene::{Scene, Setting};
use crate::process::Request;

const EQUAL: i32 = 0;
const DIFFERENT: i32 = 1;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reconcile_names_what_differs_and_says_so_by_its_exit_code() {
    let mut scene = Scene::set(&Setting::default()).await;
    let order = scene.ordered().await;
    scene.paid(&order).await.unwrap();
    assert_eq!(scene.reconcile(), (EQUAL, String::new()));

    let stray = json!({
        "provider_key": "nobody-asked-for-it", "reference": order, "payment_method": "pm_card_ok",
        "amount": { "amount": 100, "currency": "USD" },
    });
    let made = Request::new("POST", "/charges").json(&stray).ask(scene.provider.port()).await;
    let charge = made.unwrap().text("id");
    let (code, told) = scene.reconcile();
    assert_eq!(code, DIFFERENT, "{told}");
    assert!(told.contains(&charge) && told.contains("we know nothing of it"), "{told}");
    assert_eq!(told.lines().count(), 1, "what agrees is not told: {told}");

    scene.provider.kill();
    let (code, told) = scene.reconcile();
    assert!(![EQUAL, DIFFERENT].contains(&code), "nobody knows: {code} {told}");
}
