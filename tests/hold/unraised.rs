//! A lease whose fence cannot be raised: the command never begins, and the lease is given back.

use super::worker::{Held, etcd_url, hold};
use fencegate_tests::{EmulatedGate, Said, Server};
use std::net::TcpListener;
use std::path::Path;

fn ends_without_a_fence(server: &Server, gate: &str, key: &Path) {
    let flags = ["--gate", gate, "--key-file", key.to_str().unwrap(), "--wait", "1s"];
    let said = Held::begin(hold(&etcd_url(server), "a", &flags, "echo no")).end();
    assert_eq!((said.status, said.out.as_str(), said.err.lines().count()), (3, "", 1), "{gate}: {said:?}");
    assert!(said.err.contains("a fence could not be raised in time: no answer"), "{gate}: {said:?}");
    assert_eq!(Said::by(&mut server.etcdctl(&["get", "--prefix", ""])).out, "", "nothing is left");
    assert_eq!(Said::by(&mut server.etcdctl(&["lease", "list"])).out.trim(), "found 0 leases");
}

#[test]
fn a_gate_that_is_not_there_or_is_silent_or_is_another_ends_it() {
    let (server, gate, other) = (Server::etcd(), EmulatedGate::new(), EmulatedGate::new());
    let key = gate.key_file();
    ends_without_a_fence(&server, "tcp://127.0.0.1:1", &key);
    // It takes connections, and that is all.
    let frozen = TcpListener::bind("127.0.0.1:0").unwrap();
    ends_without_a_fence(&server, &format!("tcp://{}", frozen.local_addr().unwrap()), &key);
    // Its answers are not for who does not have its key.
    ends_without_a_fence(&server, &other.port, &key);

    let flags = ["--gate", &gate.port, "--key-file", key.to_str().unwrap(), "--wait", "1s"];
    let said = Held::begin(hold(&etcd_url(&server), "a", &flags, "echo yes")).end();
    assert_eq!((said.status, said.out.as_str(), said.err.as_str()), (0, "yes\n", ""), "{said:?}");
}
