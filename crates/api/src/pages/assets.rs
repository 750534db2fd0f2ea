//! Stylesheet, script and pictures: in the binary, served under the hash of their content.

use std::sync::LazyLock;

use actix_web::http::header::{self, HeaderMap};
use actix_web::{HttpRequest, HttpResponse, web};
use domain::Sku;
use sha2::{Digest, Sha256};

use super::response;

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

static ASSETS: LazyLock<[Asset; 18]> = LazyLock::new(|| {
    files![
        "payonce.css" as CSS,
        "press.js" as JS,
        "lab.css" as CSS,
        "docs.css" as CSS,
        "docs.js" as JS,
        "lab.js" as JS,
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

/// `GET /static/{hash}/{name}`. Under the hash of other content, what there is now: a page drawn by
/// an older server still finds its stylesheet.
pub(super) async fn serve(request: HttpRequest, path: web::Path<(String, String)>) -> HttpResponse {
    let (hash, name) = path.into_inner();
    let Some(asset) = find(&name) else { return response::not_found(&request) };
    let kept = if asset.hash == hash { "public, max-age=31536000, immutable" } else { "no-cache" };
    let tag = format!("\"{}\"", asset.hash);
    let mut response = match is_held(request.headers(), &tag) {
        true => HttpResponse::NotModified(),
        false => HttpResponse::Ok(),
    };
    response
        .insert_header((header::ETAG, tag.as_str()))
        .insert_header((header::CACHE_CONTROL, kept))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"));
    if is_held(request.headers(), &tag) {
        return response.finish();
    }
    response.insert_header((header::CONTENT_TYPE, asset.content_type)).body(asset.body)
}

fn is_held(headers: &HeaderMap, tag: &str) -> bool {
    let tags = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    tags.is_some_and(|tags| tags.split(',').any(|held| held.trim().trim_start_matches("W/") == tag))
}

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
