//! A gate over a register: `cargo run --package fencegate --example gate`.
//!
//! A holds the lease with token 33, pauses, and its command arrives after B has raised the gate to 34.

use fencegate::{
    Act, Admitted, BadHolderId, Deadline, Duration, Epoch, Expired, Fence, FenceRecord, HolderId, Instant, Limits,
    NotStored, Proof, Refused, Stamp, Token,
};

/// What a board has: a place that outlives a power cut, and a pin.
#[derive(Default)]
struct Board {
    flash: Option<FenceRecord>,
    register: u32,
}

impl Board {
    /// Stores a record, and reads it back from the medium itself.
    fn store(&mut self, record: FenceRecord) -> Proof {
        self.flash = Some(record);
        Proof::read_back(self.flash.unwrap_or(record))
    }
}

/// Why a command did nothing.
#[derive(Debug)]
enum Bounced {
    Refused(Refused),
    NotStored(NotStored),
    Expired(Expired),
}

struct Valve {
    fence: Fence,
    board: Board,
}

impl Valve {
    /// Boots from what is stored. Where nothing is, a real gate asks whether it is new or has lost its storage.
    fn boot(board: Board) -> Self {
        let record = board.flash.unwrap_or(FenceRecord::floor(Epoch(0), 0));
        Self { fence: Fence::new(record, Limits::default()), board }
    }

    /// Opens or closes, if `stamp` may and its window is not over once everything is stored.
    fn drive(&mut self, stamp: Stamp, open: bool, clock: impl Fn() -> Instant, end: Deadline) -> Result<Act, Bounced> {
        let pass = match self.fence.admit(stamp) {
            Admitted::Current(pass) => pass,
            Admitted::Raise(raise) => {
                let proof = self.board.store(raise.record());
                self.fence.commit(raise, proof).map_err(Bounced::NotStored)?
            }
            Admitted::Refused(refused) => return Err(Bounced::Refused(refused)),
        };
        let act = pass.act(clock(), end).map_err(Bounced::Expired)?;
        self.board.register = u32::from(open);
        Ok(act) // `act.deadline()` is when the output must be safe again
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let stamp = |token, holder| -> Result<Stamp, BadHolderId> {
        Ok(Stamp { epoch: Epoch(0), token: Token::new(token).expect("above zero"), holder: HolderId::new(holder)? })
    };
    let (a, b) = (stamp(33, "press-a#9f3c")?, stamp(34, "press-b#17aa")?);
    let now = Instant::from_micros(1_000_000);
    let end = Deadline::after(now, Duration::from_secs(2)).ok_or("the clock is at its end")?;

    let mut valve = Valve::boot(Board::default());
    println!("a opens:  {:?}", valve.drive(a, true, || now, end).is_ok());
    println!("b closes: {:?}", valve.drive(b, false, || now, end).is_ok());

    let mut valve = Valve::boot(valve.board); // a power cut
    match valve.drive(a, true, || now, end) {
        Err(Bounced::Refused(refused)) => println!("a opens:  {refused}"),
        other => return Err(format!("the late command was not refused: {other:?}").into()),
    }
    match valve.drive(b, true, || end.instant(), end) {
        Err(Bounced::Expired(expired)) => println!("b opens:  {expired}"),
        other => return Err(format!("equality is expiry: {other:?}").into()),
    }
    assert_eq!(valve.board.register, 0);
    Ok(())
}
