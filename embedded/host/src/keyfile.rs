//! Key files: JSON with hex, readable by people, for their owner only.
//!
//! ```json
//! { "fencegate_key": 1, "gate": "…", "key_id": 1, "instance": 7, "root": "…", "operator": "…" }
//! { "fencegate_key": 1, "gate": "…", "key_id": 1, "holder": "b", "key": "…" }
//! { "fencegate_key": 1, "gate": "…", "key_id": 1, "observer": "…" }
//! ```
//!
//! The first is the operator's: every key of the gate follows from it. The others hold one principal's base key. The
//! `key_id` says which of the gate's keys they are, since every provisioning makes new ones; where it is absent it is
//! 0. With `"demonstration": true` the keys are for the demonstration image without fencing, and no gate obeys them.

use fencegate::HolderId;
use fencegate_wire::{BaseKey, Credential, Domain, GateId, Key, Keyring, Provisioning, Role};
use serde_json::{Map, Value, json};
use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The form of the file that this version reads and writes.
const FORM: u64 = 1;

/// The keys of one gate, as far as somebody has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFile {
    /// Which gate.
    pub gate: GateId,
    /// Which kind of image.
    pub domain: Domain,
    /// Whose keys.
    pub secret: Secret,
}

/// Whose keys a file holds. `Debug` shows none of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Secret {
    /// All of them: the root, from which every holder's and the observers' follow, and the operator's.
    Root(Keyring),
    /// One holder's.
    Holder {
        /// Whose.
        holder: HolderId,
        /// Its base key.
        key: BaseKey,
        /// Which of the gate's keys it is: [`Keyring::id`].
        id: u8,
    },
    /// The observers': it reads and watches.
    Observer {
        /// Their base key.
        key: BaseKey,
        /// Which of the gate's keys it is: [`Keyring::id`].
        id: u8,
    },
}

/// What to do about a file that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Leave it, and fail: it may be the only copy of a gate's keys.
    Keep,
    /// Replace it.
    Replace,
}

/// Why a key file cannot be used.
#[derive(Debug)]
pub struct KeyFileError {
    path: PathBuf,
    why: Why,
}

#[derive(Debug)]
enum Why {
    Io(io::Error),
    Content(String),
}

impl fmt::Display for KeyFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path.display())?;
        match &self.why {
            Why::Io(error) => error.fmt(f),
            Why::Content(why) => write!(f, "not a key file: {why}"),
        }
    }
}

impl std::error::Error for KeyFileError {}

impl KeyFile {
    /// The operator's file of a gate that is provisioned so.
    pub fn of(provisioning: &Provisioning, domain: Domain) -> Self {
        let gate = &provisioning.gate;
        Self { gate: gate.gate, domain, secret: Secret::Root(gate.keys.clone()) }
    }

    /// The file to hand out to one principal; `None` where this one has not the root, or for the operator, whose
    /// file is this one.
    pub fn only(&self, role: Role) -> Option<Self> {
        let Secret::Root(keys) = &self.secret else { return None };
        let (key, id) = (keys.base(role), keys.id);
        let secret = match role {
            Role::Holder(holder) => Secret::Holder { holder: holder.name(), key, id },
            Role::Observer => Secret::Observer { key, id },
            Role::Operator => return None,
        };
        Some(Self { secret, ..*self })
    }

    /// Which of the gate's keys these are: every provisioning makes new ones.
    pub const fn key_id(&self) -> u8 {
        match &self.secret {
            Secret::Root(Keyring { id, .. }) | Secret::Holder { id, .. } | Secret::Observer { id, .. } => *id,
        }
    }

    /// What a request that is `role`'s to make is sealed with.
    ///
    /// A file that has not that key says who it is and lets the gate answer `role`. Only between holders that would
    /// be another's act: one that claims another holder's name claims it with its own key, and no gate answers.
    pub fn credential(&self, role: Role) -> Credential {
        let (role, key) = match (&self.secret, role) {
            (Secret::Root(keys), role) => (role, keys.base(role)),
            (Secret::Holder { key, .. }, Role::Holder(claimed)) => (Role::Holder(claimed), key.clone()),
            (Secret::Holder { holder, key, .. }, Role::Operator | Role::Observer) => {
                (Role::Holder(*holder), key.clone())
            }
            (Secret::Observer { key, .. }, _) => (Role::Observer, key.clone()),
        };
        Credential::new(self.gate, role, self.key_id(), &key, self.domain)
    }

    /// What a request that anybody may make is sealed with.
    pub fn reader(&self) -> Credential {
        self.credential(match self.secret {
            Secret::Root(_) => Role::Operator,
            Secret::Holder { holder, .. } => Role::Holder(holder),
            Secret::Observer { .. } => Role::Observer,
        })
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, KeyFileError> {
        let failed = |why| KeyFileError { path: path.to_owned(), why };
        let bytes = std::fs::read(path).map_err(|error| failed(Why::Io(error)))?;
        Self::parse(&bytes).map_err(|why| failed(Why::Content(why)))
    }

    /// Writes a file that only its owner may read. It is there as a whole, and on the disk, or not at all.
    ///
    /// # Errors
    /// Where it cannot be written, and where there is one already and `existing` says to keep it.
    pub fn write(&self, path: &Path, existing: Existing) -> Result<(), KeyFileError> {
        self.write_to(path, existing).map_err(|error| KeyFileError { path: path.to_owned(), why: Why::Io(error) })
    }

    fn write_to(&self, path: &Path, existing: Existing) -> io::Result<()> {
        let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
        // Created with mode 0600, and gone again if anything below fails.
        let mut file = tempfile::Builder::new().prefix(".fencegate-key-").tempfile_in(folder)?;
        file.write_all(self.to_json().as_bytes())?;
        file.as_file().sync_all()?;
        match existing {
            Existing::Keep => file.persist_noclobber(path)?,
            Existing::Replace => file.persist(path)?,
        };
        #[cfg(unix)] // elsewhere a folder is no file that could be synchronized
        std::fs::File::open(folder)?.sync_all()?;
        Ok(())
    }

    /// The file's text, secrets and all.
    pub fn to_json(&self) -> String {
        let mut fields = json!({ "fencegate_key": FORM, "gate": hex::encode(self.gate.0), "key_id": self.key_id() });
        let secret = |key: &Key| hex::encode(key.expose());
        match &self.secret {
            Secret::Root(keys) => {
                fields["instance"] = json!(keys.instance);
                fields["root"] = json!(secret(&keys.root));
                fields["operator"] = json!(secret(&keys.operator));
            }
            Secret::Holder { holder, key, .. } => {
                fields["holder"] = json!(holder);
                fields["key"] = json!(secret(&key.0));
            }
            Secret::Observer { key, .. } => fields["observer"] = json!(secret(&key.0)),
        }
        if self.domain == Domain::Demonstration {
            fields["demonstration"] = json!(true);
        }
        format!("{fields:#}\n")
    }

    /// Reads a file's text. What is wrong is said without a word of what stands there: it may be a secret.
    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let fields: Map<String, Value> = serde_json::from_slice(bytes)
            .map_err(|e| format!("line {}, column {}: no JSON object", e.line(), e.column()))?;
        let mut fields = Fields(fields);
        if fields.number("fencegate_key")? != FORM {
            return Err(format!("`fencegate_key` is not {FORM}: another version wrote it"));
        }
        let gate = GateId(fields.bytes("gate")?);
        let id = if fields.0.contains_key("key_id") { fields.number("key_id")? } else { 0 };
        let id = u8::try_from(id).map_err(|_| format!("`key_id` is above {}", u8::MAX))?;
        let domain = match fields.0.remove("demonstration") {
            None | Some(Value::Bool(false)) => Domain::Gate,
            Some(Value::Bool(true)) => Domain::Demonstration,
            Some(_) => return Err("`demonstration` is neither true nor false".to_owned()),
        };
        let secret = if fields.0.contains_key("holder") {
            Secret::Holder { holder: fields.holder("holder")?, key: BaseKey(fields.key("key")?), id }
        } else if fields.0.contains_key("observer") {
            Secret::Observer { key: BaseKey(fields.key("observer")?), id }
        } else {
            let (root, operator) = (fields.key("root")?, fields.key("operator")?);
            Secret::Root(Keyring { root, operator, instance: fields.number("instance")?, id })
        };
        match fields.0.keys().next() {
            Some(_) => Err(format!("it has {} fields too many", fields.0.len())),
            None => Ok(Self { gate, domain, secret }),
        }
    }
}

/// The fields that nobody has read yet.
struct Fields(Map<String, Value>);

impl Fields {
    fn take(&mut self, name: &str) -> Result<Value, String> {
        self.0.remove(name).ok_or_else(|| format!("`{name}` is missing"))
    }

    fn number(&mut self, name: &str) -> Result<u64, String> {
        self.take(name)?.as_u64().ok_or_else(|| format!("`{name}` is no whole number of 64 bits"))
    }

    fn bytes<const N: usize>(&mut self, name: &str) -> Result<[u8; N], String> {
        let mut bytes = [0; N];
        match self.take(name)? {
            Value::String(text) if hex::decode_to_slice(&text, &mut bytes).is_ok() => Ok(bytes),
            _ => Err(format!("`{name}` is not {} hexadecimal digits", 2 * N)),
        }
    }

    fn key(&mut self, name: &str) -> Result<Key, String> {
        self.bytes(name).map(Key::new)
    }

    fn holder(&mut self, name: &str) -> Result<HolderId, String> {
        let value = self.take(name)?;
        let text = value.as_str().ok_or_else(|| format!("`{name}` is no text"))?;
        HolderId::new(text).map_err(|why| format!("`{name}`: {why}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(text: &str) -> HolderId {
        HolderId::new(text).unwrap()
    }

    fn root() -> KeyFile {
        let keys = Keyring { root: Key::new([0xa1; 32]), operator: Key::new([0xa2; 32]), instance: u64::MAX, id: 3 };
        KeyFile { gate: GateId(*b"press-07"), domain: Domain::Gate, secret: Secret::Root(keys) }
    }

    /// Every kind of file, of both domains.
    fn all() -> Vec<KeyFile> {
        let root = root();
        let some = [root.clone(), root.only(Role::Holder(holder("b"))).unwrap(), root.only(Role::Observer).unwrap()];
        some.into_iter().flat_map(|file| [file.clone(), KeyFile { domain: Domain::Demonstration, ..file }]).collect()
    }

    #[test]
    fn what_is_written_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gate.key");
        for file in all() {
            file.write(&path, Existing::Replace).unwrap();
            assert_eq!(KeyFile::read(&path).unwrap(), file);
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left there");
    }

    #[test]
    fn it_reads_as_documented() {
        let text = root().to_json();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            value,
            json!({
                "fencegate_key": 1, "gate": "70726573732d3037", "key_id": 3, "instance": u64::MAX,
                "root": "a1".repeat(32), "operator": "a2".repeat(32),
            })
        );
    }

    #[test]
    fn a_file_of_one_principal_has_the_key_id_and_one_without_has_the_first() {
        for file in all() {
            assert_eq!((file.key_id(), file.reader().key_id), (3, 3));
            let mut fields: Value = serde_json::from_str(&file.to_json()).unwrap();
            assert_eq!(fields.as_object_mut().unwrap().remove("key_id"), Some(json!(3)));
            assert_eq!(KeyFile::parse(fields.to_string().as_bytes()).unwrap().key_id(), 0);
        }
    }

    #[test]
    fn a_file_that_is_there_is_not_overwritten_unless_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gate.key");
        std::fs::write(&path, "precious").unwrap();
        let error = root().write(&path, Existing::Keep).unwrap_err();
        assert!(error.to_string().contains("gate.key"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
        root().write(&path, Existing::Replace).unwrap();
        assert_eq!(KeyFile::read(&path).unwrap(), root());
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_may_read_it() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        for existing in [Existing::Keep, Existing::Replace] {
            let path = folder.path().join("gate.key");
            root().write(&path, existing).unwrap();
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn no_secret_is_shown() {
        for file in all() {
            let shown = format!("{file:?} {:?} {:?}", file.reader(), file.credential(Role::Operator));
            assert!(!shown.contains("a1a1") && !shown.contains("161, 161"), "{shown}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_without_the_secret() {
        let secret = "5e".repeat(32);
        for (text, why) in [
            (String::new(), "no JSON object"),
            ("[]".to_owned(), "no JSON object"),
            (format!("{{\"{secret}"), "no JSON object"),
            ("{}".to_owned(), "`fencegate_key` is missing"),
            (format!("{{\"fencegate_key\": \"{secret}\"}}"), "`fencegate_key` is no whole number"),
            (r#"{"fencegate_key": 2}"#.to_owned(), "another version"),
            (r#"{"fencegate_key": 1, "gate": "70"}"#.to_owned(), "`gate` is not 16 hexadecimal digits"),
            (root().to_json().replace(": 3", ": 256"), "`key_id` is above 255"),
            (root().to_json().replace("root", "roots"), "`root` is missing"),
            (root().to_json().replace("a1a1", "a1g1"), "`root` is not 64 hexadecimal digits"),
            (root().to_json().replace("\"a1", "\"a1a1"), "`root` is not 64 hexadecimal digits"),
            (root().to_json().replace("\"gate\"", &format!("\"{secret}\": 1, \"gate\"")), "fields too many"),
            (all()[2].to_json().replace("\"b\"", "\"b#\""), "`holder`: "),
            (all()[2].to_json().replace("\"key\"", "\"root\""), "`key` is missing"),
        ] {
            let error = KeyFile::parse(text.as_bytes()).unwrap_err();
            assert!(error.contains(why), "{error} does not say {why}");
            assert!(!error.contains("5e5e"), "{error}");
        }
        let error = KeyFile::read(Path::new("/nonexistent/gate.key")).unwrap_err().to_string();
        assert!(error.starts_with("/nonexistent/gate.key: "), "{error}");
    }

    #[test]
    fn a_file_speaks_as_whom_it_belongs_to() {
        let (a, b) = (Role::Holder(holder("a")), Role::Holder(holder("b#2")));
        let root = root();
        let (only_b, observer) = (root.only(b).unwrap(), root.only(Role::Observer).unwrap());
        let role = |file: &KeyFile, role| file.credential(role).role;
        assert_eq!(
            [role(&root, a), role(&root, Role::Operator), root.reader().role],
            [a, Role::Operator, Role::Operator]
        );
        assert_eq!([role(&only_b, b), role(&only_b, Role::Operator)], [b, Role::Holder(holder("b"))]);
        assert_eq!([role(&observer, b), role(&observer, Role::Operator), observer.reader().role], [Role::Observer; 3]);

        let key = |file: &KeyFile, role| *file.credential(role).keys.request.expose();
        assert_eq!(key(&only_b, b), key(&root, b), "the same key, whoever derived it");
        assert_ne!(key(&only_b, a), key(&root, a), "a name claimed with another's key convinces nobody");
        assert_eq!((only_b.only(Role::Observer), root.only(Role::Operator)), (None, None));
    }
}
