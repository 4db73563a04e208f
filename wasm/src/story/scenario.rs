//! What a story is made of, and reading it from a plain object.

use crate::fields::{Fields, signed};
use crate::wrong::Wrong;
#[cfg(test)]
use fencegate::Drift;
use fencegate::{Duration, Epoch, HolderId, PPB, Plan, Policy, Schedule, Stamp, Token};
use js_sys::Array;
use wasm_bindgen::{JsCast, JsValue};

/// A story longer than a day is nobody's to watch.
const LONGEST: u64 = 86_400_000_000;
/// How many workers, writes and happenings there may be, each.
const MOST: usize = 64;
/// A lock without expiry is a lease of a hundred years: far beyond the end of every story.
const FOR_EVER: Duration = Duration::from_micros(100 * 365 * 86_400 * 1_000_000);

/// What happens in a story, beside what the workers do by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A worker's whole process stops, and goes on later.
    Freeze,
    /// A worker hangs in its work; the thread that renews lives.
    Hang,
    /// A worker's process is gone for good.
    Crash,
    /// A write stays in the network for that much longer.
    Hold,
    /// A worker reaches only that many of the coordinator's nodes.
    Partition,
    /// The resource is without power.
    PowerCut,
    /// The coordinator's replica takes over, without the last grant.
    Failover,
    /// The coordinator is restored from a backup, whose last token was that.
    Restore,
    /// The operator raises the epoch, above every token up to that.
    Epoch,
}

impl What {
    const ALL: [Self; 9] = [
        Self::Freeze,
        Self::Hang,
        Self::Crash,
        Self::Hold,
        Self::Partition,
        Self::PowerCut,
        Self::Failover,
        Self::Restore,
        Self::Epoch,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Freeze => "freeze",
            Self::Hang => "hang",
            Self::Crash => "crash",
            Self::Hold => "hold",
            Self::Partition => "partition",
            Self::PowerCut => "power-cut",
            Self::Failover => "failover",
            Self::Restore => "restore",
            Self::Epoch => "epoch",
        }
    }

    /// Whether it happens to one of the workers.
    const fn to_a_worker(self) -> bool {
        matches!(self, Self::Freeze | Self::Hang | Self::Crash | Self::Hold | Self::Partition)
    }
}

/// When something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// At this microsecond of the story.
    At(u64),
    /// As the worker's write of this number, counted from 1, is about to leave: its last check is behind it.
    Write(u64),
}

#[derive(Clone, Debug)]
pub(crate) struct Happening {
    pub(crate) what: What,
    pub(crate) when: When,
    pub(crate) who: usize,
    pub(crate) lasts: u64,
    pub(crate) nodes: u64,
    pub(crate) token: u64,
}

/// One of those who want the lease, and what it writes under it.
#[derive(Clone, Debug)]
pub(crate) struct WorkerPlan {
    pub(crate) id: HolderId,
    pub(crate) name: String,
    pub(crate) job: Vec<String>,
    pub(crate) starts: u64,
    pub(crate) work: u64,
    pub(crate) rest: u64,
    pub(crate) delay: u64,
    pub(crate) drift: i64,
    /// Whether it gives its job up where a write of it is refused, instead of trying again under its next lease.
    pub(crate) gives_up: bool,
}

/// A write of somebody who is no worker of the story, with a stamp from elsewhere.
#[derive(Clone, Debug)]
pub(crate) struct Scripted {
    pub(crate) at: u64,
    pub(crate) stamp: Stamp,
    pub(crate) who: String,
    pub(crate) text: String,
}

/// Everything that a story follows from.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) schedule: Schedule,
    pub(crate) rtt: u64,
    pub(crate) fencing: bool,
    pub(crate) policy: Policy,
    pub(crate) first_token: u64,
    pub(crate) floor: u64,
    pub(crate) nodes: u64,
    pub(crate) progress: Option<Duration>,
    pub(crate) store: u64,
    pub(crate) coordinator_drift: i64,
    pub(crate) until: u64,
    pub(crate) workers: Vec<WorkerPlan>,
    pub(crate) writes: Vec<Scripted>,
    pub(crate) happenings: Vec<Happening>,
}

impl Scenario {
    pub(crate) fn read(input: &JsValue) -> Result<Self, Wrong> {
        let fields = Fields::of(
            "scenario",
            input,
            &[
                "ttl_us",
                "drift_ppb",
                "rtt_us",
                "poll_us",
                "until_us",
                "fencing",
                "expires",
                "policy",
                "first_token",
                "floor",
                "nodes",
                "progress_us",
                "store_us",
                "coordinator_drift_ppb",
                "workers",
                "writes",
                "happenings",
            ],
        )?;
        let expires = fields.flag("expires")?.unwrap_or(true);
        let rtt = fields.required("rtt_us").map(Duration::from_micros)?;
        let mut plan = Plan::for_ttl(if expires { fields.ttl()? } else { FOR_EVER });
        plan = plan.drift(fields.drift()?).round_trip(rtt).poll(fields.duration("poll_us")?);
        let workers = list(&fields, "workers", worker)?;
        let first_token = fields.whole("first_token")?.unwrap_or(1);
        if first_token == 0 {
            return Err(Wrong::out_of_range("first_token", "tokens count from 1"));
        }
        let nodes = fields.whole("nodes")?.unwrap_or(1);
        fencegate::quorum(nodes).map_err(Wrong::from)?;
        let scenario = Self {
            schedule: plan.build().map_err(Wrong::unfit)?,
            rtt: rtt.as_micros(),
            fencing: fields.flag("fencing")?.unwrap_or(true),
            policy: fields
                .word("policy", &["at-least", "greater"])?
                .map_or(Policy::AtLeast, |at| if at == 0 { Policy::AtLeast } else { Policy::Greater }),
            first_token,
            floor: fields.whole("floor")?.unwrap_or(0),
            nodes,
            progress: fields.whole("progress_us")?.map(Duration::from_micros),
            store: span(&fields, "store_us")?.unwrap_or(0),
            coordinator_drift: drift(&fields, "coordinator_drift_ppb")?,
            until: span(&fields, "until_us")?.ok_or_else(|| Wrong::missing("until_us"))?,
            writes: list(&fields, "writes", scripted)?,
            happenings: list(&fields, "happenings", |fields| happening(fields, &workers))?,
            workers,
        };
        Ok(scenario)
    }
}

fn worker(fields: &JsValue) -> Result<WorkerPlan, Wrong> {
    let fields = Fields::of(
        "worker",
        fields,
        &["name", "job", "starts_us", "work_us", "rest_us", "delay_us", "drift_ppb", "gives_up"],
    )?;
    let name = fields.text("name")?.ok_or_else(|| Wrong::missing("name"))?;
    let id = holder("name", &name)?;
    let job = fields.get("job").filter(|job| Array::is_array(job)).ok_or_else(|| Wrong::missing("job"))?;
    let job: Option<Vec<String>> = Array::from(job).iter().map(|line| line.as_string()).collect();
    let job = job.filter(|job| job.len() <= MOST).ok_or_else(|| Wrong::out_of_range("job", "at most 64 texts"))?;
    Ok(WorkerPlan {
        id,
        name,
        job,
        starts: span(&fields, "starts_us")?.unwrap_or(0),
        work: span(&fields, "work_us")?.unwrap_or(0),
        rest: span(&fields, "rest_us")?.unwrap_or(0),
        delay: span(&fields, "delay_us")?.unwrap_or(0),
        drift: drift(&fields, "drift_ppb")?,
        gives_up: fields.flag("gives_up")?.unwrap_or(false),
    })
}

fn scripted(fields: &JsValue) -> Result<Scripted, Wrong> {
    let fields = Fields::of("write", fields, &["at_us", "holder", "token", "epoch", "text"])?;
    let who = fields.text("holder")?.ok_or_else(|| Wrong::missing("holder"))?;
    let token =
        Token::new(fields.required("token")?).ok_or_else(|| Wrong::out_of_range("token", "tokens count from 1"))?;
    let epoch = u32::try_from(fields.whole("epoch")?.unwrap_or(0))
        .map_err(|_| Wrong::out_of_range("epoch", "an epoch has 32 bits"))?;
    Ok(Scripted {
        at: span(&fields, "at_us")?.unwrap_or(0),
        stamp: Stamp { epoch: Epoch(epoch), token, holder: holder("holder", &who)? },
        who,
        text: fields.text("text")?.unwrap_or_default(),
    })
}

fn happening(fields: &JsValue, workers: &[WorkerPlan]) -> Result<Happening, Wrong> {
    let fields = Fields::of("happening", fields, &["what", "who", "at_us", "write", "for_us", "nodes", "token"])?;
    let what = What::ALL[fields.word("what", &What::ALL.map(What::name))?.ok_or_else(|| Wrong::missing("what"))?];
    let who = match fields.text("who")? {
        _ if !what.to_a_worker() => 0,
        None => return Err(Wrong::missing("who")),
        Some(name) => workers
            .iter()
            .position(|worker| worker.name == name)
            .ok_or_else(|| Wrong::out_of_range("who", "there is no worker of that name"))?,
    };
    let when = match (span(&fields, "at_us")?, fields.whole("write")?) {
        (Some(at), None) => When::At(at),
        (None, Some(n)) if what.to_a_worker() && what != What::Partition => When::Write(n),
        _ => return Err(Wrong::out_of_range("at_us", "either this or the number of a write is needed")),
    };
    Ok(Happening {
        what,
        when,
        who,
        lasts: span(&fields, "for_us")?.unwrap_or(0),
        nodes: fields.whole("nodes")?.unwrap_or(0),
        token: fields.whole("token")?.unwrap_or(0),
    })
}

/// A list of objects, each read by `read`; an error names the list and the place in it.
fn list<T>(fields: &Fields, field: &'static str, read: impl Fn(&JsValue) -> Result<T, Wrong>) -> Result<Vec<T>, Wrong> {
    let Some(value) = fields.get(field) else { return Ok(Vec::new()) };
    let Some(array) = value.dyn_ref::<Array>().filter(|array| array.length() as usize <= MOST) else {
        return Err(Wrong::out_of_range(field, "a list of at most 64 is needed"));
    };
    let mut all = Vec::new();
    for (at, item) in array.iter().enumerate() {
        all.push(read(&item).map_err(|wrong| wrong.within(field, at))?);
    }
    Ok(all)
}

/// A length of the story.
fn span(fields: &Fields, field: &'static str) -> Result<Option<u64>, Wrong> {
    match fields.whole(field)? {
        Some(us) if us > LONGEST => Err(Wrong::out_of_range(field, "a story lasts a day at most")),
        us => Ok(us),
    }
}

/// How far a clock really is off, slow below zero: it may go at half speed, and at one and a half.
fn drift(fields: &Fields, field: &'static str) -> Result<i64, Wrong> {
    const MOST: u64 = PPB / 2;
    match fields.get(field).map(|value| signed(field, value)).transpose()?.unwrap_or(0) {
        ppb if ppb.unsigned_abs() <= MOST => Ok(ppb),
        _ => Err(Wrong::out_of_range(field, "a clock of the story is off by at most 50 %")),
    }
}

fn holder(field: &'static str, name: &str) -> Result<HolderId, Wrong> {
    HolderId::new(name).map_err(|_| Wrong::out_of_range(field, "a holder's name is 1 to 16 printable ASCII characters"))
}

/// Only so that a scenario can be named in tests without an object of JavaScript's.
#[cfg(test)]
impl Scenario {
    pub(crate) fn of(ttl: u64, workers: Vec<WorkerPlan>, happenings: Vec<Happening>) -> Self {
        let plan = Plan::for_ttl(Duration::from_micros(ttl)).drift(Drift::from_ppm(1_000));
        Self {
            schedule: plan.round_trip(Duration::from_millis(50)).poll(Duration::from_millis(200)).build().unwrap(),
            rtt: 50_000,
            fencing: true,
            policy: Policy::AtLeast,
            first_token: 33,
            floor: 0,
            nodes: 1,
            progress: None,
            store: 0,
            coordinator_drift: 0,
            until: 60_000_000,
            workers,
            writes: Vec::new(),
            happenings,
        }
    }
}
