//! A story: core's holders, grantor and fence on clocks and in a network of their own, told event by event.
//!
//! Nothing in it is timed by the machine that it runs on, and nothing is random: the same scenario tells the same
//! story, to the microsecond, as often as it is told. What the holders, the lock service and the resource decide is
//! decided by the core's own state machines; what is played here is the world around them.

mod clock;
mod coordinator;
mod event;
mod resource;
mod scenario;
mod worker;
mod world;

use crate::fields::whole;
use crate::output::Plain;
use js_sys::{Array, Error};
use resource::Verdict;
use scenario::Scenario;
use std::rc::Rc;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use worker::Condition;
use world::World;

/// A story that is being told.
#[wasm_bindgen(skip_typescript)]
#[derive(Debug)]
pub struct Story {
    scenario: Rc<Scenario>,
    world: World,
    /// How many of the events have been told.
    told: usize,
}

#[wasm_bindgen]
impl Story {
    /// The story of a scenario, at its beginning.
    ///
    /// # Errors
    /// A JavaScript `Error` with `code` and `field` for a scenario that is wrong.
    #[wasm_bindgen(constructor, skip_typescript)]
    pub fn new(scenario: &JsValue) -> Result<Self, Error> {
        let scenario = Rc::new(Scenario::read(scenario)?);
        Ok(Self { world: World::new(&scenario), scenario, told: 0 })
    }

    /// The next event, with time passing up to it; `undefined` where there is none any more.
    #[wasm_bindgen(skip_typescript)]
    pub fn step(&mut self) -> JsValue {
        while self.told == self.world.events.len() {
            if !self.world.step(u64::MAX) {
                self.world.now = self.scenario.until;
                return JsValue::UNDEFINED;
            }
        }
        self.told += 1;
        self.world.events[self.told - 1].to_js()
    }

    /// Lets time pass up to `us` after the beginning, and returns what happens until then and was not told yet. An
    /// earlier time than the present changes nothing.
    ///
    /// # Errors
    /// A JavaScript `Error` with `code` and `field` where `us` is no whole number.
    #[wasm_bindgen(js_name = runTo, skip_typescript)]
    pub fn run_to(&mut self, us: &JsValue) -> Result<Array, Error> {
        let until = whole("us", us).map_err(Error::from)?.min(self.scenario.until);
        while self.world.step(until) {}
        self.world.now = self.world.now.max(until);
        let events = self.world.events[self.told..].iter().map(event::Event::to_js).collect();
        self.told = self.world.events.len();
        Ok(events)
    }

    /// Back to the beginning.
    #[wasm_bindgen(skip_typescript)]
    pub fn rewind(&mut self) {
        self.world = World::new(&self.scenario);
        self.told = 0;
    }

    /// How everything stands at present.
    #[wasm_bindgen(skip_typescript)]
    pub fn state(&self) -> JsValue {
        let world = &self.world;
        let (ledger, fence) = (&world.resource.ledger, world.resource.fence.record());
        let count = |verdict| ledger.iter().filter(|entry| entry.verdict == verdict).count() as u64;
        Plain::new()
            .whole("now_us", world.now)
            .whole("until_us", self.scenario.until)
            .flag("over", world.is_over())
            .flag("fencing", self.scenario.fencing)
            .flag("powered", world.resource.powered)
            .whole("corrupted", count(Verdict::Corrupted))
            .whole("bounced", count(Verdict::Bounced))
            .set("lease", self.lease())
            .set("fence", event::record(fence))
            .set("workers", (0..world.workers.len()).map(|who| self.worker(who)).collect::<Array>())
            .set("ledger", ledger.iter().map(entry).collect::<Array>())
            .set("messages", world.under_way().map(message).collect::<Array>())
            .done()
    }

    /// The lease as the coordinator has it.
    fn lease(&self) -> JsValue {
        let Self { world, .. } = self;
        match world.coordinator.grantor.current(world.coordinator.clock.reads(world.now)) {
            None => JsValue::NULL,
            Some(stamp) => Plain::new()
                .whole("epoch", stamp.epoch.0.into())
                .whole("token", stamp.token.get())
                .text("holder", &stamp.holder.to_string())
                .whole("ends_us", world.coordinator.ends)
                .done(),
        }
    }

    /// A worker as it sees itself.
    fn worker(&self, who: usize) -> JsValue {
        let (plan, worker) = (&self.scenario.workers[who], &self.world.workers[who]);
        let stamp = worker.holder.stamp();
        let doing = match worker.condition {
            Condition::Frozen => "frozen",
            Condition::Hung => "hung",
            Condition::Dead => "dead",
            Condition::Running if worker.is_finished() => "finished",
            Condition::Running if worker.hand.is_some() => "writing",
            Condition::Running if stamp.is_some() => "holding",
            Condition::Running => "waiting",
        };
        Plain::new()
            .text("name", &plan.name)
            .text("doing", doing)
            .maybe("epoch", stamp.map(|s| s.epoch.0.into()))
            .maybe("token", stamp.map(|s| s.token.get()))
            .maybe("window_ends_us", worker.holder.deadline().map(|end| worker.clock.when(end.instant())))
            .whole("written", worker.written as u64)
            .whole("of", plan.job.len() as u64)
            .done()
    }
}

fn entry(entry: &resource::Entry) -> JsValue {
    Plain::new()
        .whole("at_us", entry.at)
        .text("who", &entry.who)
        .whole("epoch", entry.stamp.epoch.0.into())
        .whole("token", entry.stamp.token.get())
        .text("text", &entry.text)
        .text("verdict", entry.verdict.name())
        .text("words", &entry.words)
        .done()
}

fn message(
    (from, to, kind, sent, arrives, stamp): (&str, &str, &'static str, u64, u64, Option<fencegate::Stamp>),
) -> JsValue {
    Plain::new()
        .text("from", from)
        .text("to", to)
        .text("kind", kind)
        .whole("sent_us", sent)
        .whole("arrives_us", arrives)
        .maybe("token", stamp.map(|s| s.token.get()))
        .done()
}

#[cfg(test)]
mod tests;
