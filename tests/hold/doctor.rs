//! `fencegate doctor` at real services.

use super::worker::etcd_url;
use fencegate_tests::{EmulatedGate, Said, Server, fencegate};

#[test]
fn the_doctor_measures_the_way_and_leaves_nothing_behind() {
    let (server, gate) = (Server::etcd(), EmulatedGate::new());
    let url = etcd_url(&server);
    let mut doctor = fencegate();
    doctor.args(["doctor", "--coordinator", &url, "--look", "500ms", "--samples", "5", "--work", "200ms", "--json"]);
    let said = Said::by(doctor.args(["--gate", &gate.port, "--key-file"]).arg(gate.key_file()));
    assert_eq!((said.status, said.err.as_str()), (0, ""), "{said:?}");
    let found = said.json();
    let number = |value: &serde_json::Value| value.as_u64().unwrap_or_else(|| panic!("{value}: {found}"));
    let (coordinator, at_gate) = (&found["coordinator"], &found["gate"]);
    assert_eq!((number(&coordinator["calls"]), number(&at_gate["calls"])), (6, 5));
    let worst = number(&coordinator["worst_us"]);
    assert!(number(&coordinator["median_us"]) <= worst);
    let size = &found["size"];
    assert_eq!(number(&size["rtt_us"]), 2 * worst, "samples are no bound");
    assert_eq!(number(&size["work_us"]), 200_000 + 4 * number(&at_gate["worst_us"]));
    assert_eq!(number(&size["drift_ppb"]), number(&found["clock_drift_ppb"]) + 500_000);
    assert!(number(&found["clock_drift_ppb"]) >= 500_000);
    assert_eq!(number(&found["ttl_us"]) % 1_000_000, 0, "whole seconds, as etcd takes them");
    assert_eq!(Said::by(&mut server.etcdctl(&["get", "--prefix", ""])).out, "", "nothing is left");

    let said = Said::by(fencegate().args(["doctor", "--look", "10ms"]));
    assert!(said.status == 0 && said.out.contains("no coordinator was asked"), "{said:?}");
    let said = Said::by(fencegate().args(["doctor", "--look", "10ms", "--coordinator", "etcd://127.0.0.1:1"]));
    assert_eq!((said.status, said.out.as_str(), said.err.lines().count()), (3, "", 1), "{said:?}");
}
