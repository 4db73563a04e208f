//! What a gate is to be, as a TOML file: `example.toml` says what may stand there. What is wrong is named with its key
//! and its line.

use super::super::units;
use fencegate::{Drift, Duration, Epoch, Limits, RaiseBudget};
use fencegate_wire::{
    Authority, BadProvisioning, ChannelConfig, GateConfig, GateId, Keyring, OutputConfig, Provisioning, SafeAction,
};
use std::fmt::{self, Display};
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A commented file that is itself one to be used.
pub(super) const EXAMPLE: &str = include_str!("example.toml");

/// What is wrong with a file, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    /// Counted from 1; none where something is missing from the whole.
    line: Option<usize>,
    what: String,
}

impl Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

/// Which gate it is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Identity {
    /// This one, unless the file says another.
    Fresh(GateId),
    /// This one: it is one already, or takes its place.
    Kept(GateId),
}

/// Reads what the gate of this identity and with `keys` is to be.
pub(super) fn read(text: &str, identity: Identity, keys: Keyring) -> Result<Provisioning, Wrong> {
    let document = DeTable::parse(text)
        .map_err(|error| Wrong { line: error.span().map(|at| line(text, &at)), what: one_line(error.message()) })?;
    let lines: Vec<_> =
        document.get_ref().iter().map(|(key, _)| (key.get_ref().to_string(), line(text, &key.span()))).collect();
    let mut root = Table { text, name: String::new(), line: None, fields: document.into_inner() };
    let gate = match (identity, root.maybe("identity", self::identity)?) {
        (Identity::Fresh(gate) | Identity::Kept(gate), None) => gate,
        (Identity::Fresh(_), Some(stated)) => stated,
        (Identity::Kept(gate), Some(stated)) if stated == gate => gate,
        (Identity::Kept(gate), Some(_)) => {
            let line = lines.iter().find(|(key, _)| key == "identity").map(|(_, line)| *line);
            return Err(Wrong { line, what: format!("identity: the gate is {gate}, and stays it; leave it out") });
        }
    };
    let gate = GateConfig {
        gate,
        keys,
        drift: root.needed("drift", drift)?,
        lateness: root.needed("lateness", spends)?,
        longest_window: root.or("longest_window", has, Duration::from_secs(60))?,
        raises: match root.table("raises")? {
            Some(raises) => budget(raises)?,
            None => RaiseBudget { burst: BURST, every: EVERY },
        },
        epoch_jump: root.or("epoch_jump", number, Limits::EPOCH_JUMP)?,
        warning: root.or("warning", spends, Duration::ZERO)?,
    };
    let mut all = Provisioning { gate, channels: [].into_iter().collect(), outputs: [].into_iter().collect() };
    for channel in root.tables("channel")? {
        self::channel(channel, &mut all)?;
    }
    root.end()?;
    // What is wrong with the whole begins with the name of the key that is to blame.
    all.check().map_err(|bad| {
        let what = match bad {
            BadProvisioning::Outputs if all.channels.is_empty() => "channel: a gate has at least one".to_owned(),
            bad => bad.to_string(),
        };
        let blamed = what.split(':').next().unwrap_or_default();
        Wrong { line: lines.iter().find(|(key, _)| key == blamed).map(|(_, line)| *line), what }
    })?;
    Ok(all)
}

/// How many raises may come at once, and how often one more, unless the file says otherwise: a flash of two pages and
/// 100 000 erases lasts for years of it.
const BURST: u32 = 32;
const EVERY: Duration = Duration::from_secs(10);

fn budget(mut table: Table<'_>) -> Result<RaiseBudget, Wrong> {
    let raises = RaiseBudget { burst: table.or("burst", number, BURST)?, every: table.or("every", spends, EVERY)? };
    table.end()?;
    Ok(raises)
}

/// Reads a channel and its outputs behind those that are there.
fn channel(mut table: Table<'_>, all: &mut Provisioning) -> Result<(), Wrong> {
    let usual = ChannelConfig::new();
    let mut outputs = table.tables("output")?.into_iter().map(output).collect::<Result<Vec<_>, _>>()?;
    if outputs.is_empty() {
        outputs.push(OutputConfig::switch());
    }
    let channel = ChannelConfig {
        authority: table.or("authority", authority, usual.authority)?,
        outputs: u8::try_from(outputs.len()).unwrap_or(u8::MAX), // so many are refused below
        reaction: table.or("reaction", spends, usual.reaction)?,
        token_jump: table.or("token_jump", number, usual.token_jump)?,
        epoch: Epoch(table.or("epoch", number, usual.epoch.0)?),
        floor: table.or("floor", number, usual.floor)?,
        lock_delay: table.or("lock_delay", spends, usual.lock_delay)?,
        rearm_after_window: table.or("rearm_after_window", yes_or_no, usual.rearm_after_window)?,
    };
    table.end()?;
    channel.check().map_err(|bad| table.wrong(bad))?;
    all.outputs.extend_from_slice(&outputs).map_err(|_| table.wrong(BadProvisioning::Outputs))?;
    all.channels.push(channel).map_err(|_| table.wrong("a gate has no more channels than those before this one"))
}

fn output(mut table: Table<'_>) -> Result<OutputConfig, Wrong> {
    let usual = OutputConfig::switch();
    let output = OutputConfig {
        min: table.or("min", number, usual.min)?,
        max: table.or("max", number, usual.max)?,
        safe: table.or("safe", number, usual.safe)?,
        powered: table.or("powered", yes_or_no, usual.powered)?,
        action: match table.table("action") {
            Ok(Some(action)) => way(action)?,
            Ok(None) => usual.action,
            Err(_) => table.or("action", at_once, usual.action)?,
        },
        least_on: table.or("least_on", spends, usual.least_on)?,
        least_off: table.or("least_off", spends, usual.least_off)?,
        feedback: table.or("feedback", |value| spends(value).map(Some), usual.feedback)?,
    };
    table.end()?;
    output.check().map_err(|bad| table.wrong(bad))?;
    Ok(output)
}

/// The way to a safe value.
fn way(mut table: Table<'_>) -> Result<SafeAction, Wrong> {
    let (keep, ramp) = (table.maybe("keep", spends)?, table.maybe("ramp", spends)?);
    let (hold, time) = (table.maybe("hold", number)?, table.maybe("time", spends)?);
    table.end()?;
    match (keep, hold, ramp, time) {
        (Some(time), None, None, None) => Ok(SafeAction::Keep { time }),
        (None, Some(value), None, Some(time)) => Ok(SafeAction::Hold { value, time }),
        (None, None, Some(time), None) => Ok(SafeAction::Ramp { time }),
        _ => Err(table.wrong("one of keep, hold (with its time) and ramp: { ramp = \"300ms\" }")),
    }
}

/// A table whose fields are taken one after the other; what nobody has taken is none of ours.
struct Table<'t> {
    text: &'t str,
    /// `channel[0].output[1]`; empty for the file.
    name: String,
    line: Option<usize>,
    fields: DeTable<'t>,
}

impl<'t> Table<'t> {
    /// Something is wrong with the table.
    fn wrong(&self, what: impl Display) -> Wrong {
        let dot = if self.name.is_empty() { "" } else { "." };
        // What is wrong with a part begins with the name of a key, as one that is missing does.
        let named = what.to_string();
        let is_key = named.split_once(": ").is_some_and(|(key, _)| !key.contains(' '));
        let name = if is_key { format!("{}{dot}", self.name) } else { format!("{}: ", self.name) };
        Wrong { line: self.line, what: format!("{name}{named}") }
    }

    fn path(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    /// A value that may be absent.
    fn maybe<T>(&mut self, key: &str, read: impl Fn(&DeValue<'_>) -> Result<T, String>) -> Result<Option<T>, Wrong> {
        let Some(value) = self.fields.remove(key) else { return Ok(None) };
        let wrong =
            |why| Wrong { line: Some(line(self.text, &value.span())), what: format!("{}: {why}", self.path(key)) };
        read(value.get_ref()).map(Some).map_err(wrong)
    }

    /// A value that has a usual one.
    fn or<T>(&mut self, key: &str, read: impl Fn(&DeValue<'_>) -> Result<T, String>, usual: T) -> Result<T, Wrong> {
        Ok(self.maybe(key, read)?.unwrap_or(usual))
    }

    /// A value that nobody else can know.
    fn needed<T>(&mut self, key: &str, read: impl Fn(&DeValue<'_>) -> Result<T, String>) -> Result<T, Wrong> {
        let missing = self.wrong(format_args!("{key}: missing; `provision --example` shows it"));
        self.maybe(key, read)?.ok_or(missing)
    }

    /// A table that may be absent; one that is something else stays.
    fn table(&mut self, key: &str) -> Result<Option<Self>, Wrong> {
        match self.fields.get(key).map(|value| (value.span(), value.get_ref())) {
            None => return Ok(None),
            Some((_, DeValue::Table(_))) => {}
            Some((at, other)) => {
                let line = Some(line(self.text, &at));
                return Err(Wrong { line, what: format!("{}: a table, and no {}", self.path(key), other.type_str()) });
            }
        }
        let name = self.path(key);
        Ok(self.fields.remove(key).and_then(|value| Self::of(self.text, name, value)))
    }

    /// The tables of a list, `[[key]]`; none where it is absent.
    fn tables(&mut self, key: &str) -> Result<Vec<Self>, Wrong> {
        let Some(list) = self.fields.remove(key) else { return Ok(Vec::new()) };
        let (path, text, at) = (self.path(key), self.text, line(self.text, &list.span()));
        let no_list =
            |line| Wrong { line: Some(line), what: format!("{path}: a list of tables, each under `[[…{key}]]`") };
        let DeValue::Array(list) = list.into_inner() else { return Err(no_list(at)) };
        (list.into_iter().enumerate())
            .map(|(n, value)| {
                let at = line(text, &value.span());
                Self::of(text, format!("{path}[{n}]"), value).ok_or_else(|| no_list(at))
            })
            .collect()
    }

    fn of(text: &'t str, name: String, value: Spanned<DeValue<'t>>) -> Option<Self> {
        let line = Some(line(text, &value.span()));
        match value.into_inner() {
            DeValue::Table(fields) => Some(Self { text, name, line, fields }),
            _ => None,
        }
    }

    /// Nothing else may stand there: a key that is misspelt would otherwise be one that is left out.
    fn end(&self) -> Result<(), Wrong> {
        match self.fields.iter().next() {
            None => Ok(()),
            Some((key, _)) => Err(Wrong {
                line: Some(line(self.text, &key.span())),
                what: format!("{}: no such key", self.path(key.get_ref())),
            }),
        }
    }
}

/// The line that a place in the text is on.
fn line(text: &str, at: &Range<usize>) -> usize {
    1 + text.bytes().take(at.start).filter(|byte| *byte == b'\n').count()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Reads a text with a parser of the command line's.
fn text<T, E: Display>(value: &DeValue<'_>, parse: impl Fn(&str) -> Result<T, E>, like: &str) -> Result<T, String> {
    match value.as_str() {
        Some(text) => parse(text).map_err(|why| format!("`{text}`: {why}")),
        None => Err(format!("a text, as in {like}, and no {}", value.type_str())),
    }
}

fn has(value: &DeValue<'_>) -> Result<Duration, String> {
    text(value, units::has, "\"60s\"")
}

fn spends(value: &DeValue<'_>) -> Result<Duration, String> {
    text(value, units::spends, "\"5ms\"")
}

fn drift(value: &DeValue<'_>) -> Result<Drift, String> {
    text(value, units::parse_drift, "\"100ppm\"")
}

/// A name of up to 8 letters, or all 8 bytes in hex.
fn identity(value: &DeValue<'_>) -> Result<GateId, String> {
    let text = value.as_str().unwrap_or_default();
    let mut gate = GateId::FACTORY;
    let is_name = (1..=gate.0.len()).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    if is_name {
        gate.0.iter_mut().zip(text.bytes()).for_each(|(byte, letter)| *byte = letter);
    } else if hex::decode_to_slice(text, &mut gate.0).is_err() {
        return Err("1 to 8 letters, digits and signs, or 16 hexadecimal digits".to_owned());
    }
    Ok(gate)
}

fn authority(value: &DeValue<'_>) -> Result<Authority, String> {
    match value.as_str() {
        Some("outside") => Ok(Authority::Outside),
        Some("own") => Ok(Authority::Own),
        _ => Err("one of \"outside\" and \"own\"".to_owned()),
    }
}

fn at_once(value: &DeValue<'_>) -> Result<SafeAction, String> {
    match value.as_str() {
        Some("at-once") => Ok(SafeAction::AtOnce),
        _ => Err("\"at-once\", or one of { keep = \"300ms\" }, { hold = 1, time = \"500ms\" }, { ramp = \"300ms\" }"
            .to_owned()),
    }
}

fn yes_or_no(value: &DeValue<'_>) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| format!("true or false, and no {}", value.type_str()))
}

/// A whole number that fits.
fn number<T: TryFrom<i128>>(value: &DeValue<'_>) -> Result<T, String> {
    let Some(integer) = value.as_integer() else {
        return Err(format!("a whole number, and no {}", value.type_str()));
    };
    i128::from_str_radix(integer.as_str(), integer.radix())
        .ok()
        .and_then(|n| T::try_from(n).ok())
        .ok_or_else(|| format!("`{}` is out of the range of such a number", integer.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencegate_wire::Key;

    fn from(text: &str) -> Result<Provisioning, Wrong> {
        let keys = Keyring { root: Key::new([1; 32]), operator: Key::new([2; 32]), instance: 3, id: 0 };
        read(text, Identity::Fresh(GateId(*b"press-07")), keys)
    }

    #[test]
    fn an_identity_is_a_name_or_hex_and_a_gate_keeps_its_own() {
        let head = "drift = \"100ppm\"\nlateness = \"5ms\"\n";
        let as_ = |identity: &str, whose: fn(GateId) -> Identity| {
            let keys = Keyring { root: Key::new([1; 32]), operator: Key::new([2; 32]), instance: 3, id: 0 };
            let text = format!("{head}identity = {identity}\n[[channel]]");
            read(&text, whose(GateId(*b"press-07")), keys)
                .map(|gate| gate.gate.gate.0)
                .map_err(|wrong| wrong.to_string())
        };
        assert_eq!(as_("\"valve-3\"", Identity::Fresh), Ok(*b"valve-3\0"));
        assert_eq!(as_("\"0123456789abcdef\"", Identity::Fresh), Ok([0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef]));
        assert_eq!(as_("\"press-07\"", Identity::Kept), Ok(*b"press-07"));
        let other = as_("\"valve-3\"", Identity::Kept).unwrap_err();
        assert_eq!(other, "line 3: identity: the gate is 70726573732d3037, and stays it; leave it out");
        for wrong in ["\"\"", "\"a gate\"", "\"valve-seven\"", "7", "\"0123456789abcdeg\""] {
            let wrong = as_(wrong, Identity::Fresh).unwrap_err();
            assert!(wrong.starts_with("line 3: identity: 1 to 8 letters"), "{wrong}");
        }
        let zeros = as_("\"0000000000000000\"", Identity::Fresh).unwrap_err();
        assert!(zeros.contains("an identity of zeros is nobody's"), "{zeros}");
    }

    #[test]
    fn the_example_is_a_gate_and_shows_what_is_usual() {
        let gate = from(EXAMPLE).unwrap();
        let usual = from("drift = \"100ppm\"\nlateness = \"5ms\"\n[[channel]]").unwrap();
        assert_eq!(gate.gate, usual.gate, "what the example says is what is left out");
        assert_eq!((&gate.channels[0], gate.outputs_of(0)), (&usual.channels[0], usual.outputs_of(0)));
        assert_eq!(usual.channels[..], [ChannelConfig::new()]);
        assert_eq!(usual.outputs[..], [OutputConfig::switch()]);
        let times: Vec<_> = (0..3).map(|n| gate.timing(n).unwrap().reaction.as_micros()).collect();
        assert_eq!(times, [0, 520_000, 0]);
        assert_eq!(gate.channels[2].authority, Authority::Own);
    }

    /// Every line of the example but its comments is looked at: without its value the file is refused, on that line.
    #[test]
    fn every_value_of_the_example_is_read() {
        let lines: Vec<_> = EXAMPLE.lines().collect();
        for (n, line) in lines.iter().enumerate().filter(|(_, line)| line.contains(" = ") && !line.starts_with('#')) {
            let key = line.split(" = ").next().unwrap();
            for spoilt in [format!("{key} = [1979-05-27]"), format!("{key}s = 1")] {
                let mut spoilt_lines = lines.clone();
                spoilt_lines[n] = &spoilt;
                let wrong = from(&spoilt_lines.join("\n")).unwrap_err().to_string();
                let named = wrong.contains(key)
                    && (wrong.starts_with(&format!("line {}: ", n + 1)) || wrong.contains("missing"));
                assert!(named, "{spoilt}: {wrong}");
            }
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_key_and_line() {
        let head = "drift = \"100ppm\"\nlateness = \"5ms\"\n";
        for (text, want) in [
            ("", "drift: missing; `provision --example` shows it"),
            ("drift = \"100ppm\"", "lateness: missing; `provision --example` shows it"),
            ("drift = ", "line 1: "),
            ("drift = \"1\"\n", "line 1: drift: `1`: "),
            ("drift = 100\n", "line 1: drift: a text, as in \"100ppm\", and no integer"),
        ] {
            let wrong = from(text).unwrap_err().to_string();
            assert!(wrong.starts_with(want), "{text}: {wrong}");
            assert!(!wrong.contains('\n'), "{wrong}");
        }
        let nine = "[[channel]]\n".repeat(9);
        let nine_outputs = format!("[[channel]]\n{}", "[[channel.output]]\n".repeat(9));
        for (text, want) in [
            ("", "channel: a gate has at least one"),
            ("drift = \"1ppm\"", "line 3: duplicate key"),
            ("drfit = 1\n[[channel]]", "line 3: drfit: no such key"),
            ("channel = 1", "line 3: channel: a list of tables, each under `[[…channel]]`"),
            ("[[channel]]\nepoch = -1", "line 4: channel[0].epoch: `-1` is out of the range"),
            ("[[channel]]\nepoch = 4294967296", "line 4: channel[0].epoch: `4294967296` is out of the range"),
            ("[[channel]]\nepoch = \"1\"", "line 4: channel[0].epoch: a whole number, and no string"),
            ("[[channel]]\nauthority = \"etcd\"", "line 4: channel[0].authority: one of "),
            ("[[channel]]\nfloor = 9223372036854775807", "line 3: channel[0].floor: "),
            ("[[channel]]\n[[channel.output]]\nsafe = 1", "line 4: channel[0].output[0].powered: "),
            ("[[channel]]\n[[channel]]\n[[channel.output]]\nsafe = 2", "line 5: channel[1].output[0].safe: "),
            ("[[channel]]\n[[channel.output]]\nmax = 1.5", "line 5: channel[0].output[0].max: a whole number"),
            ("[[channel]]\n[[channel.output]]\npowered = 1", "line 5: channel[0].output[0].powered: true or false"),
            ("[[channel]]\n[[channel.output]]\naction = { hold = 1 }", "line 5: channel[0].output[0].action: one of"),
            ("[[channel]]\n[[channel.output]]\naction = \"ramp\"", "line 5: channel[0].output[0].action: \"at-once\""),
            ("[[channel]]\n[[channel.output]]\naction = { jump = 1 }", "line 5: channel[0].output[0].action.jump: no "),
            ("longest_window = \"5ms\"\n[[channel]]", "line 3: longest_window: "),
            ("raises = { burst = 0 }\n[[channel]]", "line 3: raises: "),
            ("epoch_jump = 0\n[[channel]]", "line 3: epoch_jump: "),
            ("[[channel]]\ntoken_jump = 0", "line 3: channel[0].token_jump: "),
            ("raises = 1\n[[channel]]", "line 3: raises: a table, and no integer"),
            (nine.as_str(), "line 11: channel[8]: "),
            (nine_outputs.as_str(), "line 3: channel[0].outputs: "),
        ] {
            let wrong = from(&format!("{head}{text}")).unwrap_err().to_string();
            assert!(wrong.starts_with(want), "{text}: {wrong}");
        }
    }

    #[test]
    fn numbers_may_be_written_as_toml_has_them() {
        let head = "drift = \"100ppm\"\nlateness = \"5ms\"\n[[channel]]\n";
        for (text, want) in [("token_jump = 0x1_0000", 0x1_0000), ("token_jump = 18446744073709551615", u64::MAX)] {
            assert_eq!(from(&format!("{head}{text}")).unwrap().channels[0].token_jump, want);
        }
    }
}
