//! `fencegate gate … key`: a key file to hand out, with one principal's key alone.

use super::super::output::{self, Failure, Outcome, Table};
use fencegate::HolderId;
use fencegate_host::{Existing, KeyFile, Secret};
use fencegate_wire::Role;
use serde::Serialize;
use std::path::PathBuf;

#[derive(Clone, Debug, clap::Args)]
pub(super) struct Key {
    /// Whose: a holder's name; all of its instances share one key
    #[arg(long, value_name = "NAME")]
    holder: Option<HolderId>,
    /// The observers', which reads and watches
    #[arg(long)]
    observer: bool,
    /// The file to write; one that is there already is left alone
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

#[derive(Serialize)]
struct KeyJson {
    done: bool,
    gate: String,
    key_id: u8,
    holder: Option<HolderId>,
    file: String,
}

impl Key {
    /// Writes the file; no gate is asked.
    pub(super) fn run(self, keys: &KeyFile, json: bool) -> Result<Outcome, Failure> {
        let Self { holder, observer, out } = self;
        let role = match (holder, observer) {
            (Some(holder), false) => Role::Holder(holder),
            (None, true) => Role::Observer,
            _ => return Err(Failure::input("holder, observer: one of `--holder <NAME>` and `--observer`")),
        };
        let Secret::Root(_) = &keys.secret else {
            return Err(Failure::input("key_file: `--key-file`: it has not the root, from which other keys follow"));
        };
        let only = keys.only(role).ok_or_else(|| Failure::input("key_file: `--key-file`: it has not that key"))?;
        only.write(&out, Existing::Keep).map_err(|error| Failure::input(format_args!("out: `--out`: {error}")))?;
        if json {
            let (gate, file) = (keys.gate.to_string(), out.display().to_string());
            output::print_json(&KeyJson {
                done: true,
                gate,
                key_id: keys.key_id(),
                holder: holder.map(HolderId::name),
                file,
            })?;
        } else {
            let whose = holder.map_or_else(|| "the observers'".to_owned(), |holder| format!("{}'s", holder.name()));
            let (gate, file) = (keys.gate, out.display());
            output::print(Table::new(true, "done", format_args!("{file} has {whose} key for gate {gate}")))?;
        }
        Ok(Outcome::Yes)
    }
}
