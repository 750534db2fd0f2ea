//! A real browser: headless Chromium, driven over WebDriver, with real mouse and keyboard events.

mod driver;

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::app::eventually;
use driver::Driver;

/// How WebDriver names an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// Keys that write nothing, as WebDriver names them.
pub(crate) mod key {
    pub(crate) const TAB: &str = "\u{e004}";
    pub(crate) const ENTER: &str = "\u{e007}";
    pub(crate) const ESCAPE: &str = "\u{e00c}";
    pub(crate) const SPACE: &str = " ";
    pub(crate) const END: &str = "\u{e010}";
    pub(crate) const HOME: &str = "\u{e011}";
    pub(crate) const LEFT: &str = "\u{e012}";
    pub(crate) const RIGHT: &str = "\u{e014}";
    pub(crate) const DOWN: &str = "\u{e015}";
}

/// What differs from a usual browser.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Habits {
    pub(crate) scripts: bool,
    pub(crate) language: &'static str,
    pub(crate) size: (u32, u32),
    /// Whether commands wait until a page is there. An impatient person does not.
    pub(crate) patient: bool,
}

impl Default for Habits {
    fn default() -> Self {
        Self { scripts: true, language: "en-US", size: (1280, 900), patient: true }
    }
}

/// One browser with a profile of its own. It ends with this value.
pub(crate) struct Chromium {
    driver: Driver,
    /// In front of every path.
    base: String,
}

impl Chromium {
    /// A browser that visits this shop.
    pub(crate) async fn at(base: &str, habits: Habits) -> Self {
        Self { driver: Driver::start(habits).await, base: base.to_owned() }
    }

    /// Goes to a path and waits until the page is there.
    pub(crate) async fn go(&self, path: &str) {
        self.post("url", json!({ "url": format!("{}{path}", self.base) })).await;
    }

    /// Path and query of where it is.
    pub(crate) async fn path(&self) -> String {
        let url = self.get("url").await.as_str().unwrap().to_owned();
        url.strip_prefix(&self.base).unwrap_or(&url).to_owned()
    }

    pub(crate) async fn back(&self) {
        self.post("back", json!({})).await;
    }

    pub(crate) async fn refresh(&self) {
        self.post("refresh", json!({})).await;
    }

    /// Opens another tab of the same profile and stays in it.
    pub(crate) async fn new_tab(&self) -> String {
        let made = self.post("window/new", json!({ "type": "tab" })).await;
        let tab = made["handle"].as_str().unwrap().to_owned();
        self.to_tab(&tab).await;
        tab
    }

    /// The tab it is in.
    pub(crate) async fn tab(&self) -> String {
        self.get("window").await.as_str().unwrap().to_owned()
    }

    pub(crate) async fn to_tab(&self, tab: &str) {
        self.post("window", json!({ "handle": tab })).await;
    }

    pub(crate) async fn resize(&self, width: u32, height: u32) {
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.devtools("Emulation.setDeviceMetricsOverride", size).await;
    }

    /// What `prefers-color-scheme` says.
    pub(crate) async fn prefer(&self, scheme: &str) {
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.devtools("Emulation.setEmulatedMedia", features).await;
    }

    /// The visible words of the first element that fits.
    pub(crate) async fn text(&self, selector: &str) -> String {
        let element = self.find(selector).await;
        self.get(&format!("element/{element}/text")).await.as_str().unwrap().to_owned()
    }

    pub(crate) async fn fill(&self, selector: &str, text: &str) {
        let element = self.find(selector).await;
        self.post(&format!("element/{element}/clear"), json!({})).await;
        self.post(&format!("element/{element}/value"), json!({ "text": text })).await;
    }

    /// One click with the mouse, in the middle.
    pub(crate) async fn click(&self, selector: &str) {
        self.clicks(selector, 1, 0).await;
    }

    /// So many real presses and releases of the mouse, so far apart.
    pub(crate) async fn clicks(&self, selector: &str, times: usize, gap_ms: u64) {
        let element = self.find(selector).await;
        let scroll = json!({ "script": "arguments[0].scrollIntoView({block: 'center'})", "args": [{ ELEMENT: element }] });
        self.post("execute/sync", scroll).await;
        let to = json!({ "type": "pointerMove", "duration": 0, "x": 0, "y": 0, "origin": { ELEMENT: element } });
        let mut acts = vec![to];
        for nth in 0..times {
            if nth > 0 {
                acts.push(json!({ "type": "pause", "duration": gap_ms }));
            }
            acts.push(json!({ "type": "pointerDown", "button": 0 }));
            acts.push(json!({ "type": "pointerUp", "button": 0 }));
        }
        let mouse = json!({ "type": "pointer", "id": "mouse", "parameters": { "pointerType": "mouse" }, "actions": acts });
        self.post("actions", json!({ "actions": [mouse] })).await;
    }

    /// Presses these keys one after the other, wherever the focus is.
    pub(crate) async fn keys(&self, keys: &[&str]) {
        let acts: Vec<Value> = keys
            .iter()
            .flat_map(|key| ["keyDown", "keyUp"].map(|kind| json!({ "type": kind, "value": key })))
            .collect();
        let keyboard = json!({ "type": "key", "id": "keyboard", "actions": acts });
        self.post("actions", json!({ "actions": [keyboard] })).await;
    }

    /// What an expression of the page comes to.
    pub(crate) async fn says(&self, expression: &str) -> Value {
        let script = json!({ "script": format!("return ({expression})"), "args": [] });
        self.post("execute/sync", script).await
    }

    /// Runs a script that calls `done`.
    pub(crate) async fn run(&self, script: &str) -> Value {
        let script = format!("const done = arguments[arguments.length - 1];\n{script}");
        self.post("execute/async", json!({ "script": script, "args": [] })).await
    }

    /// Until an expression of the page is true.
    pub(crate) async fn until(&self, expression: &str) {
        let holds = async || {
            let script = json!({ "script": format!("return !!({expression})"), "args": [] });
            // Between two pages there is none to ask.
            self.driver.tell(Method::POST, "execute/sync", Some(script)).await == Ok(json!(true))
        };
        for _ in 0..6 {
            if tokio::time::timeout(Duration::from_secs(9), eventually(expression, &holds))
                .await
                .is_ok()
            {
                return;
            }
        }
        panic!("never: {expression} at {}", self.path().await);
    }

    /// Everything the browser has asked for since it was last looked at.
    pub(crate) async fn requests(&self) -> Vec<String> {
        let log = self.post("se/log", json!({ "type": "performance" })).await;
        let sent = |entry: &Value| {
            let message: Value = serde_json::from_str(entry["message"].as_str()?).ok()?;
            let message = &message["message"];
            (message["method"] == "Network.requestWillBeSent")
                .then(|| message["params"]["request"]["url"].as_str().map(str::to_owned))?
        };
        log.as_array().unwrap().iter().filter_map(sent).collect()
    }

    async fn find(&self, selector: &str) -> String {
        let wanted = json!({ "using": "css selector", "value": selector });
        let found = self.post("element", wanted).await;
        found[ELEMENT].as_str().unwrap_or_else(|| panic!("{selector}: {found}")).to_owned()
    }

    async fn devtools(&self, command: &str, params: Value) {
        self.post("goog/cdp/execute", json!({ "cmd": command, "params": params })).await;
    }

    async fn get(&self, path: &str) -> Value {
        let answer = self.driver.tell(Method::GET, path, None).await;
        answer.unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let answer = self.driver.tell(Method::POST, path, Some(body)).await;
        answer.unwrap_or_else(|error| panic!("{path}: {error}"))
    }
}
