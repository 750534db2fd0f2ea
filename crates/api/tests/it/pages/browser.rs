//! A browser without scripts: cookies, forms, and nothing that follows a redirect by itself.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::app::{Caller, Response, Server, TestApp};

/// One profile of a browser. A clone is another tab: it shares the cookies.
#[derive(Clone)]
pub(crate) struct Browser {
    caller: Caller,
    cookies: Arc<Mutex<BTreeMap<String, String>>>,
}

/// A form as it was drawn, with what a person would leave ticked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) action: String,
    pub(crate) fields: BTreeMap<String, String>,
}

/// Who a form says it was sent by.
#[derive(Clone, Copy)]
pub(crate) enum From {
    OurPage,
    AnotherSite,
    Unsaid,
}

impl Browser {
    pub(crate) fn new(app: &TestApp) -> Self {
        Self { caller: app.anonymous(), cookies: Arc::default() }
    }

    /// The same profile with the cookies it has now; what happens here does not come back.
    pub(crate) fn snapshot(&self) -> Self {
        let cookies = self.cookies.lock().unwrap().clone();
        Self { caller: self.caller.clone(), cookies: Arc::new(Mutex::new(cookies)) }
    }

    /// The same tab, at another server.
    pub(crate) fn at(&self, server: &Server) -> Self {
        Self { caller: self.caller.on(server), cookies: Arc::clone(&self.cookies) }
    }

    pub(crate) fn cookie(&self, name: &str) -> Option<String> {
        self.cookies.lock().unwrap().get(name).cloned()
    }

    pub(crate) async fn get(&self, path: &str) -> Page {
        let path = path.split('#').next().unwrap();
        let request = self.caller.request("GET", path).header("Cookie", self.jar().as_bytes());
        self.keep(request.header("Accept", b"text/html").send().await)
    }

    pub(crate) async fn submit(&self, form: &Form) -> Page {
        self.send(form, From::OurPage).await
    }

    pub(crate) async fn send(&self, form: &Form, from: From) -> Page {
        let mut request =
            self.caller.request("POST", &form.action).header("Cookie", self.jar().as_bytes());
        request = match from {
            From::OurPage => {
                let origin = format!("http://{}", self.caller.address);
                request.header("Origin", origin.as_bytes()).header("Sec-Fetch-Site", b"same-origin")
            }
            From::AnotherSite => request
                .header("Origin", b"http://evil.test")
                .header("Sec-Fetch-Site", b"cross-site"),
            From::Unsaid => request,
        };
        let body = form.encoded();
        self.keep(request.body("application/x-www-form-urlencoded", body).send().await)
    }

    /// Sends the form and looks where it leads.
    pub(crate) async fn follow(&self, form: &Form) -> Page {
        let answer = self.submit(form).await;
        self.get(&answer.leads_to()).await
    }

    /// Puts goods into the cart, one form for each.
    pub(crate) async fn fill(&self, goods: &[(&str, u32)]) {
        for (sku, quantity) in goods {
            let shop = self.get("/").await;
            let form = shop.form_with("/cart", "sku", sku).set("quantity", &quantity.to_string());
            self.submit(&form).await.leads_to();
        }
    }

    /// The checkout's form, filled in.
    pub(crate) async fn checkout(&self, card: &str) -> Form {
        let form = self.get("/checkout").await.form("/checkout");
        form.set("email", "ada@example.com").set("payment_method", card)
    }

    pub(crate) async fn sign_in(&self, email: &str, password: &str) -> Page {
        let form = self.get("/sign-in").await.form("/sign-in");
        self.submit(&form.set("email", email).set("password", password)).await
    }

    fn jar(&self) -> String {
        let cookies = self.cookies.lock().unwrap();
        let pairs: Vec<String> = cookies.iter().map(|(n, v)| format!("{n}={v}")).collect();
        pairs.join("; ")
    }

    fn keep(&self, response: Response) -> Page {
        let mut cookies = self.cookies.lock().unwrap();
        for line in response.headers.get_all("set-cookie") {
            let line = line.to_str().unwrap();
            let (name, value) = line.split(';').next().unwrap().split_once('=').unwrap();
            if line.contains("Max-Age=0") {
                cookies.remove(name);
            } else {
                cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        Page { response }
    }
}

/// An answer, read as a page.
pub(crate) struct Page {
    pub(crate) response: Response,
}

impl Page {
    pub(crate) fn html(&self) -> &str {
        std::str::from_utf8(&self.response.body).unwrap()
    }

    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.response.status, status, "{}", self.html());
        self
    }

    /// Where a taken form leads.
    #[track_caller]
    pub(crate) fn leads_to(&self) -> String {
        assert_eq!(self.response.status, 303, "{}", self.html());
        self.response.header("location").unwrap().to_owned()
    }

    /// The words of the one big heading.
    pub(crate) fn heading(&self) -> String {
        let after = self.html().split("<h1>").nth(1).unwrap_or_else(|| panic!("{}", self.html()));
        after.split("</h1>").next().unwrap().to_owned()
    }

    #[track_caller]
    pub(crate) fn says(&self, words: &str) {
        assert!(self.html().contains(words), "no “{words}” in {}", self.html());
    }

    pub(crate) fn looks_again(&self) -> bool {
        self.html().contains("http-equiv=\"refresh\"")
    }

    #[track_caller]
    pub(crate) fn form(&self, action: &str) -> Form {
        let found = self.forms().into_iter().find(|form| form.action == action);
        found.unwrap_or_else(|| panic!("no form to {action} in {}", self.html()))
    }

    #[track_caller]
    pub(crate) fn form_with(&self, action: &str, field: &str, value: &str) -> Form {
        let fits = |form: &Form| {
            form.action == action && form.fields.get(field).is_some_and(|held| held == value)
        };
        let found = self.forms().into_iter().find(fits);
        found.unwrap_or_else(|| panic!("no form to {action} with {value} in {}", self.html()))
    }

    /// Every form on the page that posts.
    pub(crate) fn forms(&self) -> Vec<Form> {
        let pieces = self.html().split("<form").skip(1);
        let whole = pieces.filter_map(|rest| rest.split("</form>").next());
        whole.filter(|form| form.contains("method=\"post\"")).map(Form::read).collect()
    }
}

impl Form {
    fn read(html: &str) -> Self {
        let mut fields = BTreeMap::new();
        for input in html.split("<input").skip(1).filter_map(|rest| rest.split('>').next()) {
            if input.contains("type=\"radio\"") && !input.contains(" checked") {
                continue;
            }
            let Some(name) = attribute(input, "name") else { continue };
            fields.insert(name, attribute(input, "value").unwrap_or_default());
        }
        Self { action: attribute(html, "action").unwrap(), fields }
    }

    pub(crate) fn set(mut self, name: &str, value: &str) -> Self {
        self.fields.insert(name.to_owned(), value.to_owned());
        self
    }

    pub(crate) fn key(&self) -> &str {
        &self.fields["idempotency_key"]
    }

    pub(crate) fn encoded(&self) -> String {
        let pairs = self.fields.iter().map(|(n, v)| format!("{n}={}", escaped(v)));
        pairs.collect::<Vec<_>>().join("&")
    }
}

fn escaped(value: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    let one = |b: u8| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") };
    value.bytes().map(one).collect()
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let start = format!(" {name}=\"");
    let value = tag.split(&start).nth(1)?.split('"').next()?;
    Some(value.replace("&#38;", "&").replace("&amp;", "&"))
}
