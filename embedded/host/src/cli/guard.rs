//! `fencegate guard`: the conditional write that fences a store.
//!
//! Every guard is a file that runs as it is printed: that is how `tests/` hold it to what it says. Its template lies
//! beside this file. A line that begins with a policy and `|` is there under that policy alone; `@WHY@` stands for the
//! words that all of them share, `@FALLBACK@` for what is left to do where a store cannot check, and `@DIGITS@` for how a
//! shell script reads its numbers.

use super::output::{self, Failure, Outcome};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use fencegate::Policy;

const EXAMPLE: &str = "Examples:
  fencegate guard postgres --policy at-least > guard.sql
  psql -v resource=402 -v epoch=0 -v token=10482 -v holder=press-a -v seq=1 -v value=done -f guard.sql
  fencegate guard redis --policy greater

Under at-least one lease makes many writes, which its holder counts (seq); under greater each token writes once.

Exit status: 0 printed, 2 the input is wrong.";

const WHY: &str = include_str!("guard/why.txt");
const FALLBACK: &str = include_str!("guard/fallback.txt");
const DIGITS: &str = include_str!("guard/digits.txt");

/// The stores, and their templates.
const GUARDS: [(&str, &str); 10] = [
    ("postgres", include_str!("guard/postgres.txt")),
    ("mysql", include_str!("guard/mysql.txt")),
    ("sqlite", include_str!("guard/sqlite.txt")),
    ("redis", include_str!("guard/redis.txt")),
    ("dynamodb", include_str!("guard/dynamodb.txt")),
    ("s3", include_str!("guard/s3.txt")),
    ("gcs", include_str!("guard/gcs.txt")),
    ("etcd", include_str!("guard/etcd.txt")),
    ("mongodb", include_str!("guard/mongodb.txt")),
    ("other", include_str!("guard/other.txt")),
];

/// The arguments of `guard`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// The store; `other` is one that cannot check
    #[arg(value_parser = system())]
    system: &'static str,
    /// Whether a stamp may write again, or each token writes once
    #[arg(long, value_name = "POLICY", value_parser = policy(), default_value = "at-least")]
    policy: Policy,
}

/// Of a store's name: its template.
fn system() -> impl TypedValueParser<Value = &'static str> {
    PossibleValuesParser::new(GUARDS.map(|(name, _)| name))
        .map(|given| GUARDS.iter().find(|(name, _)| *name == given).map_or("", |(_, template)| *template))
}

fn policy() -> impl TypedValueParser<Value = Policy> {
    PossibleValuesParser::new(["at-least", "greater"]).map(|name| match name.as_str() {
        "greater" => Policy::Greater,
        _ => Policy::AtLeast,
    })
}

impl Args {
    pub(super) fn run(self) -> Result<Outcome, Failure> {
        output::print(filled(self.system, self.policy))?;
        Ok(Outcome::Yes)
    }
}

/// The guard that a template makes under a policy.
fn filled(template: &str, policy: Policy) -> String {
    let name = match policy {
        Policy::Greater => "greater",
        Policy::AtLeast => "at-least",
    };
    let mut text = String::new();
    for line in template.lines() {
        match (line, line.split_once("@WHY@")) {
            ("@FALLBACK@", _) => text.push_str(&filled(FALLBACK, policy)),
            ("@DIGITS@", _) => text.push_str(&filled(DIGITS, policy)),
            // In comments, as the line has it.
            (_, Some((comment, _))) => {
                for why in WHY.lines() {
                    text.push_str(comment);
                    text.push_str(why);
                    text.push('\n');
                }
            }
            _ => {
                let only = line.strip_prefix('@').and_then(|rest| rest.split_once('|'));
                let line = match only {
                    Some((other, _)) if other != name => continue,
                    Some((_, rest)) => rest,
                    None => line,
                };
                text.push_str(&line.replace("@POLICY@", name));
                text.push('\n');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_guard_says_why_and_nothing_of_its_template_is_left() {
        let first = WHY.lines().next().unwrap();
        for (name, template) in GUARDS {
            for (policy, word, other) in
                [(Policy::AtLeast, "at-least", "greater."), (Policy::Greater, "greater", "at-least.")]
            {
                let text = filled(template, policy);
                assert!(text.contains(first) && text.contains(&format!("policy {word}.")), "{name}");
                assert!(!text.contains(&format!("policy {other}")), "{name}: {text}");
                assert!(!text.contains("@at-least") && !text.contains("@greater"), "{name}: {text}");
                for place in ["@WHY@", "@FALLBACK@", "@DIGITS@", "@POLICY@"] {
                    assert!(!text.contains(place), "{name}");
                }
                let counts = text.to_lowercase().contains("seq");
                assert_eq!(counts, policy == Policy::AtLeast, "{name}: {text}");
            }
        }
    }
}
