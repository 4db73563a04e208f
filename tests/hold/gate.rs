//! A gate that grants the lease of a channel itself.

use super::worker::{Held, hold_of};
use super::{hands_out_one_lease_at_a_time, story};
use fencegate_tests::{EmulatedGate, Server};

/// `hold` there, for the channel that is its own authority.
fn held(gate: &EmulatedGate, holder: &str, flags: &[&str], script: &str) -> Held {
    let key = gate.key_file();
    let flags = [&["--key-file", key.to_str().unwrap()], flags].concat();
    Held::begin(hold_of("3", "3s", &format!("gate:{}", gate.port), holder, &flags, script))
}

#[test]
fn a_gate_hands_out_one_lease_at_a_time_and_moves_on_with_the_operators_epoch() {
    let gate = EmulatedGate::new();
    hands_out_one_lease_at_a_time(&|holder, flags, script| held(&gate, holder, flags, script));
    let said = held(&gate, "a#1", &["--wait", "0s"], "echo $FENCEGATE_EPOCH $FENCEGATE_HOLDER").end();
    assert_eq!((said.status, said.out.as_str()), (0, "0 a#1\n"), "nothing is left held: {said:?}");
    gate.done("epoch --channel 3 --set 2");
    let said = held(&gate, "a#1", &[], "echo $FENCEGATE_EPOCH").end();
    assert_eq!((said.status, said.out.as_str()), (0, "2\n"), "{said:?}");
}

/// Its raise is part of the grant, so that nothing more is said of a gate to protect.
#[test]
fn a_late_command_meets_the_fence_of_the_gate_that_granted_the_lease() {
    let gate = EmulatedGate::new();
    let begin = |holder: &str, _: &[&str], script: &str| held(&gate, holder, &[], script);
    story(&begin, &gate, "3", &Server::postgres());
}
