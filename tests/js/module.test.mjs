// The module under Node: the shared cases, the form of its integers, its refusals, its declarations and its README.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { promisify } from "node:util";
import { parseLossless } from "./lossless.mjs";
import { exported, leaseWindow, PACKAGE, packageFolder, plan } from "./module.mjs";
import { example } from "./readme.mjs";

const cases = parseLossless(await readFile(new URL("../cases/calculator.json", import.meta.url), "utf8"));
const plans = cases.filter(({ call }) => call === "plan");
const WINDOW_FIELDS = ["ttl_us", "drift_ppb", "rtt_us", "start", "clock_offset_us"];
const tenSeconds = { ttl_us: 10_000_000, drift_ppb: 1_000_000 };

/** What the call throws, as code and field; fails if it throws nothing, or something else than an Error. */
function refusal(call, input) {
  try {
    call(input);
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
    assert.deepEqual(exported.toSorted(), ["default", "initSync", "plan", "window"]);
  });

  it("names its module, its types and its files", async () => {
    const manifest = JSON.parse(await readFile(new URL("package.json", PACKAGE), "utf8"));
    assert.equal(manifest.name, "fencegate");
    for (const file of [manifest.module, manifest.types, ...manifest.files]) await readFile(new URL(file, PACKAGE));
  });

  it("declares exactly the fields that the calls return", async () => {
    const types = await readFile(new URL("fencegate.d.ts", PACKAGE), "utf8");
    const fieldsOf = (name) => {
      const body = types.match(new RegExp(`^export interface ${name}\\b.*?^}`, "ms"))[0];
      return [...body.matchAll(/^ {4}(\w+)\??: (.*);$/gm)].map(([, field, type]) => [field, type]);
    };
    const shape = (answer) =>
      Object.entries(answer).map(([field, value]) => [field, typeof value === "boolean" ? "boolean" : "Whole"]);
    assert.deepEqual(fieldsOf("Window"), shape(leaseWindow(tenSeconds)));
    assert.deepEqual([...fieldsOf("Window"), ...fieldsOf("Plan")], shape(plan(tenSeconds)));
  });

  it("names no machine: what was built here could have been built anywhere", async () => {
    const wasm = await readFile(new URL("fencegate_bg.wasm", PACKAGE), "latin1");
    assert.doesNotMatch(wasm, /\/(home|root|Users|work|tmp)\//);
  });

  it("does what its README says, installed by name", async () => {
    const folder = await mkdtemp(join(tmpdir(), "fencegate-readme-"));
    try {
      await mkdir(join(folder, "node_modules"));
      await symlink(packageFolder, join(folder, "node_modules", "fencegate"), "dir");
      await writeFile(join(folder, "example.mjs"), example("js"));
      const { stdout } = await promisify(execFile)(process.execPath, ["example.mjs"], { cwd: folder });
      assert.equal(stdout, example("text"));
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
