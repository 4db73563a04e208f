//! The guards that are scripts around a cloud's own command, against what stands in for the cloud.

use super::{Guarded, Write, at_least, greater, highest, printed, write};
use fencegate_tests::{Said, Server};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What such a script said: whether it wrote.
fn took(said: &Said, w: Write) -> bool {
    match said.status {
        0 => true,
        2 => {
            assert!(!w.has_numbers(), "{said:?}");
            false
        }
        status => {
            assert!(status == 1 && said.err.starts_with("refused: "), "{said:?}");
            false
        }
    }
}

/// The variables that such a script is told its write with.
fn tell(script: &mut Command, resource: &str, w: Write, body: &Path) {
    fs::write(body, w.value).unwrap();
    script.env("BUCKET", "presses").env("BODY", body);
    script.env("RESOURCE", resource).env("EPOCH", w.epoch).env("TOKEN", w.token);
    script.env("HOLDER", w.holder).env("SEQ", w.seq).env("VALUE", w.value.replace(' ', "-"));
}

/// Around AWS's; `moto` stands in for the stores.
struct Aws<'a> {
    server: &'a Server,
    system: &'static str,
    guard: PathBuf,
}

impl Guarded for Aws<'_> {
    fn takes(&self, resource: &str, w: Write) -> bool {
        let mut shell = Command::new("sh");
        tell(self.server.for_aws(&mut shell).arg(&self.guard), resource, w, &self.server.folder().join("body"));
        let said = Said::by(&mut shell);
        if self.system == "dynamodb" && ![0, 2].contains(&said.status) {
            assert!(said.err.contains("(ConditionalCheckFailedException)"), "{said:?}");
            return false;
        }
        took(&said, w)
    }

    fn value(&self, resource: &str) -> String {
        if self.system == "dynamodb" {
            let key = format!("{{\"resource\": {{\"S\": \"{resource}\"}}}}");
            let words = ["dynamodb", "get-item", "--table-name", "fenced", "--key", &key];
            let said = Said::by(&mut self.server.aws(&words));
            return said.json()["Item"]["value"]["S"].as_str().unwrap().replace('-', " ");
        }
        let file = self.server.folder().join("value");
        let words = ["s3api", "get-object", "--bucket", "presses", "--key", resource, file.to_str().unwrap()];
        let said = Said::by(&mut self.server.aws(&words));
        assert_eq!(said.status, 0, "{said:?}");
        // Below the line with the stamp.
        fs::read_to_string(file).unwrap().split_once('\n').unwrap().1.to_owned()
    }
}

/// A store of its own for each policy: the stamps of one mean nothing under the other.
fn aws_runs_its_guard(system: &'static str, prepare: fn(&Server)) {
    for policy in ["at-least", "greater"] {
        let server = Server::moto();
        prepare(&server);
        let at = Aws { server: &server, system, guard: printed(system, policy, server.folder()) };
        if policy == "greater" {
            greater(&at);
        } else {
            at_least(&at);
            highest(&at, true);
        }
    }
}

#[test]
fn dynamodb_runs_its_guard() {
    aws_runs_its_guard("dynamodb", |server| server.dynamodb_table("fenced", "resource"));
}

fn bucket(server: &Server) {
    let location = "LocationConstraint=eu-central-1";
    let words = ["s3api", "create-bucket", "--bucket", "presses", "--create-bucket-configuration", location];
    let said = Said::by(&mut server.aws(&words));
    assert_eq!(said.status, 0, "{said:?}");
}

#[test]
fn s3_runs_its_guard() {
    aws_runs_its_guard("s3", bucket);
}

/// Around Google's; `fake-gcs-server` stands in for the store.
struct Gcs<'a>(&'a Server, PathBuf);

impl Guarded for Gcs<'_> {
    fn takes(&self, resource: &str, w: Write) -> bool {
        let mut shell = Command::new("sh");
        tell(self.0.for_gcloud(&mut shell).arg(&self.1), resource, w, &self.0.folder().join("body"));
        took(&Said::by(&mut shell), w)
    }

    fn value(&self, resource: &str) -> String {
        self.0.gcs_object("presses", resource)
    }
}

/// A store for Google's guards with a bucket; `None`, and a word on it, where this machine cannot run them.
fn gcs() -> Option<Server> {
    let server = Server::gcs();
    match &server {
        Some(server) => {
            let made = server.for_gcloud(&mut Command::new("gcloud")).args(BUCKET).output().unwrap();
            assert!(made.status.success(), "{made:?}");
        }
        None => println!("not tested, since there is no gcloud on this machine: the guard for gcs"),
    }
    server
}

const BUCKET: [&str; 4] = ["storage", "buckets", "create", "gs://presses"];

#[test]
fn gcs_runs_its_guard() {
    let Some(server) = gcs() else { return };
    let at = Gcs(&server, printed("gcs", "at-least", server.folder()));
    at_least(&at);
    highest(&at, true);
}

#[test]
fn gcs_runs_its_guard_of_one_write_a_token() {
    let Some(server) = gcs() else { return };
    greater(&Gcs(&server, printed("gcs", "greater", server.folder())));
}

/// A guard that reads, compares and writes over what it has read. What comes in between is a command of the test's, in front
/// of the path under the cloud's command's `name`: it lets a higher stamp write just before the guard does, with the words
/// `writes`.
fn is_overtaken(store: &impl Guarded, name: &str, writes: &str, guard: &Path, prepare: &dyn Fn(&mut Command)) -> Said {
    assert!(store.takes("press-7", write("0", "33", "press-a", "1", "up")));
    let folder = tempfile::tempdir().unwrap();
    let (command, body) = (folder.path().join(name), folder.path().join("body"));
    let mut shell = Command::new("sh");
    tell(shell.arg(guard), "press-7", write("0", "34", "press-b", "1", "overtaken"), &body);
    prepare(&mut shell);
    let path = shell.get_envs().find(|(name, _)| *name == "PATH").and_then(|(_, path)| path).unwrap().to_owned();
    let path = path.into_string().unwrap();
    let overtake = format!(
        "#!/bin/sh\nPATH={path}\ncase $* in *{writes}*) TOKEN=35 HOLDER=press-c SEQ=1 sh {} >&2 ;; esac\nexec {name} \"$@\"\n",
        guard.display()
    );
    fs::write(&command, overtake).unwrap();
    fs::set_permissions(&command, PermissionsExt::from_mode(0o755)).unwrap();
    let said = Said::by(shell.env("PATH", format!("{}:{path}", folder.path().display())));
    assert_eq!(said.status, 3, "not known, begin again at the reading: {said:?}");
    assert_eq!(
        store.value("press-7"),
        "overtaken",
        "the higher stamp's content, and a lower one's has not come over it"
    );
    assert!(!store.takes("press-7", write("0", "34", "press-b", "1", "late")), "and the second reading finds it");
    said
}

#[test]
fn s3_refuses_what_was_overtaken_between_reading_and_writing() {
    let server = Server::moto();
    bucket(&server);
    let at = Aws { server: &server, system: "s3", guard: printed("s3", "at-least", server.folder()) };
    let said = is_overtaken(&at, "aws", "put-object", &at.guard, &|shell| {
        server.for_aws(shell);
    });
    assert!(said.err.contains("(PreconditionFailed)"), "{said:?}");
}

#[test]
fn gcs_refuses_what_was_overtaken_between_reading_and_writing() {
    let Some(server) = gcs() else { return };
    let at = Gcs(&server, printed("gcs", "at-least", server.folder()));
    let said = is_overtaken(&at, "gcloud", "storage*cp", &at.1, &|shell| {
        server.for_gcloud(shell);
    });
    assert!(said.err.contains("412"), "{said:?}");
}
