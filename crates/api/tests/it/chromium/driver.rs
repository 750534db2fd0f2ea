//! One `chromedriver` and the session behind it; both end with this value, by their own pid.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use reqwest::{Client, Method};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::Habits;

/// Browsers at once: each of them wants most of a processor.
static TURNS: Semaphore = Semaphore::const_new(2);
/// A loaded machine starts browsers slowly, and some pages answer late.
const PATIENCE: Duration = Duration::from_secs(90);
const END: Duration = Duration::from_secs(10);

pub(super) struct Driver {
    process: Child,
    browser: Option<Pid>,
    session: String,
    http: Client,
    profile: TempDir,
    _turn: SemaphorePermit<'static>,
}

impl Driver {
    pub(super) async fn start(habits: Habits) -> Self {
        let turn = TURNS.acquire().await.unwrap();
        let (process, port) = started();
        let profile = tempfile::Builder::new().prefix("payonce-chromium").tempdir().unwrap();
        let http = Client::builder().no_proxy().timeout(PATIENCE).build().unwrap();
        let mut driver = Self {
            process,
            browser: None,
            session: format!("http://127.0.0.1:{port}/session"),
            http,
            profile,
            _turn: turn,
        };
        let wanted = driver.wanted(habits);
        let made = driver.tell(Method::POST, "", Some(wanted)).await.unwrap();
        driver.session = format!("{}/{}", driver.session, made["sessionId"].as_str().unwrap());
        let browser = made["capabilities"]["goog:processID"].as_i64().unwrap();
        driver.browser = Pid::from_raw(browser.try_into().unwrap());
        driver
    }

    fn wanted(&self, habits: Habits) -> Value {
        let (width, height) = habits.size;
        let profile = self.profile.path().display();
        let arguments = [
            "--headless=new".to_owned(),
            // Containers and root know no sandbox.
            "--no-sandbox".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--no-first-run".to_owned(),
            "--disable-gpu".to_owned(),
            "--disable-quic".to_owned(),
            "--disable-background-networking".to_owned(),
            "--disable-component-update".to_owned(),
            "--disable-sync".to_owned(),
            format!("--user-data-dir={profile}"),
            format!("--lang={}", habits.language),
            format!("--accept-lang={}", habits.language),
            format!("--window-size={width},{height}"),
        ];
        let scripts = if habits.scripts { 1 } else { 2 };
        json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            "pageLoadStrategy": if habits.patient { "normal" } else { "none" },
            "timeouts": { "script": 60_000, "pageLoad": 60_000 },
            "goog:loggingPrefs": { "performance": "ALL" },
            "goog:chromeOptions": {
                "args": arguments,
                "prefs": {
                    "intl.accept_languages": habits.language,
                    "profile.managed_default_content_settings.javascript": scripts,
                },
            },
        } } })
    }

    /// One command; what it came to, or what went wrong.
    pub(super) async fn tell(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<Value, String> {
        let url =
            if path.is_empty() { self.session.clone() } else { format!("{}/{path}", self.session) };
        let mut request = self.http.request(method, url);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.send().await.map_err(|error| error.to_string())?;
        let ok = response.status().is_success();
        let mut answer: Value = response.json().await.map_err(|error| error.to_string())?;
        match ok {
            true => Ok(answer["value"].take()),
            false => Err(answer["value"]["message"].to_string()),
        }
    }
}

impl Drop for Driver {
    /// Asked to end, chromedriver should end its browser too, but does not always.
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.process), Signal::TERM);
        let until = Instant::now() + END;
        while self.process.try_wait().unwrap().is_none() {
            if Instant::now() >= until {
                let _ = self.process.kill();
                let _ = self.process.wait();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        if let Some(browser) = self.browser {
            let _ = kill_process(browser, Signal::KILL);
        }
    }
}

/// It takes one port for two families of addresses; where the second is taken it ends, and another
/// one is tried.
fn started() -> (Child, u16) {
    for _ in 0..5 {
        let mut process = Command::new("chromedriver")
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver is not installed: scripts/test installs it");
        if let Some(port) = port(&mut process) {
            return (process, port);
        }
        process.wait().unwrap();
    }
    panic!("chromedriver does not start")
}

/// It says on which port it listens.
fn port(process: &mut Child) -> Option<u16> {
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
    let line = lines.find(|line| line.contains("successfully on port"))?;
    let port = line.rsplit(' ').next().unwrap().trim_end_matches('.').parse().unwrap();
    std::thread::spawn(move || lines.for_each(drop));
    Some(port)
}
