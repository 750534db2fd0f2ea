//! The words of lab and lessons, in English and Simplified Chinese.

use std::sync::LazyLock;

use fluent_bundle::concurrent::FluentBundle;
use fluent_bundle::{FluentArgs, FluentResource};
use unic_langid::LanguageIdentifier;

/// The texts of one language.
pub struct Words {
    /// As in `lang="…"`.
    pub code: &'static str,
    bundle: FluentBundle<FluentResource>,
}

const ENGLISH_TEXT: &str = include_str!("../../../../web/locales/en.ftl");
const CHINESE_TEXT: &str = include_str!("../../../../web/locales/zh-Hans.ftl");

static ENGLISH: LazyLock<Words> = LazyLock::new(|| Words::read("en", ENGLISH_TEXT));
static CHINESE: LazyLock<Words> = LazyLock::new(|| Words::read("zh-Hans", CHINESE_TEXT));

impl Words {
    /// The texts for a language code; English where we have none.
    pub fn of(code: &str) -> &'static Self {
        if code.starts_with("zh") { &CHINESE } else { &ENGLISH }
    }

    /// The first language of an `Accept-Language` header that we have.
    pub fn accepted(header: &str) -> &'static Self {
        let names = header.split(',').map(|part| part.split(';').next().unwrap_or_default().trim());
        let ours =
            names.map(str::to_lowercase).find(|n| n.starts_with("zh") || n.starts_with("en"));
        Self::of(ours.as_deref().unwrap_or_default())
    }

    /// A text without places.
    pub fn say(&self, id: &str) -> String {
        self.with(id, &[])
    }

    /// A text with its places filled.
    pub fn with(&self, id: &str, places: &[(&str, &str)]) -> String {
        let Some(pattern) = self.bundle.get_message(id).and_then(|message| message.value()) else {
            tracing::error!(id, language = self.code, "a text is missing");
            return format!("⟦{id}⟧");
        };
        let mut args = FluentArgs::new();
        for (name, value) in places {
            args.set(*name, *value);
        }
        let mut errors = Vec::new();
        self.bundle.format_pattern(pattern, Some(&args), &mut errors).into_owned()
    }

    /// Whether there is such a text.
    pub fn has(&self, id: &str) -> bool {
        self.bundle.has_message(id)
    }

    fn read(code: &'static str, text: &str) -> Self {
        let language: LanguageIdentifier = code.parse().expect("our own codes are well-formed");
        let mut bundle = FluentBundle::new_concurrent(vec![language]);
        // The marks around filled places are for mixed directions, which we do not have.
        bundle.set_use_isolating(false);
        let resource = FluentResource::try_new(text.to_owned()).unwrap_or_else(|(rest, _)| rest);
        bundle.add_resource_overriding(resource);
        Self { code, bundle }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn texts(text: &str) -> BTreeMap<String, Vec<String>> {
        let resource = FluentResource::try_new(text.to_owned());
        assert!(resource.is_ok(), "{:?}", resource.err().map(|(_, errors)| errors));
        let lines = text.lines().filter_map(|line| line.split_once(" = "));
        lines
            .filter(|(id, _)| !id.starts_with([' ', '#']))
            .map(|(id, says)| {
                let mut places: Vec<String> = says
                    .split("{ $")
                    .skip(1)
                    .map(|rest| rest.split(' ').next().unwrap().to_owned())
                    .collect();
                places.sort();
                (id.to_owned(), places)
            })
            .collect()
    }

    #[test]
    fn every_text_exists_in_both_languages_with_the_same_places() {
        assert_eq!(texts(ENGLISH_TEXT), texts(CHINESE_TEXT));
        assert!(texts(ENGLISH_TEXT).len() > 150);
    }

    #[test]
    fn no_text_is_defined_twice() {
        for text in [ENGLISH_TEXT, CHINESE_TEXT] {
            let ids = text.lines().filter_map(|line| line.split_once(" = ")).map(|(id, _)| id);
            assert_eq!(ids.count(), texts(text).len());
        }
    }

    #[test]
    fn the_browser_s_first_language_that_we_have_is_taken() {
        assert_eq!(Words::accepted("fr, zh-CN;q=0.8, en;q=0.5").code, "zh-Hans");
        assert_eq!(Words::accepted("de").code, "en");
    }
}
