//! Fences: one, and a table of them.

use crate::*;
use fencegate::{
    Act, Admitted, EpochRaise, Fence, FenceTable, Limits, Pass, Proof, Raise, Release, TableAdmitted, TableProof,
    TableRaise,
};

pub(crate) fn fences() {
    fence();
    epochs_and_releases();
    table();
}

fn limits() -> Limits {
    any(Limits::default())
}

fn fence() {
    call!(
        FenceRecord::floor(any(Epoch(0)), n()),
        FenceRecord::order(&record(), &record()),
        Fence::from_proof(Proof::read_back(record()), limits()),
    );
    let mut fence = any(Fence::new(record(), limits()));
    call!(Fence::record(&fence), Fence::current(&fence));
    let pass = match Fence::admit(&fence, stamp()) {
        Admitted::Current(pass) => Some(pass),
        Admitted::Raise(raise) => {
            call!(Raise::record(&raise));
            Fence::commit(&mut fence, any(raise), Proof::read_back(record())).ok()
        }
        Admitted::Refused(refused) => {
            call!(refused);
            None
        }
    };
    if let Some(pass) = any(pass) {
        call!(Pass::stamp(&pass));
        if let Ok(act) = Pass::act(pass, at(), deadline()) {
            call!(Act::stamp(&act), Act::deadline(&act), Act::left(&act, at()), act);
        }
    }
    call!(fence);
}

fn epochs_and_releases() {
    let mut fence = any(Fence::new(record(), limits()));
    if let Ok(release) = Fence::release(&fence, stamp()) {
        call!(Release::record(&release));
        call!(Fence::commit_release(&mut fence, any(release), Proof::read_back(record())));
    }
    if let Ok(raise) = Fence::raise_epoch(&fence, any(Epoch(1)), n()) {
        call!(EpochRaise::record(&raise));
        call!(Fence::commit_epoch(&mut fence, any(raise), Proof::read_back(record())));
    }
    call!(fence);
}

fn table() {
    let mut table: FenceTable<u32, 8> = any(FenceTable::new());
    call!(table);
    table = any(FenceTable::with_limits(limits()));
    call!(
        FenceTable::restore(&mut table, any(1), record()),
        FenceTable::len(&table),
        FenceTable::is_empty(&table),
        FenceTable::is_full(&table),
        FenceTable::record(&table, &any(1)),
    );
    for row in FenceTable::iter(&table) {
        call!(row);
    }
    if let TableAdmitted::Raise(raise) = any(FenceTable::admit(&table, &any(1), stamp())) {
        call!(TableRaise::key(&raise), TableRaise::record(&raise));
        call!(FenceTable::commit(&mut table, raise, TableProof::read_back(any(1), record())));
    }
    call!(table);
}
