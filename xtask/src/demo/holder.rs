//! One holder of the story, in a process of its own, so that it can be frozen.
//!
//! It is told what to do a line at a time on standard input, and answers each with one line on standard output:
//!
//! ```text
//! acquire              ask for a lease, the timer started    acquiring
//! lease TOKEN TTL_MS   the lock service's grant              leased LEFT_US
//! raise                raise the fence                       done | refused REASON EPOCH TOKEN HOLDER | failed WHY
//! drive VALUE          check the lease, be about to send     checked LEFT_US
//! go                   send it                               done | refused … | failed …
//! ```

use crate::gate::runtime;
use anyhow::{Context, Result, bail};
use fencegate_host::fencegate::{Deadline, Drift, Duration, Epoch, HolderId, Plan, Token};
use fencegate_host::wire::{Role, Values};
use fencegate_host::{CallError, Done, GateClient, KeyFile, Port, clock};
use std::io::{self, BufRead};
use std::path::PathBuf;

/// ε: this process's clock and the lock service's are the same one, and it still leaves the usual 2 × 500 ppm.
pub(super) const DRIFT: Drift = Drift::from_ppm(1_000);

/// The channel of the story.
pub(super) const CHANNEL: u8 = 0;

/// Where the gate is, and who this is.
#[derive(Clone, Debug, clap::Args)]
pub struct Arguments {
    /// The gate's port.
    #[arg(long)]
    port: Port,
    /// The gate's key file.
    #[arg(long)]
    key_file: PathBuf,
    /// The holder's name.
    #[arg(long)]
    holder: HolderId,
    /// Speak as to a machine that knows nothing of leases: a command is good from when it is sent.
    #[arg(long)]
    no_lease: bool,
}

/// A lease, as its holder knows it.
struct Lease {
    token: Token,
    window: Duration,
    end: Deadline,
}

impl Arguments {
    /// Does as it is told until standard input ends.
    pub fn run(self) -> Result<()> {
        let keys = KeyFile::read(&self.key_file)?;
        let credential = keys.credential(Role::Holder(self.holder));
        runtime()?.block_on(async {
            let mut lease = None;
            let mut asked = None; // the timer of a lease starts when it is asked for
            let mut lines = io::stdin().lock().lines();
            while let Some(line) = lines.next() {
                let line = line?;
                let words: Vec<_> = line.split(' ').collect();
                match (words.as_slice(), &lease) {
                    (["acquire"], _) => {
                        asked = Some(clock::start());
                        println!("acquiring");
                    }
                    (["lease", token, ttl_ms], _) => {
                        let asked = asked.take().context("a lease that nobody asked for")?;
                        let ttl = Duration::from_millis(ttl_ms.parse()?);
                        let window = Plan::for_ttl(ttl).drift(DRIFT).plan()?.window;
                        let token = token.parse().ok().and_then(Token::new).context("a token is a number from 1")?;
                        let end = Deadline::after(asked, window).context("the clock is at its end")?;
                        println!("leased {}", end.left(clock::now()).as_micros());
                        lease = Some(Lease { token, window, end });
                    }
                    (["raise"], Some(lease)) => {
                        let mut gate = GateClient::new(self.port.open().await?, credential.clone())?;
                        say(gate.raise(CHANNEL, (Epoch(0), lease.token), soon()?).await);
                    }
                    (["drive", value], Some(lease)) => {
                        let values: Values = [value.parse::<i32>()?].into_iter().collect();
                        let mut gate = GateClient::new(self.port.open().await?, credential.clone())?;
                        println!("checked {}", lease.end.left(clock::now()).as_micros());
                        let Some(Ok(_go)) = lines.next() else { bail!("no go") };
                        let end = if self.no_lease { after(lease.window)? } else { lease.end };
                        let stamp = (Epoch(0), lease.token);
                        say(gate.drive(CHANNEL, stamp, values, (end, lease.window), soon()?).await);
                    }
                    _ => bail!("what is {line:?}?"),
                }
            }
            Ok(())
        })
    }
}

fn say(result: Result<Done, CallError>) {
    match result {
        Ok(_) => println!("done"),
        Err(CallError::Refused(refused)) => {
            let by = refused.by.map(|by| (by.epoch.0, by.token, by.holder));
            let (epoch, token, holder) = by.unwrap_or((0, 0, None));
            let holder = holder.map_or(String::from("-"), |holder| holder.to_string());
            println!("refused {} {epoch} {token} {holder}", refused.reason.as_str());
        }
        Err(error) => println!("failed {error}"),
    }
}

fn soon() -> Result<Deadline> {
    after(Duration::from_secs(5))
}

fn after(span: Duration) -> Result<Deadline> {
    Deadline::after(clock::now(), span).context("the clock is at its end")
}
