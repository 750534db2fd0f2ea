//! The grammar of outcomes: solid means money moved, hollow means none did, half means nobody knows.

/// The glyph of one outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// Charged once.
    Once,
    /// Charged twice.
    Twice,
    /// Nobody knows yet.
    Unsure,
    /// Got the first answer again.
    Replay,
    /// Turned away; no money moved.
    Refused,
    /// Money went back.
    Returned,
    /// Waiting for its turn, or asked and not answered.
    Quiet,
    /// Something happened that moved no money.
    Plain,
}

/// A word with the colour of its outcome.
#[derive(Debug, Clone)]
pub struct Chip {
    pub mark: Mark,
    pub word: String,
}

/// One sentence above the content of a page, and what follows from it.
#[derive(Debug, Clone)]
pub struct Notice {
    pub mark: Mark,
    pub says: String,
    pub more: String,
}

impl Mark {
    /// The colour family, as a class of the stylesheet.
    pub(super) const fn tone(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Twice => "twice",
            Self::Unsure => "unsure",
            Self::Replay => "replay",
            Self::Refused | Self::Returned | Self::Quiet | Self::Plain => "plain",
        }
    }

    pub(super) const fn text_class(self) -> &'static str {
        match self {
            Self::Once => "o-once",
            Self::Twice => "o-twice",
            Self::Unsure => "o-unsure",
            Self::Replay => "o-replay",
            Self::Refused | Self::Returned | Self::Quiet | Self::Plain => "",
        }
    }

    /// What stands inside an 18 by 18 drawing.
    pub(super) const fn shape(self) -> &'static str {
        match self {
            Self::Once => {
                r#"<circle class="g-once" cx="9" cy="9" r="7.5"/><path class="cut" d="M5.4 9.3l2.5 2.5 4.8-5.3"/>"#
            }
            Self::Twice => {
                r#"<circle class="g-twice" cx="6" cy="9" r="5"/><circle class="g-twice edge" cx="11.5" cy="9" r="5"/>"#
            }
            Self::Unsure => {
                r#"<circle class="s g-unsure hole" cx="9" cy="9" r="7"/><path class="g-unsure flat" d="M9 2a7 7 0 0 0 0 14z"/>"#
            }
            Self::Replay => r#"<circle class="s g-replay hole" cx="9" cy="9" r="6.5"/>"#,
            Self::Refused => {
                r#"<circle class="s g-ink hole" cx="9" cy="9" r="7"/><path class="s g-ink" d="M5.8 9h6.4"/>"#
            }
            Self::Returned => {
                r#"<circle class="g-ink" cx="9" cy="9" r="7.5"/><path class="cut thin" d="M13 11.6V8.9H5.4M8 6.2L5.2 8.9 8 11.6"/>"#
            }
            Self::Quiet => r#"<circle class="s g-plain hole dots" cx="9" cy="9" r="7"/>"#,
            Self::Plain => r#"<circle class="s g-plain hole" cx="9" cy="9" r="7"/>"#,
        }
    }
}

impl Chip {
    pub fn new(mark: Mark, word: impl Into<String>) -> Self {
        Self { mark, word: word.into() }
    }

    pub(super) const fn tone(&self) -> &'static str {
        self.mark.tone()
    }

    /// Only outcomes carry their glyph; plain words stand alone.
    pub(super) const fn is_outcome(&self) -> bool {
        !matches!(self.mark, Mark::Plain | Mark::Quiet)
    }
}

impl Notice {
    pub fn new(mark: Mark, says: impl Into<String>, more: impl Into<String>) -> Self {
        Self { mark, says: says.into(), more: more.into() }
    }
}
