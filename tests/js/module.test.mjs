// The module under Node: the shared cases, the form of its integers, its refusals, its declarations and its README.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { promisify } from "node:util";
import { command } from "./command.mjs";
import { parseLossless } from "./lossless.mjs";
import {
  chain,
  check,
  exported,
  leaseWindow,
  PACKAGE,
  packageFolder,
  plan,
  presets,
  quorum,
  redlock,
  scenarios,
  size,
  Story,
} from "./module.mjs";
import { examples } from "./readme.mjs";

const cases = parseLossless(await readFile(new URL("../cases/calculator.json", import.meta.url), "utf8"));
const of = (name) => cases.filter(({ call }) => call === name);
const plans = of("plan");
const WINDOW_FIELDS = ["ttl_us", "drift_ppb", "rtt_us", "start", "clock_offset_us"];
const tenSeconds = { ttl_us: 10_000_000, drift_ppb: 1_000_000 };

/** What the call throws, as code and field; fails if it throws nothing, or something else than an Error. */
function refusal(call, ...input) {
  try {
    call(...input);
  } catch (error) {
    assert.ok(error instanceof Error, "it throws an Error");
    assert.ok(error.message.length > error.field.length, "with a sentence");
    return { code: error.code, field: error.field };
  }
  assert.fail("nothing was thrown");
}

const pick = (object, keys) => Object.fromEntries(keys.filter((key) => key in object).map((key) => [key, object[key]]));

describe("the shared cases", () => {
  it("are there", () => {
    assert.ok(plans.length >= 20, `only ${plans.length} plans in the file`);
    assert.ok(plans.some(({ expect }) => typeof expect?.window_us === "bigint"), "one of them above 2^53");
    assert.ok(of("size").length >= 7 && of("redlock").length >= 4);
    const calls = new Set(cases.map(({ call }) => call));
    assert.deepEqual([...calls].filter((call) => !["plan", "size", "redlock", "quorum"].includes(call)), []);
  });

  for (const { name, input, expect, expect_error } of plans) {
    it(`plan: ${name}`, () => {
      if (expect_error) assert.equal(refusal(plan, input).field, expect_error);
      else assert.deepStrictEqual({ ...plan(input) }, expect);
    });
  }

  for (const { name, input, expect } of plans.filter(({ expect }) => expect)) {
    it(`window: ${name}`, () => {
      const { margin_us, window_us, safe } = expect;
      assert.deepStrictEqual({ ...leaseWindow(pick(input, WINDOW_FIELDS)) }, { margin_us, window_us, safe });
    });
  }
});

describe("the shared cases of the other calls", () => {
  const story = ({ call, name, input }) => `${call}: ${name ?? JSON.stringify(input)}`;

  for (const one of of("size")) {
    it(story(one), () => {
      const { input, expect, expect_error } = one;
      if (expect_error) return assert.equal(refusal(size, input).field, expect_error);
      const { lost, granularity_us, ...lease } = input;
      const { ttl_us } = expect;
      const whole = ttl_us === null ? {} : plan({ ttl_us, ...lease });
      assert.deepStrictEqual(size(input), { ttl_us, ...whole });
    });
  }

  for (const call of [redlock, quorum]) {
    for (const one of of(call.name)) {
      it(story(one), () => {
        const { input, expect, expect_error } = one;
        if (expect_error) assert.equal(refusal(call, input).field, expect_error);
        else assert.deepStrictEqual(call(input), expect);
      });
    }
  }
});

describe("quorum", () => {
  for (const nodes of [1, 2, 3, 4, 5, 1_000_000, 2n ** 53n, 2n ** 64n - 3n]) {
    it(`of ${nodes} nodes is the command's`, () => {
      const { answer } = command("quorum", "--nodes", `${nodes}`);
      assert.deepStrictEqual({ nodes, ...quorum({ nodes }) }, answer);
    });
  }
});

it("the presets are the command's", () => {
  assert.deepStrictEqual(presets(), command("presets").answer);
  assert.notEqual(presets(), presets(), "each call has its own");
});

/** Configurations of every system that keep its rules, and such that break one or earn a warning. */
const CONFIGURATIONS = {
  redlock: ["ttl=10s", "ttl=10s nodes=5 granted=3 elapsed=300ms", "ttl=10s elapsed=9.9s", "ttl=10s granted=2"],
  redisson: ["", "lease_time=10s", "fenced=true", "fenced=false"],
  etcd: ["", "ttl=10s", "ttl=1.5s", "ttl=9000000001s", "heartbeat_interval=201ms", "election_timeout=51s", "ttl=1s"],
  zookeeper: ["", "session_timeout=3s", "session_timeout=41s", "tick=3s"],
  chubby: ["", "lease=0s", "grace=1m30s"],
  patroni: [
    "",
    "ttl=30s loop_wait=10s retry_timeout=10s",
    "ttl=19s loop_wait=0.5s retry_timeout=2s",
    "loop_wait=11s",
    "loop_wait=20s retry_timeout=3s safety_margin=11s",
    "loop_wait=16s retry_timeout=3s safety_margin=-1",
    "ttl=31s loop_wait=16s retry_timeout=3s safety_margin=-1",
  ],
  kubernetes: ["", "lease_duration=10s", "retry_period=8.4s", "lease_duration=10.9s"],
  consul: ["", "ttl=9s", "ttl=25h", "lock_delay=61s", "lock_delay=60.0000001s"],
  dynamodb: ["", "safe_time=15s", "heartbeat=11s", "heartbeat=6s", "safe_time=5s", "safe_time=20s", "heartbeat=0s"],
  shedlock: [
    "lock_at_most_for=10m",
    "lock_at_most_for=10m lock_at_least_for=1m clock_skew=30s",
    "lock_at_most_for=1m lock_at_least_for=2m",
    "lock_at_most_for=1m clock_skew=1s",
    "lock_at_most_for=1m clock_skew=1s db_time=true",
  ],
  "azure-blob": ["", "lease=infinite", "lease=14s", "lease=61s", "lease=60.0000009s"],
  hazelcast: ["", "session_ttl=5s", "session_ttl=9223372036854775807us"],
};
const valuesOf = (text) => Object.fromEntries(text.split(" ").filter(Boolean).map((pair) => pair.split("=")));

describe("check gives what the command gives", () => {
  it("for every system that the presets have keys of", () => {
    const withKeys = presets().systems.filter(({ defaults }) => Object.keys(defaults).length);
    assert.deepEqual(withKeys.map(({ system }) => system), Object.keys(CONFIGURATIONS));
  });

  for (const [system, configurations] of Object.entries(CONFIGURATIONS)) {
    for (const text of configurations) {
      for (const plan of ["", "drift=1000ppm rtt=5ms"]) {
        const all = `${text} ${plan}`.trim();
        it(`${system} ${all}`, () => {
          const { status, answer } = command("check", system, ...all.split(" ").filter(Boolean));
          const checked = check(system, valuesOf(all));
          assert.deepStrictEqual(checked, answer);
          assert.equal(status, checked.ok ? 0 : 1);
        });
      }
    }
  }

  it("for each system broken and whole", () => {
    const verdicts = (system) => CONFIGURATIONS[system].map((text) => check(system, valuesOf(text)).ok);
    const never = Object.keys(CONFIGURATIONS).filter((system) => verdicts(system).every(Boolean));
    assert.deepEqual(never, ["redisson", "zookeeper"], "these two have warnings only");
    for (const system of Object.keys(CONFIGURATIONS)) assert.equal(verdicts(system)[0], true, system);
  });
});

describe("a value of check", () => {
  const same = (name, system, values, text) =>
    it(name, () => assert.deepStrictEqual(check(system, values), check(system, valuesOf(text))));

  same("may be whole microseconds", "patroni", { ttl: 19_000_000, loop_wait: 500_000n }, "ttl=19s loop_wait=0.5s");
  same("may be beyond 2^53", "etcd", { ttl: 9_000_000_001_000_000n }, "ttl=9000000001s");
  same("may be a count", "redlock", { ttl: "10s", nodes: 7, granted: 3n }, "ttl=10s nodes=7 granted=3");
  same("may be whole ppb", "redlock", { ttl: "1s", drift_factor: 500_000_000 }, "ttl=1s drift_factor=50%");
  same("may be a boolean", "redisson", { fenced: true }, "fenced=true");
  same("may be the drift for a plan", "consul", { drift: 1_000_000, rtt: 5_000 }, "drift=0.1% rtt=5ms");
  same("may be undefined, which is left out", "etcd", { ttl: undefined, rtt: undefined }, "");
  same("may be null where the presets have null", "redlock", { ttl: "9s", granted: null, drift: null }, "ttl=9s");

  it("may come from the presets", () => {
    for (const { system, defaults } of presets().systems) {
      if (!(system in CONFIGURATIONS)) continue;
      const required = valuesOf(CONFIGURATIONS[system][0]);
      assert.deepStrictEqual(check(system, { ...defaults, ...required }), check(system, required));
    }
  });

  it("is the default where there are no values at all", () => {
    assert.deepStrictEqual(check("etcd"), check("etcd", {}));
  });

  it("has its integers as numbers in the plan too, while they are exact", () => {
    const { plan } = check("hazelcast", { session_ttl: 2n ** 62n, drift: 0 });
    assert.strictEqual(plan.window_us, 2n ** 62n);
    assert.strictEqual(plan.margin_us, 0);
  });
});

describe("a wrong input of check throws an Error with code and field", () => {
  const refuses = (name, system, values, code, field) =>
    it(name, () => assert.deepEqual(refusal(check, system, values), { code, field }));
  /** And so does the command, which exits with 2. */
  const bothRefuse = (system, text, code, field) =>
    it(`${system} ${text}`, () => {
      assert.deepEqual(refusal(check, system, valuesOf(text)), { code, field });
      assert.equal(command("check", system, ...text.split(" ").filter(Boolean)).status, 2);
    });

  bothRefuse("postgres", "", "unknown_system", "system");
  bothRefuse("ETCD", "", "unknown_system", "system");
  bothRefuse("s3", "", "unknown_system", "system");
  bothRefuse("etcd", "tll=1s", "unknown_field", "tll");
  bothRefuse("etcd", "ttl=5", "not_a_duration", "ttl");
  bothRefuse("etcd", "ttl=-5s", "not_a_duration", "ttl");
  bothRefuse("etcd", "ttl=", "not_a_duration", "ttl");
  bothRefuse("etcd", "ttl=30s1m", "not_a_duration", "ttl");
  bothRefuse("etcd", "ttl=1ſ", "not_a_duration", "ttl");
  bothRefuse("etcd", "ttl=18446744073709551616us", "out_of_range", "ttl");
  bothRefuse("etcd", "ttl=infinite", "not_a_duration", "ttl");
  bothRefuse("etcd", "rtt=1", "not_a_duration", "rtt");
  bothRefuse("etcd", "drift=1s", "not_a_drift", "drift");
  bothRefuse("etcd", "drift=1ppm1ppb", "not_a_drift", "drift");
  bothRefuse("etcd", "drift=100%", "out_of_range", "drift");
  bothRefuse("patroni", "safety_margin=-2", "not_a_duration", "safety_margin");
  bothRefuse("azure-blob", "lease=for-ever", "not_a_duration", "lease");
  bothRefuse("redlock", "", "missing", "ttl");
  bothRefuse("redlock", "ttl=0s", "out_of_range", "ttl");
  bothRefuse("redlock", "ttl=1s nodes=0", "out_of_range", "nodes");
  bothRefuse("redlock", "ttl=1s nodes=3.0", "not_an_integer", "nodes");
  bothRefuse("redlock", "ttl=1s granted=6", "out_of_range", "granted");
  bothRefuse("redlock", "ttl=1s drift_factor=100%", "out_of_range", "drift_factor");
  bothRefuse("shedlock", "", "missing", "lock_at_most_for");
  bothRefuse("shedlock", "lock_at_most_for=1s db_time=yes", "not_a_flag", "db_time");
  bothRefuse("zookeeper", "tick=18446744073709551615us", "out_of_range", "tick");
  bothRefuse("consul", "ttl=9223372036854775807us", "out_of_range", "ttl");

  for (const system of [undefined, null, 5, {}, ["etcd"]]) {
    refuses(`a system that is ${JSON.stringify(system)}`, system, {}, "unknown_system", "system");
  }
  for (const values of [null, "ttl=1s", 5, ["ttl=1s"], new Map([["ttl", "1s"]]), new URLSearchParams("ttl=1s")]) {
    refuses(`values that are no plain object: ${values}`, "etcd", values, "not_an_object", "values");
  }
  refuses("a duration below zero", "etcd", { ttl: -1 }, "out_of_range", "ttl");
  refuses("a duration beyond 64 bits", "etcd", { ttl: 2n ** 64n }, "out_of_range", "ttl");
  refuses("a duration that is not exact", "etcd", { ttl: 2 ** 53 }, "out_of_range", "ttl");
  refuses("a fraction of a microsecond", "etcd", { ttl: 0.5 }, "not_an_integer", "ttl");
  refuses("a duration that is a boolean", "etcd", { ttl: true }, "not_a_duration", "ttl");
  refuses("a duration that is an object", "etcd", { ttl: {} }, "not_a_duration", "ttl");
  refuses("null for what has a default", "etcd", { ttl: null }, "not_a_duration", "ttl");
  refuses("null for what is required", "redlock", { ttl: null }, "missing", "ttl");
  refuses("-1 as a number: there it would be a duration", "patroni", { safety_margin: -1 }, "out_of_range", "safety_margin");
  refuses("a drift that is a list", "etcd", { drift: ["1ppm", "1ppm"] }, "not_a_drift", "drift");
  refuses("a count that is a boolean", "redlock", { ttl: 1, nodes: true }, "not_an_integer", "nodes");
  refuses("a flag that is a number", "redisson", { fenced: 1 }, "not_a_flag", "fenced");
  refuses("a name from the prototype", "etcd", { constructor: "1s" }, "unknown_field", "constructor");
});

describe("a wrong input of size, redlock and quorum throws an Error with code and field", () => {
  const good = new Map([
    [size, { drift_ppb: 1_000 }],
    [redlock, { ttl_us: 10_000_000, elapsed_us: 0, nodes: 5, granted: 3 }],
    [quorum, { nodes: 5 }],
  ]);
  const story = (call, name, input, code, field) =>
    it(`${call.name}: ${name}`, () => assert.deepEqual(refusal(call, input), { code, field }));

  for (const [call, input] of good) {
    it(`${call.name}: but not a good one`, () => assert.doesNotThrow(() => call(input)));
    for (const field of Object.keys(input)) {
      const { [field]: _, ...rest } = input;
      story(call, `no ${field}`, rest, "missing", field);
    }
    story(call, "a misspelt field", { ...input, node: 5 }, "unknown_field", "node");
    story(call, "no object", undefined, "not_an_object", "input");
    story(call, "a Map", new Map(Object.entries(input)), "not_an_object", "input");
  }
  const fields = new Map([
    [size, ["drift_ppb", "rtt_us", "attempts", "work_us", "pause_us", "poll_us", "lost", "granularity_us"]],
    [redlock, ["ttl_us", "elapsed_us", "nodes", "granted", "drift_factor_ppb", "drift_fixed_us"]],
    [quorum, ["nodes"]],
  ]);
  for (const [call, names] of fields) {
    for (const field of names) {
      const wrong = (value) => ({ ...good.get(call), [field]: value });
      story(call, `negative ${field}`, wrong(-1), "out_of_range", field);
      story(call, `${field} beyond 64 bits`, wrong(2n ** 64n), "out_of_range", field);
      story(call, `fractional ${field}`, wrong(0.5), "not_an_integer", field);
      story(call, `${field} as a string`, wrong("10"), "not_an_integer", field);
      story(call, `${field} as null`, wrong(null), "not_an_integer", field);
    }
  }
  story(size, "a start, which size has not", { drift_ppb: 0, start: "grant" }, "unknown_field", "start");
  story(size, "a drift of 100 %", { drift_ppb: 1e9 }, "out_of_range", "drift_ppb");
  story(size, "one heartbeat", { drift_ppb: 0, attempts: 1 }, "out_of_range", "attempts");
  story(size, "no step at all", { drift_ppb: 0, granularity_us: 0 }, "out_of_range", "granularity_us");
  story(size, "what does not fit", { drift_ppb: 0, work_us: 2n ** 64n - 1n }, "out_of_range", "ttl_us");
  const lock = good.get(redlock);
  story(redlock, "a TTL of zero", { ...lock, ttl_us: 0 }, "out_of_range", "ttl_us");
  story(redlock, "more grants than nodes", { ...lock, granted: 6 }, "out_of_range", "granted");
  story(redlock, "a factor of 100 %", { ...lock, drift_factor_ppb: 1e9 }, "out_of_range", "drift_factor_ppb");
  story(redlock, "what does not fit", { ...lock, drift_fixed_us: 2n ** 63n }, "out_of_range", "ttl_us");
  story(quorum, "no node", { nodes: 0 }, "out_of_range", "nodes");
  story(quorum, "a quorum that does not fit", { nodes: 2n ** 64n - 1n }, "out_of_range", "nodes");
});

describe("an integer", () => {
  it("comes in as a number or as a BigInt, to the same answer", () => {
    assert.deepStrictEqual(plan({ ttl_us: 10_000_000n, drift_ppb: 1_000_000n, attempts: 3n }), plan(tenSeconds));
  });

  it("comes back as a number up to 2^53 - 1 and as a BigInt from there on", () => {
    const window = (ttl_us) => leaseWindow({ ttl_us, drift_ppb: 0 }).window_us;
    assert.strictEqual(window(2n ** 53n - 1n), 2 ** 53 - 1);
    assert.strictEqual(window(2n ** 53n), 2n ** 53n);
    assert.strictEqual(window(2n ** 63n - 1n), 2n ** 63n - 1n);
  });

  it("above 2^63 - 1 in the answer is an error, never a wrapped number", () => {
    assert.deepEqual(refusal(leaseWindow, { ttl_us: 2n ** 63n, drift_ppb: 0 }), { code: "out_of_range", field: "ttl_us" });
  });
});

describe("an answer", () => {
  it("is a plain object without the input's fields", () => {
    assert.deepEqual(Object.keys(leaseWindow(tenSeconds)), ["margin_us", "window_us", "safe"]);
    assert.equal(Object.getPrototypeOf(plan(tenSeconds)), Object.prototype);
  });

  it("is the same where a field is undefined as where it is left out", () => {
    assert.deepStrictEqual(plan({ ...tenSeconds, rtt_us: undefined, start: undefined }), plan(tenSeconds));
  });

  it("takes no window for a lease shorter than its heartbeats, except from `window`", () => {
    assert.equal(leaseWindow({ ttl_us: 1, drift_ppb: 0 }).window_us, 1);
    assert.deepEqual(refusal(plan, { ttl_us: 1, drift_ppb: 0 }), { code: "out_of_range", field: "ttl_us" });
  });
});

describe("a wrong input throws an Error with code and field", () => {
  for (const call of [leaseWindow, plan]) {
    const story = (name, input, code, field) =>
      it(`${call.name}: ${name}`, () => assert.deepEqual(refusal(call, input), { code, field }));

    story("no TTL", { drift_ppb: 0 }, "missing", "ttl_us");
    story("a TTL that is undefined", { ttl_us: undefined, drift_ppb: 0 }, "missing", "ttl_us");
    story("no drift", { ttl_us: 10 }, "missing", "drift_ppb");
    story("a TTL of zero", { ttl_us: 0, drift_ppb: 0 }, "out_of_range", "ttl_us");
    story("a clock that may stand still", { ttl_us: 10, drift_ppb: 1e9 }, "out_of_range", "drift_ppb");
    story("a misspelt field", { ...tenSeconds, rtt: 5 }, "unknown_field", "rtt");
    story("a field of another call", { ...tenSeconds, granularity_us: 5 }, "unknown_field", "granularity_us");
    story("no object", undefined, "not_an_object", "input");
    story("null", null, "not_an_object", "input");
    story("an array", [10, 0], "not_an_object", "input");
    story("a start that is neither", { ...tenSeconds, start: "Send" }, "not_a_start", "start");
    story("a start that is a number", { ...tenSeconds, start: 1 }, "not_a_start", "start");
    story("a start that is null", { ...tenSeconds, start: null }, "not_a_start", "start");
    for (const field of ["ttl_us", "drift_ppb", "rtt_us", "clock_offset_us"]) {
      const wrong = (value) => ({ ...tenSeconds, [field]: value });
      story(`negative ${field}`, wrong(-1), "out_of_range", field);
      story(`negative BigInt ${field}`, wrong(-1n), "out_of_range", field);
      story(`${field} beyond 64 bits`, wrong(2n ** 64n), "out_of_range", field);
      story(`${field} too large to be exact as a number`, wrong(2 ** 53), "out_of_range", field);
      story(`infinite ${field}`, wrong(Infinity), "not_an_integer", field);
      story(`fractional ${field}`, wrong(0.5), "not_an_integer", field);
      story(`${field} that is not a number`, wrong(NaN), "not_an_integer", field);
      story(`${field} as a string`, wrong("10"), "not_an_integer", field);
      story(`${field} as a boolean`, wrong(true), "not_an_integer", field);
      story(`${field} as null`, wrong(null), "not_an_integer", field);
    }
  }

  it("plan: a single heartbeat", () => {
    assert.deepEqual(refusal(plan, { ...tenSeconds, attempts: 1 }), { code: "out_of_range", field: "attempts" });
  });

  for (const field of ["attempts", "work_us", "pause_us", "poll_us"]) {
    it(`plan: fractional ${field}, which window does not take at all`, () => {
      assert.deepEqual(refusal(plan, { ...tenSeconds, [field]: 1.5 }), { code: "not_an_integer", field });
      assert.deepEqual(refusal(leaseWindow, { ...tenSeconds, [field]: 3 }), { code: "unknown_field", field });
    });
  }

  it("and the next call is answered as if nothing had been", () => {
    refusal(plan, {});
    assert.equal(plan(tenSeconds).window_us, 9_990_000);
  });
});

describe("the package", () => {
  it("exports the calls, the initialiser and nothing else", () => {
    assert.deepEqual(exported.toSorted(), [
      "Story",
      "chain",
      "check",
      "default",
      "initSync",
      "parseDrift",
      "parseDuration",
      "plan",
      "presets",
      "quorum",
      "redlock",
      "size",
      "window",
    ]);
  });

  it("names its module, its types and its files", async () => {
    const manifest = JSON.parse(await readFile(new URL("package.json", PACKAGE), "utf8"));
    assert.equal(manifest.name, "fencegate");
    for (const file of [manifest.module, manifest.types, ...manifest.files]) await readFile(new URL(file, PACKAGE));
  });

  it("is packed clean: what it declares, its README and its licences, and nothing else", async () => {
    const { stdout } = await promisify(execFile)("npm", ["pack", "--dry-run", "--json", "--offline"], { cwd: packageFolder });
    const [{ files }] = JSON.parse(stdout);
    const manifest = JSON.parse(await readFile(new URL("package.json", PACKAGE), "utf8"));
    const expected = [...manifest.files, "package.json", "README.md"];
    assert.deepEqual(files.map(({ path }) => path).toSorted(), expected.toSorted());
  });

  it("declares exactly the fields that the calls return", async () => {
    const types = await readFile(new URL("fencegate.d.ts", PACKAGE), "utf8");
    const fieldsOf = (name) => {
      const body = types.match(new RegExp(`^export interface ${name}\\b.*?^}`, "ms"))[0];
      return [...body.matchAll(/^ {4}(\w+)\??: (.*);$/gm)].map(([, field, type]) => [field, type]);
    };
    const WORDS = { boolean: "boolean", number: "Whole", string: "string", object: "null" };
    const shape = (answer) => Object.entries(answer).map(([field, value]) => [field, WORDS[typeof value]]);
    const [lease, rest] = [fieldsOf("Window"), fieldsOf("Plan")];
    assert.deepEqual(lease, shape(leaseWindow(tenSeconds)));
    assert.deepEqual([...lease, ...rest], shape(plan(tenSeconds)));
    assert.deepEqual([...fieldsOf("Size"), ...lease, ...rest], shape(size({ drift_ppb: 0 })));
    assert.deepEqual(fieldsOf("NoSize"), shape(size({ drift_ppb: 0, lost: 3 })));
    assert.deepEqual(fieldsOf("Redlock"), shape(redlock({ ttl_us: 9, elapsed_us: 0, nodes: 1, granted: 1 })));
    assert.deepEqual(fieldsOf("Quorum"), shape(quorum({ nodes: 1 })));
    const { systems, clocks } = presets();
    for (const clock of clocks) assert.deepEqual(fieldsOf("Clock"), shape(clock));
    const names = (fields) => fields.map(([field]) => field);
    const checked = check("chubby", { drift: 0 });
    for (const [name, answers] of Object.entries({
      Presets: [presets()],
      Preset: systems,
      Check: [checked, check("etcd")],
      Finding: checked.findings,
    })) {
      assert.ok(answers.length);
      for (const answer of answers) assert.deepEqual(names(fieldsOf(name)), Object.keys(answer));
    }
    assert.deepEqual(names([...lease, ...rest]), Object.keys(checked.plan));
  });

  const pause = scenarios.find(({ name }) => name === "pause").scenario;
  const tell = (scenario) => new Story(scenario).free();
  /** A story in whose list stands what is tried. */
  const inside = (list) => (item) => tell({ ...pause, happenings: [], [list]: [item] });
  /** Every input that is declared: who reads it, and one that is taken. */
  const INPUTS = {
    WindowInput: [leaseWindow, tenSeconds],
    PlanInput: [plan, tenSeconds],
    SizeInput: [size, { drift_ppb: 0 }],
    RedlockInput: [redlock, { ttl_us: 9, elapsed_us: 0, nodes: 1, granted: 1 }],
    QuorumInput: [quorum, { nodes: 1 }],
    ChainInput: [chain, { parts_us: [1] }],
    Scenario: [tell, { ...pause, happenings: [] }],
    StoryWorker: [inside("workers"), { name: "a", job: [] }],
    StoryWrite: [inside("writes"), { holder: "z", token: 1 }],
    Happening: [inside("happenings"), { what: "freeze", who: pause.workers[0].name, write: 1 }],
  };
  for (const [name, [read, good]] of Object.entries(INPUTS)) {
    it(`declares exactly the fields that are read, as they are read: ${name}`, async () => {
      const types = await readFile(new URL("fencegate.d.ts", PACKAGE), "utf8");
      const [body, , base] = types.match(new RegExp(`^export interface ${name}\\b( extends (\\w+))?.*?^}`, "ms"));
      const own = (text) => [...text.matchAll(/^ {4}(\w+)(\??): (.*);$/gm)].map(([, field, optional, type]) => [field, !optional, type]);
      const declared = [...(base ? own(types.match(new RegExp(`^export interface ${base}\\b.*?^}`, "ms"))[0]) : []), ...own(body)];
      const refused = (input) => {
        try {
          read(input);
        } catch (error) {
          return { ...error, message: error.message, last: error.field.split(".").at(-1) };
        }
        return undefined;
      };
      assert.equal(refused(good), undefined, "the good one is taken");
      // What is read, in the words of the refusal of anything else.
      const { message } = refused({ ...good, else: 1 });
      assert.deepEqual(message.split("there are ")[1].split(", "), declared.map(([field]) => field));
      for (const [field, required, type] of declared) {
        const { [field]: _, ...rest } = good;
        // A happening has an instant or the number of a write, and who it strikes is said of workers only.
        if (name !== "Happening" || ["what"].includes(field)) {
          // What never expires needs no TTL.
          const without = refused(field === "ttl_us" && name === "Scenario" ? { ...rest, expires: false } : rest);
          assert.deepEqual(without && [without.code, without.last], required ? ["missing", field] : undefined, `${field} left out`);
        }
        const words = [...type.replace("Start", '"send" | "grant"').matchAll(/"([\w-]+)"/g)].map(([, word]) => word);
        const of = type.replace(" | undefined", "");
        const code = words.length
          ? ["not_a_word", "not_a_start"]
          : { Whole: ["not_an_integer"], boolean: ["not_a_flag"], string: ["not_text"] }[of];
        const wrong = refused({ ...good, [field]: code ? (words.length ? "neither" : null) : 5 });
        assert.equal(wrong?.last, field, `${field}: ${type}`);
        if (code) assert.ok(code.includes(wrong.code), `${field}: ${type}, and ${wrong.code}`);
        else assert.match(of, /\[\]$/, `${field}: ${type}`);
        for (const word of words) {
          assert.ok(wrong.message.includes(word), `${field}: ${word}`);
          const taken = refused({ ...good, [field]: word });
          assert.notEqual(taken?.code, wrong.code, `${field}: ${word}`);
        }
        if (words.length && wrong.code === "not_a_word") assert.equal(wrong.message.match(/one of (.*) is needed/)[1].split(", ").length, words.length);
      }
    });
  }

  it("declares exactly the keys that the systems have, required where nothing stands in for the lease", async () => {
    const types = await readFile(new URL("fencegate.d.ts", PACKAGE), "utf8");
    const body = types.match(/^export interface Configurations\b.*?^}/ms)[0];
    const declared = [...body.matchAll(/^ {4}"?([\w-]+)"?: \{(.*?)^ {4}\};$/gms)].map(([, system, keys]) => [
      system,
      [...keys.matchAll(/^ {8}(\w+)(\??): (.*);$/gm)].map(([, key, optional, type]) => [
        key,
        optional === "",
        type.includes("null"),
      ]),
    ]);
    const keys = ({ defaults }) =>
      Object.entries(defaults).map(([key, value], at) => {
        const required = at === 0 && value === null;
        return [key, required, value === null && !required];
      });
    const systems = presets().systems.filter(({ defaults }) => Object.keys(defaults).length);
    assert.deepEqual(declared, systems.map((preset) => [preset.system, keys(preset)]));
    // And each default as it is written down beside its key.
    for (const { system, defaults } of systems) {
      const of = body.match(new RegExp(`^ {4}"?${system}"?: \\{(.*?)^ {4}\\};$`, "ms"))[1];
      for (const [key, value] of Object.entries(defaults)) {
        const doc = of.match(new RegExp(`/\\*\\* (.*) \\*/\\n {8}${key}\\b`))[1];
        const text = typeof value === "string" ? `"${value}"` : `${value}`;
        if (value !== null) assert.ok(doc.includes(`\`${text}\` if left out`), `${system} ${key}: ${text}`);
      }
    }
  });

  it("names no machine: what was built here could have been built anywhere", async () => {
    const wasm = await readFile(new URL("fencegate_bg.wasm", PACKAGE), "latin1");
    assert.doesNotMatch(wasm, /\/(home|root|Users|work|tmp)\//);
    // And its imports are numbered: a hash in each would be a hundredth of all that is sent.
    const names = wasm.match(/__wbg_\w+_[0-9a-f]{16}/g);
    assert.ok(names.length > 10);
    for (const name of names) assert.match(name, /_0{10,}\d+$/);
  });

  it("does what its README says, installed by name", async () => {
    const folder = await mkdtemp(join(tmpdir(), "fencegate-readme-"));
    try {
      await mkdir(join(folder, "node_modules"));
      await symlink(packageFolder, join(folder, "node_modules", "fencegate"), "dir");
      const [programs, outputs] = [examples("js"), examples("text")];
      assert.equal(programs.length, outputs.length);
      for (const [at, program] of programs.entries()) {
        await writeFile(join(folder, "example.mjs"), program);
        const { stdout } = await promisify(execFile)(process.execPath, ["example.mjs"], { cwd: folder });
        assert.equal(stdout, outputs[at]);
      }
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
