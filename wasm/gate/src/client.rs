//! The client, as JavaScript has it.

use crate::keys::{Keys, factory};
use crate::value::{self, Plain, instant, whole, wrong};
use fencegate::{Deadline, Duration, Epoch, Instant, Token};
use fencegate_wire::{
    Client, Credential, Deframer, Failure, Framed, Operation, Output, Reply, Request, Timing, Values,
};
use js_sys::{Array, Error, Reflect, Uint8Array};
use std::collections::VecDeque;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};

/// One principal's half of its conversation with a gate.
#[wasm_bindgen(skip_typescript)]
#[derive(Debug)]
pub struct GateClient {
    client: Client,
    deframer: Deframer,
    /// What is left of a provisioning.
    parts: VecDeque<Request>,
    give_up: Deadline,
}

#[wasm_bindgen]
impl GateClient {
    /// A client that speaks with `keys` as `who`: `operator`, `observer` or a holder's name. `random` comes from a good
    /// random source and is never used twice.
    ///
    /// # Errors
    /// A JavaScript `Error` for what is no holder's name.
    #[wasm_bindgen(constructor, skip_typescript)]
    pub fn new(random: u64, keys: &Keys, who: &str) -> Result<Self, Error> {
        Ok(Self::with(random, keys.credential(who)?))
    }

    /// A client that speaks with a blank board, as everybody may.
    #[wasm_bindgen(skip_typescript)]
    pub fn blank(random: u64) -> Self {
        Self::with(random, factory())
    }

    /// Begins an operation, which ends one way or the other by `give_up_us`. An unfinished one is forgotten.
    ///
    /// # Errors
    /// A JavaScript `Error` for an operation that is none.
    #[wasm_bindgen(skip_typescript)]
    pub fn begin(&mut self, operation: &JsValue, give_up_us: f64) -> Result<(), Error> {
        self.parts.clear();
        self.give_up = Deadline::at(instant(give_up_us));
        let operation = read(operation)?;
        self.client.begin(operation, self.give_up);
        Ok(())
    }

    /// Begins to make a blank board the gate of `keys`, provisioned as the one in the emulator is.
    #[wasm_bindgen(skip_typescript)]
    pub fn provision(&mut self, keys: &Keys, give_up_us: f64) {
        self.parts = keys.provisioning().requests().collect();
        self.give_up = Deadline::at(instant(give_up_us));
        self.next_part();
    }

    /// What to do at `now_us`.
    #[wasm_bindgen(skip_typescript)]
    pub fn poll(&mut self, now_us: f64) -> JsValue {
        match self.client.poll(instant(now_us)) {
            Output::Send(frame) => Plain::of("send").set("bytes", Uint8Array::from(&*frame)).done(),
            Output::Wait(until) => Plain::of("wait").whole("until_us", until.as_micros()).done(),
            Output::Done(Reply::Provisioned) if self.next_part() => self.poll(now_us),
            Output::Done(reply) => Plain::of("done").set("reply", value::reply(&reply)).done(),
            Output::Failed(why) => Plain::of("failed").set("why", words(why)).done(),
            Output::Idle => Plain::of("idle").done(),
        }
    }

    /// Takes what the line has brought by `now_us`.
    #[wasm_bindgen(skip_typescript)]
    pub fn push(&mut self, bytes: &[u8], now_us: f64) {
        for byte in bytes {
            if let Some(Framed::Frame(frame)) = self.deframer.push(*byte) {
                self.client.receive(instant(now_us), frame);
            }
        }
    }
}

impl GateClient {
    fn with(random: u64, credential: Credential) -> Self {
        Self {
            client: Client::new(credential, random, Timing::default()),
            deframer: Deframer::new(),
            parts: VecDeque::new(),
            give_up: Deadline::at(Instant::from_micros(0)),
        }
    }

    /// Goes on with a provisioning; whether there was something left of it.
    fn next_part(&mut self) -> bool {
        let Some(part) = self.parts.pop_front() else { return false };
        self.client.begin(Operation::new(part), self.give_up);
        true
    }
}

const fn words(failure: Failure) -> &'static str {
    match failure {
        Failure::NoAnswer => "no_answer",
        Failure::NotAuthentic => "not_authentic",
        Failure::TooLong => "too_long",
    }
}

/// Reads an operation.
fn read(object: &JsValue) -> Result<Operation, Error> {
    let field = |name: &str| Reflect::get(object, &name.into()).unwrap_or_default();
    let kind = field("kind").as_string().unwrap_or_default();
    if kind == "status" {
        return Ok(Operation::new(Request::Status));
    }
    let channel = whole(object, "channel")?.try_into().map_err(|_| wrong("there is no such channel"))?;
    if kind == "channel" {
        return Ok(Operation::new(Request::Channel { channel }));
    }
    let epoch = Epoch(whole(object, "epoch")?.try_into().map_err(|_| wrong("an epoch has 32 bits"))?);
    let token = || Token::new(whole(object, "token")?).ok_or_else(|| wrong("no such token"));
    Ok(match kind.as_str() {
        "raise" => Operation::new(Request::Raise { channel, epoch, token: token()? }),
        "release" => Operation::new(Request::Release { channel, epoch, token: token()? }),
        "epoch" => Operation::new(Request::Epoch { channel, epoch, floor: whole(object, "floor")? }),
        "drive" => {
            let mut values = Values::new();
            for value in field("values").dyn_ref::<Array>().into_iter().flat_map(Array::iter) {
                // A value that is none goes out of range, where the gate refuses it.
                #[expect(clippy::cast_possible_truncation)]
                let value = value.as_f64().map_or(i32::MIN, |value| value as i32);
                values.push(value).map_err(|_| wrong("too many values"))?;
            }
            let deadline = Deadline::at(instant(field("deadline_us").as_f64().unwrap_or_default()));
            let window = Duration::from_micros(whole(object, "window_us")?);
            Operation::drive(channel, (epoch, token()?), values, deadline, window)
        }
        _ => return Err(wrong("no such operation")),
    })
}
