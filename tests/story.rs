//! The story, played by `cargo xtask demo`: its exit status says whether anything deviated, and the output pin in it is
//! read from the emulated hardware.

use fencegate_tests::{Said, board, xtask};

#[test]
fn a_late_command_meets_the_fence() {
    let said = Said::by(xtask().args(["demo", "--board", board().name()]));
    assert_eq!(said.status, 0, "{said:?}");
    let refused = "refused, stale: the gate has seen epoch 0 token 34, held by b";
    assert_eq!(said.out.matches(refused).count(), 2, "before the power cut and after it:\n{}", said.out);
    let order: Vec<_> =
        ["freezes (SIGSTOP)", "raises the fence to 34", "wakes up (SIGCONT)", "POWER CUT", "boots from the same flash"]
            .map(|what| said.out.find(what).unwrap_or_else(|| panic!("{what}:\n{}", said.out)))
            .into();
    assert!(order.is_sorted(), "{}", said.out);
    assert!(said.out.ends_with("Nothing stale moved the output.\n"), "{}", said.out);
    assert!(!said.out.contains('\x1b'), "plain in a pipe");
}

#[test]
fn without_the_check_it_lands() {
    let said = Said::by(xtask().args(["demo", "--board", board().name(), "--fencing", "off"]));
    assert_eq!(said.status, 0, "{said:?}");
    assert!(said.out.contains("landed on the work of a higher token"), "{}", said.out);
}
