//! A wrong command line in one line that names the field.

use super::output::Failure;
use super::units;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::error::Error;

/// What clap found, without its usage.
pub(super) fn in_one_line(error: &clap::Error) -> Failure {
    let one = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        Some(ContextValue::Strings(texts)) => texts.first().map_or("", String::as_str),
        _ => "",
    };
    let flag = one(ContextKind::InvalidArg);
    let value = cut(one(ContextKind::InvalidValue));
    Failure::input(match error.kind() {
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            "no subcommand; `fencegate --help` lists them".to_owned()
        }
        ErrorKind::InvalidSubcommand => {
            let name = cut(one(ContextKind::InvalidSubcommand));
            format!("`{name}`: no such subcommand{}", meant(one(ContextKind::SuggestedSubcommand)))
        }
        ErrorKind::UnknownArgument => {
            let what = if flag.starts_with('-') { "no such flag" } else { "one argument too many" };
            format!("`{}`: {what}{}", cut(flag), meant(one(ContextKind::SuggestedArg)))
        }
        ErrorKind::MissingRequiredArgument => missing(error),
        ErrorKind::InvalidValue if value.is_empty() => format!("{}: `{flag}` needs its value", field(flag)),
        ErrorKind::InvalidValue => {
            format!("{}: `{value}` is none of {}", field(flag), all(error, ContextKind::ValidValue).join(", "))
        }
        ErrorKind::ValueValidation => {
            let why = error.source().map_or_else(String::new, ToString::to_string);
            format!("{}: `{} {value}`: {why}", field(flag), name(flag))
        }
        ErrorKind::ArgumentConflict if flag == one(ContextKind::PriorArg) => {
            format!("{}: `{}` is given more than once", field(flag), name(flag))
        }
        ErrorKind::InvalidUtf8 => not_unicode(),
        _ => first_paragraph(error),
    })
}

/// The contract's name of the field behind a flag as clap shows it: `--clock-offset <DURATION>` is `clock_offset_us`.
fn field(flag: &str) -> String {
    let unit = match flag.split_once('<').and_then(|(_, rest)| rest.split_once('>')) {
        Some((units::DURATION, _)) => "_us",
        Some((units::DRIFT, _)) => "_ppb",
        _ => "",
    };
    let bare = name(flag).trim_start_matches('-').trim_matches(['<', '>']);
    format!("{}{unit}", bare.to_lowercase().replace('-', "_"))
}

/// The flag alone: `--ttl <DURATION>` is `--ttl`.
fn name(flag: &str) -> &str {
    flag.split_whitespace().next().unwrap_or(flag)
}

fn all(error: &clap::Error, kind: ContextKind) -> &[String] {
    match error.get(kind) {
        Some(ContextValue::Strings(texts)) => texts,
        _ => &[],
    }
}

fn missing(error: &clap::Error) -> String {
    let flags = all(error, ContextKind::InvalidArg);
    let fields: Vec<_> = flags.iter().map(|flag| field(flag)).collect();
    format!("{}: missing; add {}", fields.join(", "), flags.join(" "))
}

fn meant(suggestion: &str) -> String {
    if suggestion.is_empty() { String::new() } else { format!("; did you mean `{suggestion}`?") }
}

/// The first argument that is not Unicode, with the flag before it. Clap does not say which one it was.
fn not_unicode() -> String {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let at = arguments.iter().position(|a| a.to_str().is_none()).unwrap_or(0);
    let shown: Vec<_> =
        arguments.iter().skip(at.saturating_sub(1)).take(at.min(1) + 1).map(|a| a.to_string_lossy()).collect();
    format!("`{}`: not Unicode", cut(&shown.join(" ")))
}

/// Whatever else clap may find, in its own words.
fn first_paragraph(error: &clap::Error) -> String {
    let text = error.to_string();
    let paragraph = text.split("\n\n").next().unwrap_or(&text);
    let words: Vec<_> = paragraph.trim_start_matches("error: ").split_whitespace().collect();
    words.join(" ")
}

/// Enough of a text to recognise it by.
fn cut(text: &str) -> String {
    const ENOUGH: usize = 60;
    match text.char_indices().nth(ENOUGH) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_is_named_as_its_field() {
        for (flag, want) in [
            ("--ttl <DURATION>", "ttl_us"),
            ("--clock-offset <DURATION>", "clock_offset_us"),
            ("--drift <DRIFT>", "drift_ppb"),
            ("--attempts <N>", "attempts"),
            ("<SYSTEM>", "system"),
        ] {
            assert_eq!(field(flag), want);
        }
    }

    #[test]
    fn a_long_value_is_cut_between_characters() {
        assert_eq!(cut("µs"), "µs");
        assert_eq!(cut(&"µ".repeat(1_000)), format!("{}…", "µ".repeat(60)));
    }
}
