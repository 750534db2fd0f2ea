//! The frame of every page: where we are, who looks, and the preferences in the header.

use actix_web::{HttpRequest, web};

use super::assets;
use super::cookies;
use super::words::Words;
use crate::app::App;

/// What a page needs to draw the header and the footer.
#[derive(Debug, Clone)]
pub struct Layout {
    pub words: &'static Words,
    pub section: Section,
    /// `None` follows the system's preference.
    pub theme: Option<Theme>,
    /// Bound to the session. Empty where there is none: such a page draws no forms.
    pub csrf: String,
    /// The path of this page, to come back to after a preference changed.
    pub back: String,
    /// How many pieces lie in the cart, where it is known whose it is.
    pub cart_count: Option<u32>,
    /// The name or e-mail of who is signed in; guests have none.
    pub signed_in: Option<String>,
    /// The merchant has books to look at.
    pub merchant: bool,
    /// Whether there is a lab to go to.
    pub lab: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    Shop,
    Lab,
    Lessons,
    Inspect,
    Mailbox,
    Orders,
    Statement,
    Elsewhere,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    Light,
    Dark,
}

/// One link of the main menu.
#[derive(Debug)]
pub(super) struct MenuLink {
    pub href: &'static str,
    pub text: &'static str,
    pub current: bool,
}

impl Layout {
    /// The frame where nobody's session is known: the preferences of the browser, no forms.
    pub(super) fn bare(request: &HttpRequest, section: Section) -> Self {
        let cookie = |name| cookies::read(request.headers(), name);
        Self {
            words: Words::of(cookie(cookies::LANGUAGE).unwrap_or_default()),
            section,
            theme: cookie(cookies::THEME).and_then(Theme::from_name),
            csrf: String::new(),
            back: back(request),
            cart_count: None,
            signed_in: None,
            merchant: false,
            lab: request.app_data::<web::Data<App>>().is_some_and(|app| app.lab.get().is_some()),
        }
    }

    pub(super) fn links(&self) -> Vec<MenuLink> {
        let link = |section, href, text| MenuLink { href, text, current: self.section == section };
        let statement = link(Section::Statement, "/statement", self.words.statement);
        let mut links = vec![link(Section::Shop, "/", self.words.shop)];
        links.extend(self.lab.then(|| link(Section::Lab, "/lab", self.words.lab)));
        links.extend([
            link(Section::Lessons, "/learn", self.words.lessons),
            link(Section::Inspect, "/inspect", self.words.inspect),
            link(Section::Mailbox, "/mailbox", self.words.mailbox),
        ]);
        links.extend(self.merchant.then_some(statement));
        links
    }

    pub(super) fn cart(&self) -> String {
        match self.cart_count {
            Some(count) => format!("{} ({count})", self.words.cart),
            None => self.words.cart.to_owned(),
        }
    }

    /// Whether this page is the one at that path.
    pub(super) fn is_at(&self, path: &str) -> bool {
        self.back.split('?').next() == Some(path)
    }

    pub(super) fn is_orders(&self) -> bool {
        self.section == Section::Orders
    }

    pub(super) fn has_session(&self) -> bool {
        !self.csrf.is_empty()
    }

    #[expect(clippy::unused_self, reason = "templates reach functions through a value")]
    pub(super) fn asset(&self, name: &str) -> &'static str {
        assets::url(name)
    }
}

/// This page, for whoever comes back after changing a preference. A post has no page of its own.
fn back(request: &HttpRequest) -> String {
    if request.method().is_safe() { request.uri().to_string() } else { "/".to_owned() }
}

impl Theme {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    /// Reads the value of the preference cookie or of the form.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Light, Self::Dark].into_iter().find(|theme| theme.name() == name)
    }
}
