//! What a person reads when a setting cannot be used.

use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue};

use super::Config;

/// The first paragraph of a long message, the variable that may have been meant, and where to read
/// more: one line.
pub fn refusal(error: &clap::Error) -> String {
    let text = with_variable(error);
    let paragraph = text.split("\n\n").next().unwrap_or(&text);
    let words: Vec<&str> = paragraph.trim_start_matches("error: ").split_whitespace().collect();
    format!("{}; `payonce --help` lists every setting", words.join(" "))
}

/// Messages name the flag; whoever set the variable looks for that.
fn with_variable(error: &clap::Error) -> String {
    let text = error.to_string();
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else { return text };
    let mut command = Config::command();
    command.build();
    let meant = command.get_arguments().find(|argument| argument.to_string() == *flag);
    let Some(variable) = meant.and_then(|argument| argument.get_env()) else { return text };
    let flag = format!("'{flag}'");
    text.replacen(&flag, &format!("{flag} or {}", variable.display()), 1)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    fn refused(arguments: &[&str]) -> String {
        refusal(&Config::try_parse_from(arguments).unwrap_err())
    }

    #[test]
    fn a_wrong_value_is_named_by_flag_and_variable_in_one_line() {
        assert_eq!(
            refused(&["payonce", "--port", "abc"]),
            "invalid value 'abc' for '--port <PORT>' or PAYONCE_PORT: invalid digit found in \
             string; `payonce --help` lists every setting"
        );
    }

    #[test]
    fn an_unknown_flag_is_named_too() {
        let said = refused(&["payonce", "--prot", "1"]);
        assert!(said.starts_with("unexpected argument '--prot' found"), "{said}");
        assert!(!said.contains('\n'), "{said}");
    }
}
