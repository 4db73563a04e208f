//! Leases in DynamoDB, for which `moto` stands in.

use super::worker::{Held, appears, hold, last, now, odd};
use super::{TTL, hands_out_one_lease_at_a_time, story};
use fencegate_tests::{EmulatedGate, Said, Server};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

const URL: &str = "dynamodb://eu-central-1/locks";

fn server() -> Server {
    let server = Server::moto();
    server.dynamodb_table("locks", "lock");
    server
}

/// `hold` there.
fn held(server: &Server, holder: &str, flags: &[&str], script: &str) -> Held {
    let mut command = hold(URL, holder, flags, script);
    server.for_aws(&mut command);
    Held::begin(command)
}

fn item(server: &Server) -> serde_json::Value {
    let words = ["dynamodb", "get-item", "--table-name", "locks", "--key", r#"{"lock": {"S": "press-7"}}"#];
    let said = Said::by(&mut server.aws(&words));
    assert_eq!(said.status, 0, "{said:?}");
    // For what is not there it says nothing at all.
    if said.out.is_empty() { serde_json::Value::Null } else { said.json()["Item"].clone() }
}

#[test]
fn dynamodb_hands_out_one_lease_at_a_time_and_keeps_the_operators_epoch() {
    let server = server();
    hands_out_one_lease_at_a_time(&|holder, flags, script| held(&server, holder, flags, script));
    let kept = item(&server);
    assert_eq!((&kept["held"]["BOOL"], &kept["token"]["N"]), (&false.into(), &"3".into()), "free, and it has counted");

    let set = |epoch: &str| {
        let words = ["dynamodb", "update-item", "--table-name", "locks", "--key", r#"{"lock": {"S": "press-7"}}"#];
        let values = format!("{{\":e\": {{\"N\": \"{epoch}\"}}}}");
        let update = ["--update-expression", "SET epoch = :e", "--expression-attribute-values", &values];
        let said = Said::by(&mut server.aws(&[&words[..], &update].concat()));
        assert_eq!(said.status, 0, "{said:?}");
    };
    set("3");
    let said = held(&server, "a#1", &[], "echo $FENCEGATE_EPOCH $FENCEGATE_TOKEN").end();
    assert_eq!((said.status, said.out.as_str()), (0, "3 4\n"), "{said:?}");
    set("4294967296");
    let said = held(&server, "a", &[], "echo no").end();
    assert_eq!((said.status, said.out.as_str()), (2, ""), "{said:?}");
    assert!(said.err.contains("epoch: the item's `epoch` has to be a number of 32 bits"), "{said:?}");
}

#[test]
fn a_late_command_meets_the_fence_of_a_lease_in_dynamodb() {
    let server = server();
    let begin = |holder: &str, flags: &[&str], script: &str| held(&server, holder, flags, script);
    story(&begin, &EmulatedGate::new(), "0", &Server::postgres());
}

/// Nobody's clock but its own tells a challenger how long a lease has lain there: an item that was left long ago is watched
/// for a whole TTL like any other.
#[test]
fn a_challenger_waits_for_a_whole_ttl_of_its_own_observation() {
    let (server, folder) = (server(), tempfile::tempdir().unwrap());
    let [up, begun] = ["up", "begun"].map(|name| folder.path().join(name));
    let a = held(&server, "a#1", &[], &format!("echo up > {}; sleep 60", up.display()));
    appears(&up);
    drop(a);
    assert_eq!(item(&server)["held"]["BOOL"], true, "killed, and so nothing was released");
    sleep(Duration::from_micros(2 * TTL));
    let started = now();
    let b = held(&server, "b#1", &[], &format!("cut -d' ' -f1 /proc/uptime > {}", begun.display())).end();
    assert_eq!((b.status, b.err.as_str()), (0, ""), "{b:?}");
    let waited = last(&begun) + 10_000 - started; // hundredths of a second there, rounded down
    assert!(waited >= TTL, "it began {waited} us after its start");
}

#[test]
fn what_somebody_else_has_taken_is_lost_at_the_next_renewal() {
    let (server, folder) = (server(), tempfile::tempdir().unwrap());
    let up = folder.path().join("up");
    let a = held(&server, "a#1", &[], &format!("echo up > {}; sleep 60", up.display()));
    appears(&up);
    let words = ["dynamodb", "update-item", "--table-name", "locks", "--key", r#"{"lock": {"S": "press-7"}}"#];
    let update = ["--update-expression", "SET #t = #t + :one", "--expression-attribute-names", r##"{"#t": "token"}"##];
    let values = ["--expression-attribute-values", r#"{":one": {"N": "1"}}"#];
    let said = Said::by(&mut server.aws(&[&words[..], &update, &values].concat()));
    assert_eq!(said.status, 0, "{said:?}");
    let a = a.end();
    assert_eq!(a.status, 122, "{a:?}");
    assert!(a.err.contains("the coordinator refused to renew"), "{a:?}");
    // Its release compares, and leaves the other's alone.
    assert_eq!(item(&server)["held"]["BOOL"], true);
}

#[test]
fn what_is_wrong_in_dynamodb_is_one_sentence() {
    let server = server();
    server.dynamodb_table("others", "name");
    let said = |url: &str, change: fn(&mut Command) -> &mut Command| {
        let mut command = hold(url, "a", &[], "echo no");
        change(server.for_aws(&mut command));
        let said = Held::begin(command).end();
        assert_eq!((said.out.as_str(), said.err.lines().count()), ("", 1), "{said:?}");
        said
    };
    for (url, status, words) in [
        ("dynamodb://eu-central-1", 2, "coordinator: after dynamodb:// come a Region and a table"),
        (
            "dynamodb://eu-central-1/nothing",
            2,
            "there is no table `nothing` in eu-central-1: make one with the partition key",
        ),
        ("dynamodb://eu-central-1/others", 2, "the table `others` has to have the partition key `lock`"),
    ] {
        let said = said(url, |command| command);
        assert!(said.status == status && said.err.contains(words), "{url}: {said:?}");
    }
    let none = said(URL, |command| command.env("AWS_ENDPOINT_URL", "http://127.0.0.1:1"));
    assert!(none.status == 3 && none.err.contains("no answer from the coordinator: DynamoDB: "), "{none:?}");
    let none = said(URL, |command| command.env_remove("AWS_ACCESS_KEY_ID").env_remove("AWS_SECRET_ACCESS_KEY"));
    assert!(none.status == 2 && none.err.contains("DynamoDB: there are no credentials"), "{none:?}");
    assert_eq!(item(&server), serde_json::Value::Null, "nothing is left");

    let mut command = odd(URL);
    server.for_aws(&mut command);
    let any = Held::begin(command).end();
    assert_eq!((any.status, any.err.as_str()), (0, ""), "any name that can be read is a name");
    // One that takes connections and says nothing is as good as none.
    server.signal("STOP");
    let frozen = said(URL, |command| command);
    server.signal("CONT");
    assert!(frozen.status == 3 && frozen.err.contains("no answer from the coordinator: "), "{frozen:?}");

    let strict = Server::moto_that_checks(1);
    strict.dynamodb_table("locks", "lock");
    let mut command = hold(URL, "a", &[], "echo no");
    strict.for_aws(&mut command);
    let said = Held::begin(command).end();
    assert_eq!((said.status, said.out.as_str(), said.err.lines().count()), (2, "", 1), "{said:?}");
    assert!(said.err.contains("coordinator: DynamoDB: not allowed (HTTP 403"), "{said:?}");
}
