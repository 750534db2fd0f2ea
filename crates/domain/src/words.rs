//! Closed lists of words: one spelling shared by code, JSON and the database.

/// A text that is no word of the list it was read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a known {list}")]
pub struct UnknownWord {
    /// The Rust name of the list.
    pub list: &'static str,
}

/// Declares an enum whose variants are words: `as_str`, `ALL`, `Display`, `FromStr` and serde
/// all come from the one spelling given here and cannot drift apart.
macro_rules! words {
    (
        $(#[$meta:meta])*
        $name:ident { $($(#[$word_meta:meta])* $variant:ident = $word:literal,)+ }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$word_meta])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// Every word of the list, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word as it stands in JSON and in the database.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::words::UnknownWord;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($word => Ok(Self::$variant),)+
                    _ => Err($crate::words::UnknownWord { list: stringify!($name) }),
                }
            }
        }
    };
}

pub(crate) use words;
