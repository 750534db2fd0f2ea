//! Pages that say what is wrong.

use super::*;

pub(super) fn errors() -> Vec<Sample> {
    let cases = [
        (
            "error-403",
            403,
            "forbidden",
            false,
            true,
            "The form carried no token of this browser's session, so it may have been sent by another site. Nothing was done.",
        ),
        (
            "error-404",
            404,
            "not_found",
            false,
            true,
            "There is no such page, or it is not yours to see.",
        ),
        (
            "error-409",
            409,
            "outcome_unknown",
            true,
            false,
            "We asked the provider for $42.00 and no answer came back yet.",
        ),
        (
            "error-422",
            422,
            "idempotency_key_reused",
            false,
            true,
            "The first request under this key had another body.",
        ),
        ("error-429", 429, "rate_limited", true, true, "Wait a few seconds, then send it again."),
        (
            "error-500",
            500,
            "internal",
            true,
            false,
            "We cannot say how far it got. Send the same again, with the same key.",
        ),
        (
            "error-503",
            503,
            "busy",
            true,
            true,
            "The database was too busy to answer in time. Nothing was done.",
        ),
    ];
    let error =
        |(name, status, code, retryable, safe_new_key, detail): (_, u16, &str, _, _, &str)| {
            let link = (status == 409).then(|| Link {
                href: "/orders/ord_1".to_owned(),
                text: "To the order".to_owned(),
            });
            let page =
                Layout { csrf: String::new(), cart_count: None, ..layout(Section::Elsewhere) };
            sample(
                name,
                &ErrorPage {
                    page,
                    status,
                    code: code.to_owned(),
                    detail: detail.to_owned(),
                    retryable,
                    safe_new_key,
                    link,
                },
            )
        };
    let mut samples: Vec<Sample> = cases.into_iter().map(error).collect();
    let form = RedrawnForm {
        action: "/cart".to_owned(),
        key: None,
        fields: vec![
            ("sku".to_owned(), "BELL".to_owned()),
            ("quantity".to_owned(), "1".to_owned()),
        ],
        asks: "Put 1 Counter bell into the cart?".to_owned(),
        button: "Put it in".to_owned(),
    };
    samples.push(sample(
        "redrawn",
        &Redrawn {
            page: layout(Section::Elsewhere),
            reason: Reason::NoCookie,
            form: Some(form),
            back: "/".to_owned(),
        },
    ));
    samples.push(sample(
        "redrawn-bare",
        &Redrawn {
            page: layout(Section::Elsewhere),
            reason: Reason::OldSession,
            form: None,
            back: "/checkout".to_owned(),
        },
    ));
    samples
}
