//! A guard over a database row: `cargo run --package fencegate --example row`.
//!
//! The row keeps the stamp of its last writer beside its value, and one transaction reads the stamp, decides, and writes
//! both. In SQL, with a row `(id, value, epoch, token, holder, released)`:
//!
//! ```sql
//! BEGIN;
//! SELECT epoch, token, holder, released FROM valves WHERE id = $1 FOR UPDATE;
//! -- `Fence::admit` on that; then, unless it is refused:
//! UPDATE valves SET value = $2, epoch = $3, token = $4, holder = $5, released = false WHERE id = $1;
//! COMMIT;
//! ```
//!
//! Where the check must be in the statement itself, the same decision is a condition:
//!
//! ```sql
//! UPDATE valves SET value = $2, epoch = $3, token = $4, holder = $5
//!  WHERE id = $1 AND ((epoch, token) < ($3, $4) OR ((epoch, token) = ($3, $4) AND holder = $5 AND NOT released));
//! ```

use fencegate::{
    Admitted, BadHolderId, Epoch, EpochRule, Fence, FenceRecord, HolderId, Limits, Policy, Refused, Stamp, Token,
};
use std::collections::BTreeMap;

/// A row: the value, and the stamp of whoever wrote it.
#[derive(Clone, Debug)]
struct Row {
    value: &'static str,
    mark: FenceRecord,
}

/// Epochs come with the stamps: there is no operator at a table.
const LIMITS: Limits = Limits {
    policy: Policy::AtLeast,
    epochs: EpochRule::Stamp,
    epoch_jump: Limits::EPOCH_JUMP,
    token_jump: Limits::TOKEN_JUMP,
};

/// Writes one row in one transaction: `&mut` is what the row's lock is.
fn write(rows: &mut BTreeMap<u32, Row>, id: u32, value: &'static str, stamp: Stamp) -> Result<(), Refused> {
    let row = rows.entry(id).or_insert(Row { value: "", mark: FenceRecord::floor(Epoch(0), 0) });
    let mark = match Fence::new(row.mark, LIMITS).admit(stamp) {
        Admitted::Current(_) => row.mark,
        Admitted::Raise(raise) => raise.record(),
        Admitted::Refused(refused) => return Err(refused),
    };
    *row = Row { value, mark }; // value and mark together: the transaction is the proof
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let stamp = |epoch, token, holder| -> Result<Stamp, BadHolderId> {
        let token = Token::new(token).expect("above zero");
        Ok(Stamp { epoch: Epoch(epoch), token, holder: HolderId::new(holder)? })
    };
    let mut rows = BTreeMap::new();
    write(&mut rows, 7, "by a", stamp(0, 33, "a")?)?;
    write(&mut rows, 7, "by b", stamp(0, 34, "b")?)?;
    match write(&mut rows, 7, "by a, late", stamp(0, 33, "a")?) {
        Err(refused) => println!("a: {refused}"),
        Ok(()) => return Err("the late write was taken".into()),
    }
    // The coordinator was restored from a backup and counts from 12 again; its operator has raised the epoch.
    write(&mut rows, 7, "by c", stamp(1, 12, "c")?)?;
    println!("row 7: {} ({:?})", rows[&7].value, rows[&7].mark);
    assert_eq!(rows[&7].value, "by c");
    Ok(())
}
