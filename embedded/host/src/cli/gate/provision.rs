//! `fencegate gate … provision` and `replace`: a board becomes a gate, a gate becomes another, a spare takes its place.
//!
//! The key file is on the disk before the gate has its keys: a gate whose keys nobody has is lost. It goes again only
//! where the gate's own answer, or its silence before the last piece was sent, says that it did not take them.

use super::super::output::{self, Failure, Outcome, Table};
use super::super::units;
use super::answer::{self, Told};
use super::values::{self, First};
use super::{Session, config};
use config::Identity;
use fencegate::{Deadline, Duration, Epoch};
use fencegate_host::{
    CallError, Existing, GateClient, KeyFile, Line, Secret, Status, factory, new_identity, new_keys, next_id, replacing,
};
use fencegate_wire::{Domain, Keyring, Operation, Provisioning, Refused, Reply, Request, Role};
use serde::Serialize;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, clap::Args)]
pub(super) struct Provision {
    /// What the gate is to be: a TOML file, as --example prints one
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print a commented configuration to start from
    #[arg(long)]
    example: bool,
    /// Provision a gate that is one already, over a point-to-point line too (the bus taken off): with its operator's key
    /// file, and somebody at the board's presence input
    #[arg(long)]
    again: bool,
}

#[derive(Clone, Debug, clap::Args)]
pub(super) struct Replace {
    /// The operator's key file of the gate whose place the spare takes
    #[arg(long, value_name = "FILE")]
    old: PathBuf,
    /// What the gate is to be: a TOML file, as `provision --example` prints one
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// The first epoch of every channel: one above the highest that the old gate ever had is always right
    #[arg(long, value_name = "N", value_parser = values::epoch)]
    epoch: Epoch,
    /// In the old gate's own epoch: the last token that was used, which the first token must exceed
    #[arg(long, value_name = "TOKEN", value_parser = units::parse_count, default_value = "0")]
    floor: u64,
    /// The first epoch and the floor of one channel: 0=3:500; may be given once a channel
    #[arg(long, value_name = "N=EPOCH:FLOOR", value_parser = values::first)]
    channel: Vec<First>,
}

/// What `--port`, `--key-file` and the like said.
#[derive(Clone, Copy)]
pub(super) struct Place<'p> {
    /// The file for the keys.
    pub(super) path: &'p Path,
    /// A session with such keys.
    pub(super) session: &'p dyn Fn(KeyFile) -> Result<Session, Failure>,
}

#[derive(Serialize)]
struct ProvisionedJson {
    done: bool,
    gate: String,
    key_id: u8,
    key_file: String,
}

impl Provision {
    /// Whether only the example is wanted.
    pub(super) const fn is_example(&self) -> bool {
        self.example
    }

    pub(super) async fn run(self, place: Place<'_>) -> Result<Outcome, Failure> {
        let config = self.config.ok_or_else(|| {
            Failure::input("config: missing; add --config <FILE> (`provision --example` prints one to start from)")
        })?;
        if self.again {
            return again(place, &config).await;
        }
        let identity = Identity::Fresh(new_identity().map_err(random)?);
        let provisioning = read(&config, identity, new_keys(0).map_err(random)?)?;
        blank(place, &provisioning, Domain::Gate, &[]).await
    }
}

impl Replace {
    pub(super) async fn run(self, place: Place<'_>) -> Result<Outcome, Failure> {
        let Self { old, config, epoch, floor, channel: first } = self;
        let file = KeyFile::read(&old).map_err(|error| Failure::input(format_args!("old: `--old`: {error}")))?;
        let Secret::Root(keys) = &file.secret else {
            return Err(Failure::input("old: `--old`: it has not the root and the operator's key"));
        };
        let mut provisioning = read(&config, Identity::Kept(file.gate), replacing(keys).map_err(random)?)?;
        for channel in &mut provisioning.channels {
            (channel.epoch, channel.floor) = (epoch, floor);
        }
        for First { channel, epoch, floor } in first {
            let Some(config) = provisioning.channels.get_mut(usize::from(channel)) else {
                return Err(Failure::input(format_args!(
                    "channel: `--channel {channel}=…`: the configuration has none"
                )));
            };
            (config.epoch, config.floor) = (epoch, floor);
        }
        provisioning.check().map_err(|bad| Failure::input(format_args!("{bad} (`--floor`, `--channel`)")))?;
        let notes = [
            "the keys are of a new instance: issue every single holder's and observer's key file anew (`key`)",
            "no channel's floor may be below the last token used under its epoch, or a stale holder gets in: if one is, \
             set a higher epoch now (`epoch`)",
            "take the old gate off the line for good: it has the same identity",
        ];
        blank(place, &provisioning, file.domain, &notes).await
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` gives")]
fn random(error: io::Error) -> Failure {
    Failure::input(format_args!("the system has no random numbers: {error}"))
}

fn read(path: &Path, identity: Identity, keys: Keyring) -> Result<Provisioning, Failure> {
    let shown = path.display();
    let text = fs::read_to_string(path).map_err(|error| Failure::input(format_args!("config: {shown}: {error}")))?;
    config::read(&text, identity, keys).map_err(|wrong| Failure::input(format_args!("config: {shown}, {wrong}")))
}

/// A key file that cannot be written.
fn unwritten(error: impl std::fmt::Display) -> Failure {
    Failure::input(format_args!("key_file: `--key-file`: {error}"))
}

/// Provisions a blank board.
async fn blank(
    Place { path, session }: Place<'_>,
    wanted: &Provisioning,
    domain: Domain,
    notes: &[&str],
) -> Result<Outcome, Failure> {
    if path.exists() {
        return Err(unwritten(format_args!(
            "{}: it is there already, and may be a gate's only one; name a file that is not (or `provision --again`)",
            path.display()
        )));
    }
    let keys = KeyFile::of(wanted, domain);
    let session = session(keys)?;
    let give_up = session.give_up(session.started)?;
    let mut gate = session.connect(factory(domain), give_up).await?;
    // Nothing is written before the board has said that it is there and blank.
    match gate.call(Operation::new(Request::Status), give_up).await {
        Ok(Reply::Status(_) | Reply::Refused(_)) => {}
        Ok(_) => return Err(session.failure(CallError::Unexpected, None)),
        Err(CallError::NoAnswer) => {
            return Err(Failure::new(
                3,
                format_args!(
                    "no answer from {} to a blank board's key: is it there? (a gate that is one already is silent to it: \
                     `provision --again`)",
                    session.port
                ),
            ));
        }
        Err(error) => return Err(session.failure(error, None)),
    }
    session.keys.write(path, Existing::Keep).map_err(unwritten)?;
    match tell(&session, gate, wanted, &Told::Provision).await? {
        Went::Done => provisioned(&session, path, notes),
        Went::Refused(refused) => {
            remove(path)?;
            answer::refused(session.json, None, &Told::Provision, refused, None)
        }
        Went::Unknown(failure) => Err(Failure::new(
            failure.status(),
            format_args!("{failure}; {} is kept: if `status` answers to it, it was", path.display()),
        )),
    }
}

/// Provisions a gate anew that is one already.
async fn again(Place { path, session }: Place<'_>, config: &Path) -> Result<Outcome, Failure> {
    let old = KeyFile::read(path).map_err(|error| Failure::input(format_args!("key_file: {error}")))?;
    let Secret::Root(keys) = &old.secret else {
        return Err(Failure::input("key_file: `--key-file`: only the operator's, which has the root, provisions"));
    };
    let mut wanted = read(config, Identity::Kept(old.gate), new_keys(next_id(keys.id)).map_err(random)?)?;
    let (unready, replaced) = (beside(path, ".new"), beside(path, ".old"));
    if unready.exists() {
        return Err(unwritten(format_args!(
            "{new}: an earlier `provision --again` did not learn whether it was done; if `status` answers to that file, \
             put it in place of {}, else remove it",
            path.display(),
            new = unready.display(),
        )));
    }
    let operator = old.credential(Role::Operator);
    let session = session(KeyFile::of(&wanted, old.domain))?;
    let give_up = session.give_up(session.started)?;
    let mut gate = session.connect(operator, give_up).await?;
    match gate.status(give_up).await {
        Ok(status) => go_on_from(&mut wanted, &status)?,
        Err(CallError::Refused(refused)) => {
            return answer::refused(session.json, None, &Told::Provision, refused, None);
        }
        Err(error) => return Err(session.failure(error, None)),
    }
    session.keys.write(&unready, Existing::Keep).map_err(unwritten)?;
    match tell(&session, gate, &wanted, &Told::Provision).await? {
        Went::Done => {
            let moved = fs::rename(path, &replaced).and_then(|()| fs::rename(&unready, path));
            moved.map_err(|error| {
                unwritten(format_args!("the gate has its new keys, and they are in {}: {error}", unready.display()))
            })?;
            let kept = format!("the keys before are kept in {}", replaced.display());
            let issue = "issue every single holder's and observer's key file anew (`key`)";
            let fences =
                "every channel goes on from where its fence stood, or from higher up where the configuration says so";
            provisioned(&session, path, &[&kept, issue, fences])
        }
        Went::Refused(refused) => {
            remove(&unready)?;
            answer::refused(session.json, None, &Told::Provision, refused, None)
        }
        Went::Unknown(failure) => Err(Failure::new(
            failure.status(),
            format_args!(
                "{failure}; the new keys are kept in {}: if `status` answers to them, it was: put it in place of {}",
                unready.display(),
                path.display()
            ),
        )),
    }
}

/// No fence goes back: a channel for which the configuration says less begins where it stands.
fn go_on_from(wanted: &mut Provisioning, status: &Status) -> Result<(), Failure> {
    for (config, now) in wanted.channels.iter_mut().zip(&status.channels) {
        let stands = (now.record.epoch, now.record.token);
        if (config.epoch, config.floor) < stands {
            (config.epoch, config.floor) = stands;
        }
    }
    wanted.check().map_err(|bad| {
        Failure::input(format_args!("config: {bad}; a channel's fence stands there: give it a higher epoch"))
    })
}

/// How it went.
enum Went {
    Done,
    Refused(Refused),
    Unknown(Failure),
}

/// Tells the gate all of it. Where the last answer was lost, the gate's answer to its new keys will do as well.
async fn tell<L: Line>(
    session: &Session,
    mut gate: GateClient<L>,
    wanted: &Provisioning,
    told: &Told,
) -> Result<Went, Failure> {
    let whole = session.give_up(session.started)?;
    // The last of the time is for the question whether it was done after all.
    let most = Duration::from_micros(session.timeout.as_micros() / 5 * 4);
    let give_up = Deadline::after(session.started, most).unwrap_or(whole);
    let error = match gate.provision(wanted, give_up).await {
        Ok(()) => return Ok(Went::Done),
        Err(CallError::Refused(refused)) => return Ok(Went::Refused(refused)),
        Err(error) => error,
    };
    drop(gate); // a serial device is opened by one at a time
    if let Ok(mut gate) = session.connect(session.keys.reader(), whole).await
        && gate.call(Operation::new(Request::Status), whole).await.is_ok()
    {
        return Ok(Went::Done);
    }
    Ok(Went::Unknown(session.failure(error, Some(told))))
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Removes keys that no gate has.
fn remove(path: &Path) -> Result<(), Failure> {
    fs::remove_file(path).map_err(|error| unwritten(format_args!("{}: {error}", path.display())))
}

fn provisioned(session: &Session, path: &Path, notes: &[&str]) -> Result<Outcome, Failure> {
    let (gate, key_id) = (session.keys.gate.to_string(), session.keys.key_id());
    if session.json {
        let key_file = path.display().to_string();
        output::print_json(&ProvisionedJson { done: true, gate, key_id, key_file })?;
    } else {
        let what = format_args!("gate {gate} is provisioned; its operator's key file is {}", path.display());
        let mut table = Table::new(true, "done", what);
        table.note(
            "keep a copy of that file where the gate is not: every key follows from it, and no other opens the gate",
        );
        for note in notes {
            table.note(note);
        }
        output::print(table)?;
    }
    Ok(Outcome::Yes)
}
