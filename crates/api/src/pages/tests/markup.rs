//! Just enough reading of HTML to check our own pages.

const VOID: [&str; 5] = ["meta", "link", "input", "img", "br"];

/// Every element that opens also closes, in order. Void and self-closed elements do not open.
pub(super) fn check_nesting(html: &str) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    for tag in all_tags(html) {
        let name = name(tag);
        if tag.starts_with("</") {
            match open.pop() {
                Some(opened) if opened == name => {}
                opened => return Err(format!("{tag} closes {opened:?} in {open:?}")),
            }
        } else if !(VOID.contains(&name)
            || name == "hr"
            || tag.ends_with("/>")
            || name == "!doctype")
        {
            open.push(name);
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("left open: {open:?}")) }
}

/// The opening tags of this name.
pub(super) fn tags<'a>(html: &'a str, wanted: &str) -> Vec<&'a str> {
    let opening = |tag: &&str| !tag.starts_with("</") && name(tag) == wanted;
    all_tags(html).filter(opening).collect()
}

/// The text of each form that posts, from its opening to its closing tag.
pub(super) fn posting_forms(html: &str) -> Vec<&str> {
    let forms = html.split("<form").skip(1);
    let whole = forms.filter_map(|rest| rest.split("</form>").next());
    whole.filter(|form| form.contains("method=\"post\"")).collect()
}

/// Every value that follows `start`, up to the closing quote.
pub(super) fn values<'a>(html: &'a str, start: &str) -> Vec<&'a str> {
    let pieces = html.split(start).skip(1);
    pieces.filter_map(|rest| rest.split('"').next()).collect()
}

pub(super) fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let start = format!(" {name}=\"");
    values(tag, &start).into_iter().next()
}

pub(super) fn between<'a>(html: &'a str, start: &str, end: &str) -> &'a str {
    let rest = html.split(start).nth(1).unwrap_or_default();
    rest.split(end).next().unwrap_or_default()
}

fn all_tags(html: &str) -> impl Iterator<Item = &str> {
    let pieces = html.split_inclusive('>');
    pieces.filter_map(|piece| piece.rfind('<').map(|at| &piece[at..]))
}

fn name(tag: &str) -> &str {
    let inner = tag.trim_start_matches("</").trim_start_matches('<');
    let end = inner.find([' ', '>', '/', '\n']).unwrap_or(inner.len());
    &inner[..end]
}
