// The stories under Node: each ready-made one with the fence heeded and unheeded, how they are told, and their types.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, it } from "node:test";
import { chain, PACKAGE, parseDrift, parseDuration, scenarios, Story } from "./module.mjs";

/** A story told to its end. */
function tell(scenario) {
  const story = new Story(scenario);
  const events = story.runTo(scenario.until_us);
  const state = story.state();
  story.free();
  return { events, state, of: (kind) => events.filter((event) => event.kind === kind) };
}

const named = (name) => scenarios.find((one) => one.name === name).scenario;
const lines = ({ state }) => state.ledger.map(({ who, token, verdict }) => `${who} ${token} ${verdict}`);

/** What a heeded fence refuses and an unheeded one lets through, in words; and the ledger of both. */
const OUTCOMES = {
  pause: {
    why: "33 < 34: stale",
    on: ["A 33 landed", "B 34 landed", "B 34 landed", "A 33 bounced", "A 35 landed"],
    off: ["A 33 landed", "B 34 landed", "B 34 landed", "A 33 corrupted"],
  },
  clean: { on: ["A 33 landed", "A 33 landed", "B 34 landed", "B 34 landed"] },
  "no-expiry": { on: ["A 33 landed"] },
  "hung-worker": {
    why: "33 < 34: stale",
    on: ["A 33 landed", "B 34 landed", "B 34 landed", "A 33 bounced", "A 35 landed"],
    off: ["A 33 landed", "B 34 landed", "B 34 landed", "A 33 corrupted"],
  },
  "power-cut": {
    why: "33 < 34: stale",
    on: ["A 33 landed", "B 34 landed", "B 34 landed", "A 33 bounced", "A 35 landed"],
    off: ["A 33 landed", "B 34 landed", "B 34 landed", "A 33 corrupted"],
  },
  failover: {
    why: "33 = 33: but another holds it",
    off: ["A 33 landed", "A 33 landed", "B 33 corrupted", "A 33 landed", "B 33 corrupted"],
  },
  partition: {
    why: "33 < 34: stale",
    on: ["A 33 landed", "B 34 landed", "B 34 landed", "A 33 bounced", "A 35 landed"],
    off: ["A 33 landed", "B 34 landed", "B 34 landed", "A 33 corrupted"],
  },
  restore: { why: "epoch 0 token 2000 < epoch 1 token 150" },
  "equal-token": {
    why: "33 = 33: but another holds it",
    on: ["A 33 landed", "B 33 bounced", "A 33 landed", "B 34 landed"],
    off: ["A 33 landed", "B 33 corrupted", "A 33 landed", "B 34 landed"],
  },
  ticket: {
    why: "402 < 403: stale",
    on: ["Ben 403 landed", "Ada 402 bounced"],
    off: ["Ben 403 landed", "Ada 402 corrupted"],
  },
  row: {
    why: "102 < 103: stale",
    on: ["A 101 landed", "C 103 landed", "B 102 bounced", "C 103 landed"],
    off: ["A 101 landed", "C 103 landed", "B 102 corrupted", "C 103 landed"],
  },
};

describe("the ready-made stories", () => {
  it("are those that are looked at here", () => {
    assert.deepEqual(
      scenarios.map(({ name }) => name),
      Object.keys(OUTCOMES),
    );
    for (const { title, about } of scenarios) assert.ok(title && about);
  });

  for (const [name, { why, on, off = on }] of Object.entries(OUTCOMES)) {
    it(`${name}, with the fence heeded: nothing late takes effect`, () => {
      const told = tell({ ...named(name), fencing: true });
      if (on) assert.deepEqual(lines(told), on);
      assert.equal(told.state.corrupted, 0);
      const refused = told.of("bounced");
      assert.equal(
        refused.some(({ words }) => words.includes(why)),
        why !== undefined,
        JSON.stringify(refused),
      );
    });

    it(`${name}, with nobody looking: ${why ? "it does" : "nothing late comes"}`, () => {
      const told = tell({ ...named(name), fencing: false });
      if (off) assert.deepEqual(lines(told), off);
      assert.equal(told.state.bounced, 0);
      assert.equal(told.state.corrupted > 0, why !== undefined);
      if (why) assert.ok(told.state.ledger.some(({ verdict, words }) => verdict === "corrupted" && words.startsWith(why)));
    });
  }

  it("a lock without expiry is never had by the other", () => {
    const { of, state } = tell(named("no-expiry"));
    assert.equal(of("granted").length, 1);
    assert.ok(of("refused").length > 20, "who asks in vain, again and again");
    assert.deepEqual([state.lease.holder, state.workers[0].doing], ["A", "dead"]);
  });

  it("the clean run hands the lease over by its release, well before it would have run out", () => {
    const { of } = tell(named("clean"));
    assert.equal(of("expired").length, 0);
    const [first, second] = of("granted");
    assert.ok(second.at_us - first.at_us < named("clean").ttl_us / 2);
  });

  it("a renewal thread outlives its hung worker only where renewal is not tied to progress", () => {
    const { progress_us: _, ...blind } = named("hung-worker");
    const until = ({ happenings: [{ for_us }] }) => for_us;
    const grants = (scenario) =>
      tell(scenario)
        .of("granted")
        .filter(({ who, at_us }) => who === "B" && at_us < until(scenario));
    assert.equal(grants(named("hung-worker")).length, 1);
    assert.equal(grants(blind).length, 0, "A hangs, and its lease is renewed on its behalf");
  });

  it("of five nodes two do not grant and three do", () => {
    const { of } = tell(named("partition"));
    assert.ok(of("lost").some(({ who, words }) => who === "A" && words === "2 of 5 nodes answer, 3 are needed"));
    assert.ok(of("granted").some(({ who, token }) => who === "B" && token === 34));
  });

  it("what a power cut leaves is what was stored", () => {
    const { of } = tell(named("power-cut"));
    assert.equal(of("boots")[0].words, "boots; what it has stored says 34");
  });

  it("two hold one lease after a failover", () => {
    const { of } = tell({ ...named("failover"), fencing: false });
    assert.deepEqual(
      of("granted").map(({ who, token }) => `${who} ${token}`),
      ["A 33", "B 33"],
    );
  });

  it("after a restore the lower token waits for the operator", () => {
    const { state, events } = tell(named("restore"));
    const at = (kind, words) => events.findIndex((event) => event.kind === kind && event.words.includes(words));
    const [early, epoch] = [at("bounced", "1501 < 2000"), at("epoch", "raises the epoch to 1")];
    assert.ok(early >= 0 && early < epoch, `${early} ${epoch}`);
    assert.ok(state.ledger.some(({ who, epoch, verdict }) => who === "B" && epoch === 1 && verdict === "landed"));
  });
});

describe("a story", () => {
  it("is told step by step as at once, and again after a rewind, to the microsecond", () => {
    for (const { scenario } of scenarios) {
      const story = new Story(scenario);
      const whole = story.runTo(scenario.until_us);
      const state = story.state();
      story.rewind();
      assert.equal(story.state().now_us, 0);
      const stepped = [];
      for (let event; (event = story.step()); ) stepped.push(event);
      assert.deepStrictEqual(stepped, whole);
      story.rewind();
      const parts = [];
      for (let us = 0; us <= scenario.until_us; us += 777_777) parts.push(...story.runTo(us));
      parts.push(...story.runTo(scenario.until_us));
      assert.deepStrictEqual(parts, whole);
      assert.deepStrictEqual(story.state(), state);
      story.free();
    }
  });

  it("says how things stand at an instant", () => {
    const story = new Story(named("pause"));
    story.runTo(6_000_000);
    const { now_us, lease, fence, workers } = story.state();
    assert.equal(now_us, 6_000_000);
    assert.deepEqual([lease.holder, lease.token, fence.token, fence.holder], ["A", 33, 33, "A"]);
    assert.deepEqual(
      workers.map(({ doing }) => doing),
      ["frozen", "waiting"],
    );
    assert.ok(workers[0].window_ends_us < lease.ends_us, "the holder's window ends before the lease does");
    story.runTo(1_000_000);
    assert.equal(story.state().now_us, 6_000_000, "time does not go back");
  });

  it("depends on the clocks that it is given", () => {
    const [a, b] = named("pause").workers;
    const ends = (drift_ppb) => tell({ ...named("pause"), workers: [{ ...a, drift_ppb }, b] }).of("granted").length;
    assert.ok(ends(-400_000_000) >= 2);
    assert.ok(ends(400_000_000) >= 2);
  });

  const refusals = [
    ["no end", { until_us: undefined }, "missing", "until_us"],
    ["no TTL", { ttl_us: undefined }, "missing", "ttl_us"],
    ["a misspelt field", { fence: true }, "unknown_field", "fence"],
    ["a flag that is a number", { fencing: 1 }, "not_a_flag", "fencing"],
    ["a policy that is none", { policy: "once" }, "not_a_word", "policy"],
    ["no round trip", { rtt_us: 0 }, "out_of_range", "rtt_us"],
    ["a TTL too short to renew", { ttl_us: 100_000 }, "out_of_range", "rtt_us"],
    ["a drift of 100 %", { drift_ppb: 1e9 }, "out_of_range", "drift_ppb"],
    ["no first token", { first_token: 0 }, "out_of_range", "first_token"],
    ["no nodes", { nodes: 0 }, "out_of_range", "nodes"],
    ["a story of two days", { until_us: 2 * 86_400_000_000 }, "out_of_range", "until_us"],
    ["workers that are no list", { workers: {} }, "out_of_range", "workers"],
    ["a worker without a name", { workers: [{ job: [] }] }, "missing", "workers[0].name"],
    ["a name too long", { workers: [{ name: "a".repeat(17), job: [] }] }, "out_of_range", "workers[0].name"],
    ["a job that is no list", { workers: [{ name: "a", job: "x" }] }, "missing", "workers[0].job"],
    ["a clock that stands still", { workers: [{ name: "a", job: [], drift_ppb: -1e9 }] }, "out_of_range", "workers[0].drift_ppb"],
    ["a write with token 0", { writes: [{ holder: "a", token: 0 }] }, "out_of_range", "writes[0].token"],
    ["something unheard of", { happenings: [{ what: "flood" }] }, "not_a_word", "happenings[0].what"],
    ["a freeze of nobody", { happenings: [{ what: "freeze", at_us: 1, who: "C" }] }, "out_of_range", "happenings[0].who"],
    ["a cut at no time", { happenings: [{ what: "power-cut" }] }, "out_of_range", "happenings[0].at_us"],
  ];
  for (const [name, change, code, field] of refusals) {
    it(`with ${name} is refused, and the field named`, () => {
      assert.throws(() => new Story({ ...named("pause"), ...change }), { code, field });
    });
  }
});

describe("what is typed", () => {
  it("is read by the core", () => {
    assert.equal(parseDuration("1m30s", "down"), 90_000_000);
    assert.deepEqual([parseDuration("1.5us", "down"), parseDuration("1.5us", "up")], [1, 2]);
    assert.equal(parseDuration("18446744073709551615us", "down"), 2n ** 64n - 1n);
    assert.equal(parseDrift("500ppm"), 500_000);
    assert.equal(parseDrift(["500ppm", "0.1%", "0.5ppb"]), 1_500_001);
  });

  it("is refused by it, and the field named", () => {
    assert.throws(() => parseDuration("10", "down", "ttl"), { code: "not_a_duration", field: "ttl", message: /unit is missing/ });
    assert.throws(() => parseDuration("18446744073709551616us", "down", "ttl"), { code: "out_of_range" });
    assert.throws(() => parseDuration("1s", "sideways"), { code: "not_a_word", field: "round" });
    assert.throws(() => parseDrift("1s", "holder"), { code: "not_a_drift", field: "holder" });
    assert.throws(() => parseDrift(["1ppm", "1s"], "holder"), { code: "not_a_drift", field: "holder" });
    assert.throws(() => parseDrift(["18446744073709551615ppb", "1ppb"], "both"), { code: "out_of_range", field: "both" });
    for (const no of [5, [], [5], undefined]) assert.throws(() => parseDrift(no), { code: "not_text" });
  });
});

describe("a chain of time-outs", () => {
  it("adds up, and something travels meanwhile", () => {
    assert.deepEqual(chain({ parts_us: [500_000, 250_000n, 1], speed_mm_s: 1_500 }), { total_us: 750_001, travel_um: 1_125_002 });
    assert.deepEqual(chain({ parts_us: [] }), { total_us: 0, travel_um: 0 });
  });

  it("is refused where it does not fit, and the field named", () => {
    assert.throws(() => chain({}), { code: "missing", field: "parts_us" });
    assert.throws(() => chain({ parts_us: [2n ** 64n - 1n, 1] }), { code: "out_of_range", field: "parts_us" });
    assert.throws(() => chain({ parts_us: [2n ** 63n], speed_mm_s: 2 }), { code: "out_of_range", field: "speed_mm_s" });
    assert.throws(() => chain({ parts_us: ["1s"] }), { code: "not_an_integer", field: "parts_us" });
  });
});

describe("the declarations of the stories", async () => {
  const types = await readFile(new URL("fencegate.d.ts", PACKAGE), "utf8");
  const fieldsOf = (name) => {
    const body = types.match(new RegExp(`^export interface ${name} \\{.*?^}`, "ms"))[0];
    return [...body.matchAll(/^ {4}(\w+)\??: /gm)].map(([, field]) => field);
  };

  it("have exactly the fields that are returned", () => {
    const { events, state } = tell(named("pause"));
    const story = new Story(named("pause"));
    story.runTo(15_000);
    const early = story.state();
    const seen = {
      StoryEvent: events,
      StoryState: [state, early],
      StoryFence: [state.fence, ...events.map(({ by }) => by).filter(Boolean)],
      StoryLease: [(story.runTo(60_000), story.state().lease)],
      StoryWorkerState: state.workers,
      StoryEntry: state.ledger,
      StoryMessage: early.messages,
    };
    for (const [name, objects] of Object.entries(seen)) {
      assert.ok(objects.length, name);
      for (const object of objects) assert.deepEqual(Object.keys(object), fieldsOf(name), name);
    }
  });

  it("have exactly the fields that are taken", () => {
    const known = (change) => {
      try {
        new Story({ ...named("pause"), ...change });
      } catch ({ message }) {
        return message.match(/there are (.*)$/)[1].split(", ");
      }
    };
    const same = (name, fields) => assert.deepEqual(fieldsOf(name).toSorted(), fields.toSorted(), name);
    same("Scenario", known({ x: 1 }));
    same("StoryWorker", known({ workers: [{ x: 1 }] }));
    same("StoryWrite", known({ writes: [{ x: 1 }] }));
    same("Happening", known({ happenings: [{ x: 1 }] }));
  });

  it("have exactly the words that there are", async () => {
    const rust = await readFile(new URL("../../wasm/src/story/event.rs", import.meta.url), "utf8");
    const declared = [...types.match(/type StoryEventKind =(.*?);/s)[1].matchAll(/"([\w-]+)"/g)].map(([, word]) => word);
    assert.deepEqual(
      declared,
      [...rust.matchAll(/^ {4}\w+ = "([\w-]+)",$/gm)].map(([, word]) => word),
    );
    const { message } = (() => {
      try {
        new Story({ ...named("pause"), happenings: [{ what: "" }] });
      } catch (error) {
        return error;
      }
    })();
    const what = types
      .match(/^ {4}what: (.*);$/m)[1]
      .replaceAll('"', "")
      .split(" | ");
    assert.ok(message.includes(`one of ${what.join(", ")} is needed`), message);
  });
});
