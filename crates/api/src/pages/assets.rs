//! Stylesheet, script and pictures: in the binary, served under the hash of their content.

use std::sync::LazyLock;

use domain::Sku;
use sha2::{Digest, Sha256};

/// One file of `web/static`.
#[derive(Debug)]
pub struct Asset {
    pub name: &'static str,
    pub content_type: &'static str,
    pub body: &'static [u8],
    /// Short hash of the body: the strong validator, and the folder in the URL.
    pub hash: String,
    /// `/static/{hash}/{name}`: new content has a new URL, so this one never changes.
    pub url: String,
}

macro_rules! files {
    ($($name:literal as $kind:ident),+ $(,)?) => {
        [$(Asset::new($name, $kind, include_bytes!(concat!("../../../../web/static/", $name)))),+]
    };
}

const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

static ASSETS: LazyLock<[Asset; 14]> = LazyLock::new(|| {
    files![
        "payonce.css" as CSS,
        "press.js" as JS,
        "mark.svg" as SVG,
        "products/bell.svg" as SVG,
        "products/book.svg" as SVG,
        "products/clock.svg" as SVG,
        "products/kettle.svg" as SVG,
        "products/lamp.svg" as SVG,
        "products/lantern.svg" as SVG,
        "products/mug.svg" as SVG,
        "products/parcel.svg" as SVG,
        "products/pen.svg" as SVG,
        "products/tin.svg" as SVG,
        "products/tote.svg" as SVG,
    ]
});

/// The file of this name (`payonce.css`, `products/bell.svg`).
pub fn find(name: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.name == name)
}

/// Every embedded file.
pub fn all() -> &'static [Asset] {
    &*ASSETS
}

/// Where a page finds the file of this name.
pub(super) fn url(name: &str) -> &'static str {
    let asset = find(name).expect("templates name embedded files only");
    &asset.url
}

/// The drawing whose name occurs in the SKU; a parcel where we have drawn nothing better.
pub(super) fn picture(sku: &Sku) -> &'static str {
    let sku = sku.to_string().to_lowercase();
    let drawn = ASSETS.iter().find(|asset| {
        let stem = asset.name.strip_prefix("products/").and_then(|name| name.strip_suffix(".svg"));
        stem.is_some_and(|stem| sku.contains(stem))
    });
    drawn.map_or_else(|| url("products/parcel.svg"), |asset| &asset.url)
}

impl Asset {
    fn new(name: &'static str, content_type: &'static str, body: &'static [u8]) -> Self {
        let mut hash = hex::encode(Sha256::digest(body));
        hash.truncate(16);
        let url = format!("/static/{hash}/{name}");
        Self { name, content_type, body, hash, url }
    }
}
