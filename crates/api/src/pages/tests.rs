//! Every template is rendered with sample data, in every state, and its markup is checked.
//!
//! `PAGES_OUT=/some/folder cargo test -p api pages::` also writes the pages and their assets
//! there, to be looked at in a browser.

mod markup;
mod samples;

use std::fs;
use std::path::Path;

use super::assets;
use samples::Sample;

#[test]
fn every_page_is_well_formed() {
    for Sample { name, html } in samples::all() {
        markup::check_nesting(&html).unwrap_or_else(|fault| panic!("{name}: {fault}\n{html}"));
    }
}

#[test]
fn every_page_has_one_heading_of_the_first_rank_and_a_title() {
    for Sample { name, html } in samples::all() {
        assert_eq!(html.matches("<h1").count(), 1, "{name}");
        let title = markup::between(&html, "<title>", "</title>");
        assert!(title.ends_with(" · Payonce"), "{name}: {title}");
        assert!(title.len() > " · Payonce".len(), "{name}");
    }
}

#[test]
fn nothing_is_left_of_the_template_language() {
    for Sample { name, html } in samples::all() {
        for trace in ["{{", "}}", "{%", "%}", "TODO", "None", "Some("] {
            assert!(!html.contains(trace), "{name} holds {trace}");
        }
    }
}

#[test]
fn every_field_a_person_fills_has_a_label() {
    for Sample { name, html } in samples::all() {
        for input in markup::tags(&html, "input") {
            if markup::attribute(input, "type") == Some("hidden") {
                continue;
            }
            let id = markup::attribute(input, "id").unwrap_or_else(|| panic!("{name}: {input}"));
            let label = format!("<label for=\"{id}\"");
            let hidden_label = format!("<label class=\"hide\" for=\"{id}\"");
            assert!(html.contains(&label) || html.contains(&hidden_label), "{name}: {input}");
        }
    }
}

#[test]
fn ids_occur_once() {
    for Sample { name, html } in samples::all() {
        let mut ids = markup::values(&html, " id=\"");
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count, "{name}: {ids:?}");
    }
}

#[test]
fn every_form_that_posts_carries_a_csrf_token() {
    for Sample { name, html } in samples::all() {
        for form in markup::posting_forms(&html) {
            let fields = form.matches("name=\"csrf\" value=\"csrf-sample\"").count();
            assert_eq!(fields, 1, "{name}: {form}");
        }
    }
}

#[test]
fn only_the_exempt_forms_carry_no_key() {
    let exempt = ["/language", "/theme", "/cart", "/cart/currency", "/sign-in", "/sign-out"];
    for Sample { name, html } in samples::all() {
        for form in markup::posting_forms(&html) {
            let action = markup::attribute(form, "action").expect("a form has an action");
            let keys = form.matches("type=\"hidden\" name=\"idempotency_key\" value=\"").count();
            let expected = usize::from(!exempt.contains(&action));
            assert_eq!(keys, expected, "{name}: {action}");
        }
    }
}

#[test]
fn pay_is_never_disabled() {
    for Sample { name, html } in samples::all() {
        assert!(!html.contains("disabled"), "{name}");
    }
}

#[test]
fn a_page_asks_for_nothing_outside_and_runs_no_inline_script() {
    for Sample { name, html } in samples::all() {
        for start in ["src=\"", "href=\"", "action=\""] {
            for value in markup::values(&html, start) {
                let local = value.starts_with('/') || value.starts_with('#');
                assert!(local, "{name}: {value}");
            }
        }
        assert_eq!(html.matches("<script").count(), 1, "{name}");
        for handler in ["onclick", "onsubmit", "onload", "javascript:", " style=\""] {
            assert!(!html.contains(handler), "{name} holds {handler}");
        }
    }
}

#[test]
fn styles_and_scripts_stay_small_and_belong_to_no_one_browser() {
    for kind in ["css", "js"] {
        let files = assets::all().iter().filter(|asset| asset.name.ends_with(kind));
        // The reference's go with a page of their own.
        let ours = files.clone().filter(|asset| !asset.name.starts_with("docs"));
        let size: usize = ours.map(|asset| asset.body.len()).sum();
        assert!(size < 40_000, "{kind}: {size} bytes");
        for asset in files {
            let text = std::str::from_utf8(asset.body).expect("text");
            for foreign in ["http:", "https:", "//cdn", "@import", "url("] {
                assert!(!text.contains(foreign), "{} holds {foreign}", asset.name);
            }
            // Beyond the few that every engine has taken over.
            let known = ["-webkit-text-size-adjust", "::-webkit-details-marker"];
            let rest = known.iter().fold(text.to_owned(), |text, known| text.replace(known, ""));
            for vendor in ["-webkit-", "-moz-", "-ms-", "webkit", "chrome."] {
                assert!(!rest.contains(vendor), "{} holds {vendor}", asset.name);
            }
        }
    }
}

#[test]
fn only_an_unsettled_order_looks_again_by_itself() {
    for Sample { name, html } in samples::all() {
        let unsettled = ["order-processing", "order-unknown"].contains(&name);
        assert_eq!(html.contains("http-equiv=\"refresh\""), unsettled, "{name}");
    }
}

#[test]
fn an_order_whose_money_came_too_late_does_not_say_that_nothing_was_charged() {
    let html = samples::all().into_iter().find(|sample| sample.name == "order-expired");
    let html = html.expect("a sample").html;
    assert!(html.contains("Money that came too late"), "{html}");
    assert!(!html.contains("Nothing was charged") && !html.contains("Never charged"), "{html}");
}

#[test]
fn words_of_strangers_stay_words() {
    let html = samples::hostile();
    assert!(!html.contains("<script>alert"), "{html}");
    assert!(!html.contains("\" autofocus"), "{html}");
}

#[test]
fn the_stylesheet_and_the_script_are_small() {
    for name in ["payonce.css", "press.js"] {
        let asset = assets::find(name).expect("embedded");
        assert!(asset.body.len() < 40_000, "{name}");
    }
}

#[test]
fn an_asset_moves_when_its_content_changes() {
    for asset in assets::all() {
        assert_eq!(asset.hash.len(), 16);
        assert_eq!(asset.url, format!("/static/{}/{}", asset.hash, asset.name));
    }
}

#[test]
fn pages_can_be_written_out_to_be_looked_at() {
    let Some(folder) = std::env::var_os("PAGES_OUT") else {
        return;
    };
    let folder = Path::new(&folder);
    for Sample { name, html } in samples::all() {
        write(&folder.join(format!("{name}.html")), html.as_bytes());
    }
    for asset in assets::all() {
        write(&folder.join(asset.url.trim_start_matches('/')), asset.body);
    }
}

fn write(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().expect("a file in a folder")).expect("a folder for it");
    fs::write(path, bytes).expect("a writable folder");
}
