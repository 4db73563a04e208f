//! The library's client, against a gate that answers by hand.

mod fake;

use fake::{FakeGate, Then, done, holder, record, refused};
use fencegate::{Deadline, Duration, Epoch, Instant, Token};
use fencegate_host::{CallError, Existing, GateClient, KeyFile, Port, clock, emulator, provision};
use fencegate_wire::{Domain, Event, Reason, Reply, Request, Role, Values, What};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

fn grant() -> (Epoch, Token) {
    (Epoch(0), Token::new(34).expect("a token"))
}

async fn client(gate: &FakeGate, keys: &KeyFile, role: Role) -> GateClient<impl fencegate_host::Line> {
    let port: Port = format!("tcp://{}", gate.address).parse().expect("a port");
    GateClient::new(port.open().await.expect("a connection"), keys.credential(role)).expect("random numbers")
}

fn soon() -> Deadline {
    Deadline::after(clock::now(), Duration::from_secs(5)).expect("on the clock")
}

#[tokio::test]
async fn a_client_that_stays_spends_one_round_trip_a_command() {
    let challenges = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&challenges);
    let gate = FakeGate::raw(move |asked| match asked.request {
        Request::Challenge => {
            count.fetch_add(1, Ordering::SeqCst);
            Then::Reply(Reply::Challenge)
        }
        _ => done(record(0, 34, "b"), 1_000),
    });
    let mut client = client(&gate, &gate.keys, Role::Holder(holder("b"))).await;
    client.raise(0, grant(), soon()).await.expect("done");
    let window = Duration::from_secs(2);
    for _ in 0..3 {
        let end = Deadline::after(clock::start(), window).expect("on the clock");
        let done = client.drive(0, grant(), Values::from_iter([1]), (end, window), soon()).await.expect("done");
        assert_eq!(done.window_left, Duration::from_micros(1_000));
    }
    client.release(0, grant(), soon()).await.expect("done");
    assert_eq!(challenges.load(Ordering::SeqCst), 1);
    assert_eq!(gate.asked().len(), 5);
}

#[tokio::test]
async fn a_refusal_is_an_error_of_a_call_that_wants_something_done() {
    let gate = FakeGate::new(|_| refused(Reason::Jump, None));
    let mut client = client(&gate, &gate.keys, Role::Operator).await;
    match client.epoch(0, Epoch(100_000), 0, soon()).await {
        Err(CallError::Refused(refused)) => assert_eq!(refused.reason, Reason::Jump),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_blank_gate_is_provisioned_with_the_key_that_everybody_knows() {
    let gate = FakeGate::blank(|asked| match asked.request {
        Request::Challenge => Then::Reply(Reply::Challenge),
        _ => Then::Reply(Reply::Provisioned),
    });
    let wanted = emulator().expect("random numbers");
    let line = tokio::net::TcpStream::connect(gate.address).await.expect("a connection");
    let keys = provision(line, &wanted, Domain::Gate, soon()).await.expect("provisioned");
    assert_eq!(keys, KeyFile::of(&wanted, Domain::Gate));
    let asked = gate.asked();
    assert!(asked.iter().all(|asked| asked.role == Role::Operator && asked.challenge.is_some()));
    let told: Vec<_> = asked.into_iter().map(|asked| asked.request).collect();
    assert_eq!(told, wanted.requests().collect::<Vec<_>>(), "every piece, in order, over one connection");

    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("gate.key");
    keys.write(&path, Existing::Keep).expect("written");
    assert_eq!(KeyFile::read(&path).expect("read"), keys);
}

#[tokio::test]
async fn a_log_is_read_to_its_end_and_a_gate_that_counts_backwards_is_not_believed() {
    let events = |from: u32, to: u32| {
        let event = |number| Event { number, at: Instant::from_micros(1), channel: None, what: What::Rearmed };
        Then::Reply(Reply::Log((from..to).map(event).collect()))
    };
    let gate = FakeGate::raw(move |asked| match asked.request {
        Request::Log { from: 0 } => events(7, 10), // what came before was overwritten
        Request::Log { from: 10 } => events(10, 11),
        _ => events(0, 0),
    });
    let mut reader = client(&gate, &gate.keys, Role::Observer).await;
    let numbers: Vec<_> = reader.log(0, soon()).await.expect("a log").iter().map(|event| event.number).collect();
    assert_eq!(numbers, [7, 8, 9, 10]);
    let gate = FakeGate::raw(move |_| events(0, 3));
    let mut reader = client(&gate, &gate.keys, Role::Observer).await;
    assert!(matches!(reader.log(0, soon()).await, Err(CallError::Unexpected)));
}
