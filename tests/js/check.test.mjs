// Check your lock service, in a real browser.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { describe } from "node:test";
import { fileURLToPath } from "node:url";
import { command } from "./command.mjs";
import { check, presets, redlock } from "./module.mjs";
import { assertNothingStrange, AT_ONCE, byHand, saved, setting } from "./page.mjs";

const { story } = setting();
const systems = presets().systems.filter(({ defaults }) => Object.keys(defaults).length);
const REQUIRED = { redlock: { ttl: "30s" }, shedlock: { lock_at_most_for: "30s" } };

/** Configurations that break a rule, and what the corrected one says in the system's own format. */
const BROKEN = {
  redlock: [{ ttl: "10s", drift_fixed: "11s", drift_factor: "5000ppm" }, /driftFactor: 0\.005[\s\S]*10000/],
  etcd: [{ ttl: "1.5s" }, /WithTTL\(60\)/],
  chubby: [{ lease: "0s" }, /lease 12s/],
  patroni: [{ loop_wait: "11s" }, /ttl: 30\nloop_wait: 10\nretry_timeout: 10/],
  kubernetes: [{ lease_duration: "10s" }, /LeaseDuration: {3}15 \* time\.Second/],
  consul: [{ ttl: "9s" }, /"TTL": "15s"/],
  dynamodb: [{ heartbeat: "11s" }, /withHeartbeatPeriod\(5000L\)/],
  shedlock: [{ lock_at_most_for: "1m", lock_at_least_for: "2m" }, /lockAtMostFor = "PT60S", lockAtLeastFor = "PT0S"/],
  "azure-blob": [{ lease: "14s" }, /--lease-duration 60/],
  hazelcast: [{ session_ttl: "5s" }, /session-time-to-live-seconds: 300/],
};

describe("a system without a configuration to check", AT_ONCE, () => {
  for (const { system, token, renews, notes, sources } of presets().systems.filter(({ defaults }) => !Object.keys(defaults).length)) {
    story(`${system}: its token, what to know of it, its sources, and what to do instead`, `#check?check.system=${system}`, async (page) => {
      assert.equal(await page.locator("#system").inputValue(), system);
      assert.match(await page.locator("#verdict").textContent(), /Nothing to check/);
      assert.equal(await page.locator("#check-token").textContent(), token ? "without order" : "none");
      assert.equal(await page.locator("#check-renews").textContent(), renews ? "yes" : "no");
      const words = await page.locator("main").innerText();
      for (const said of [notes, token ?? "There is none"]) assert.ok(words.toLowerCase().includes(said.toLowerCase()), said);
      assert.ok((await page.locator("#instead p").textContent()).length > 100);
      assert.deepEqual(await page.locator(".sources li").allTextContents(), sources);
      assert.equal(await page.locator("#findings, #command, .settings input").count(), 0, "nothing to fill in");
      await assertNothingStrange(page);
      await page.locator("#system").selectOption("patroni");
      await page.locator("#verdict", { hasText: "rules hold" }).waitFor();
    });
  }

  story("stands beside the others in the list", "#check", async (page) => {
    const listed = await page.locator("#system option").allTextContents();
    assert.deepEqual(listed, presets().systems.map(({ system }) => system));
  });
});

describe("every system", AT_ONCE, () => {
  for (const { system, defaults, token, sources } of systems) {
    story(
      `${system}: its own parameters, the module's findings, its token and its sources`,
      `#check?check.system=${system}`,
      async (page) => {
        const found = check(system, { ...REQUIRED[system], drift: "1000ppm", rtt: "5ms" });
        assert.deepEqual(
          await page
            .locator(".settings code")
            .evaluateAll((all) => all.map((code) => code.textContent).filter((text) => /^[a-z_]+$/.test(text))),
          Object.keys(defaults),
        );
        assert.match(await page.locator("#verdict").textContent(), found.ok ? /hold/ : /broken/);
        const messages = await page.locator("#findings").innerText();
        for (const { message } of found.findings) assert.ok(messages.includes(message), message);
        if (token) assert.ok(messages.toLowerCase().includes(token.toLowerCase()));
        assert.deepEqual(await page.locator(".sources li").allTextContents(), sources);
        const words = (await page.locator("#command").textContent()).split(" ").slice(1);
        assert.deepEqual(found, command(...words).answer);
        assert.deepEqual(JSON.parse((await saved(page, "JSON")).content), found);
        assert.ok((await page.locator("#configuration").textContent()).length > 20);
        assert.match(await page.locator("#snippet").textContent(), token && found.plan ? /Plan::for_ttl[\s\S]*\.plan\(\)/ : /Plan|fence/);
        await assertNothingStrange(page);
      },
    );
  }

  for (const [system, [values, configuration]] of Object.entries(BROKEN)) {
    story(
      `${system}: a broken rule, and the corrected configuration in its own format`,
      `#check?check.system=${system}`,
      async (page) => {
        for (const [key, value] of Object.entries(values)) await page.locator(`#${key}`).fill(value);
        const found = check(system, { ...REQUIRED[system], ...values });
        assert.equal(found.ok, false);
        assert.match(await page.locator("#verdict").textContent(), /broken/);
        const messages = await page.locator("#findings").innerText();
        for (const { rule, message } of found.findings) assert.ok(messages.includes(message) && messages.includes(rule));
        assert.match(await page.locator("#configuration").textContent(), configuration);
        assert.match(await page.locator("#corrected").textContent(), /every rule holds/);
      },
    );
  }
});

/** Builds a package of these modules against the core as it lies here; what the compiler says, or nothing. */
async function compiled(modules) {
  const root = fileURLToPath(new URL("../../", import.meta.url));
  const folder = await mkdtemp(join(tmpdir(), "snippets-"));
  try {
    await mkdir(join(folder, "src"));
    const core = JSON.stringify(join(root, "core"));
    await writeFile(
      join(folder, "Cargo.toml"),
      `[package]\nname = "snippets"\nversion = "0.1.0"\nedition = "2024"\n\n[dependencies]\nfencegate = { path = ${core} }\n\n[workspace]\n`,
    );
    const source = Object.entries(modules).map(([name, code]) => `pub mod ${name} {\n${code}\n}\n`);
    await writeFile(join(folder, "src/lib.rs"), `#![deny(warnings)]\n${source.join("\n")}`);
    const target = resolve(root, process.env.CARGO_TARGET_DIR ?? "target", "snippets");
    // From the repository, so that its toolchain is taken.
    const manifest = join(folder, "Cargo.toml");
    const { status, stderr, error } = spawnSync(
      "cargo",
      ["check", "--quiet", "--offline", "--manifest-path", manifest, "--target-dir", target],
      { cwd: root, encoding: "utf8" },
    );
    if (error) throw error;
    return status === 0 ? "" : stderr;
  } finally {
    await rm(folder, { recursive: true });
  }
}

describe("what stands at the top", AT_ONCE, () => {
  const top = (page) => page.locator(".summary").innerText();

  for (const [system, values, said, rule] of [
    ["zookeeper", "session_timeout.is=60s", /Window for the TTL as asked for/, "clamped"],
    ["redisson", "lease_time.is=5s", /Window for the TTL as asked for[\s\S]*Renews by itself\s*no/, "renewal"],
    ["etcd", "ttl.is=1s", /Window for the TTL as asked for/, "min_ttl"],
    ["patroni", "ttl.is=19s", /Window for the TTL as asked for/, "minimum"],
    ["consul", "ttl.is=15s", /Takeover for the TTL as asked for/, "takeover"],
    ["kubernetes", "lease_duration.is=15.9s", /Window for the TTL as asked for[\s\S]*challengers wait 15\ss/],
    ["kubernetes", "lease_duration.is=15.9s&check.renew_deadline.is=15.5s", /Window for the TTL as asked for/, "whole_seconds"],
  ]) {
    story(`is not refuted by a finding: ${system}, ${values}`, `#check?check.system=${system}&check.${values}`, async (page) => {
      assert.match(await top(page), said);
      if (!rule) return;
      const given = Object.fromEntries(values.split("&").map((one) => one.replace("check.", "").split(".is=")));
      const { message } = check(system, { ...given, drift: "1000ppm" }).findings.find((one) => one.rule === rule);
      assert.ok((await top(page)).includes(message.slice(1)), message);
      assert.doesNotMatch(await top(page), /at most\n/);
    });
  }

  story("is the window, and at most, where nothing speaks against it", "#check?check.system=hazelcast", async (page) => {
    assert.match(await top(page), /^Window\n[\s\S]*Takeover at most\n/);
    assert.equal(await page.locator(".summary .but").count(), 0);
  });

  story("is a Redlock's validity", "#check?check.system=redlock&check.ttl.is=10s&check.elapsed.is=2s", async (page) => {
    const { validity_us } = redlock({ ttl_us: 10_000_000, elapsed_us: 2_000_000, nodes: 5, granted: 5, drift_fixed_us: 2_000 });
    assert.match(await top(page), /^Validity/);
    assert.equal(await page.locator("#check-window").textContent(), `${Number(validity_us) / 1e6}\u00a0s`);
    await page.locator("#granted").fill("2");
    assert.equal(await page.locator("#check-window").textContent(), "not held");
  });

  story("names no token for an RLock", "#check?check.system=redisson", async (page) => {
    assert.equal(await page.locator("#check-token").textContent(), "none");
    assert.doesNotMatch(await page.locator("#snippet").textContent(), /Fence/);
    await page.locator("#fenced").selectOption("true");
    assert.equal(await page.locator("#check-token").textContent(), "ordered");
    assert.match(await page.locator("#snippet").textContent(), /Fence/);
  });

  for (const [hash, words] of [
    ["check.system=patroni&check.drift=", /^needs a drift$/],
    ["check.system=patroni&check.loop_wait.is=0", /loop_wait is zero/],
    ["check.system=azure-blob&check.lease.is=infinite", /no end/],
    ["check.system=patroni&check.ttl.is=0", /at least|microsecond/],
    ["check.system=etcd&check.ttl.is=9223372036854775807us", /fit/],
  ]) {
    story(`says why there is no window: ${hash}`, `#check?${hash}`, async (page) => {
      assert.match(await page.locator("#check-window").textContent(), words);
      await assertNothingStrange(page);
    });
  }
});

describe("what is handed over", AT_ONCE, () => {
  const handed = (page) => page.locator("#configuration").textContent();

  for (const [system, values, lines] of [
    ["patroni", "ttl.is=30.5s", ["ttl: 31", "loop_wait: 10"]],
    ["patroni", "safety_margin.is=4.2s", ["  safety_margin: 5"]],
    ["hazelcast", "session_ttl.is=10.1s&check.heartbeat.is=1500ms", ["    session-time-to-live-seconds: 11", "    session-heartbeat-interval-seconds: 2"]],
    ["azure-blob", "lease.is=15.5s", [/--lease-duration 16$/m]],
  ]) {
    story(`is in whole seconds, rounded up: ${system}, ${values}`, `#check?check.system=${system}&check.${values}`, async (page) => {
      assert.match(await page.locator("#verdict").textContent(), /hold/);
      const text = await handed(page);
      for (const line of lines) assert.match(text, typeof line === "string" ? new RegExp(`^${line}$`, "m") : line);
      assert.match(text, /takes whole seconds; rounded up/);
      assert.doesNotMatch(text.split("\n").slice(1).join(), /\d\.\d/);
    });
  }

  story(
    "is refused with a word where it would break a rule rounded up",
    "#check?check.system=patroni&check.ttl.is=31.2s&check.loop_wait.is=10.2s&check.retry_timeout.is=10.5s",
    async (page) => {
      assert.match(await page.locator("#verdict").textContent(), /hold/);
      assert.match(await handed(page), /rounded up these break a rule: choose whole ones/);
      assert.doesNotMatch(await handed(page), /^ttl:/m);
    },
  );

  for (const observed of ["granted.is=2", "elapsed.is=11s"]) {
    story(`never corrects what was observed: ${observed}`, `#check?check.system=redlock&check.ttl.is=10s&check.${observed}`, async (page) => {
      assert.match(await page.locator("#verdict").textContent(), /broken/);
      const corrected = page.locator("#corrected");
      if (await corrected.count()) assert.doesNotMatch(await corrected.textContent(), /granted|elapsed/);
      assert.equal(await corrected.count(), observed.startsWith("granted") ? 0 : 1);
    });
  }

  story("names one token for etcd, in the text and in the code", "#check?check.system=etcd", async (page) => {
    const { token } = presets().systems.find(({ system }) => system === "etcd");
    assert.match(token, /create revision/);
    assert.match(await handed(page), /token := key\.Kvs\[0\]\.CreateRevision/);
    assert.doesNotMatch(await handed(page), /Header\(\)/);
  });
});

describe("a bare zero", AT_ONCE, () => {
  for (const [system, key, taken] of [
    ["redlock", "granted", "0"],
    ["redlock", "elapsed", "0s"],
    ["patroni", "safety_margin", "0s"],
    ["dynamodb", "safe_time", "0s"],
  ]) {
    story(`of ${system}'s ${key} is ${taken}`, `#check?check.system=${system}&check.${key}.is=0`, async (page) => {
      const found = check(system, { ...REQUIRED[system], [key]: taken, drift: "1000ppm", rtt: "5ms" });
      const words = await page.locator("#command").textContent();
      assert.ok(words.split(" ").includes(`${key}=${taken}`), words);
      for (const { message } of found.findings) assert.ok((await page.locator("#findings").innerText()).includes(message), message);
    });
  }

  story("that is no factor is told why", "#check?check.system=redlock&check.drift_factor.is=0", async (page) => {
    assert.match(await page.locator("#drift_factor-error").textContent(), /unit is missing \(%/);
  });
});

describe("the Rust that is handed over", AT_ONCE, () => {
  story("compiles: for every system, and that of a plan", "#check", async (page) => {
    const modules = {};
    for (const { system } of systems) {
      await page.locator("#system").selectOption(system);
      await page.locator("#command", { hasText: `check ${system}` }).waitFor();
      modules[system.replaceAll("-", "_")] = await page.locator("#snippet").textContent();
    }
    await page.locator("#system").selectOption("azure-blob");
    await page.locator("#lease").fill("infinite");
    modules.endless = await page.locator("#snippet").textContent();
    await page.evaluate(() => (location.hash = "#size?start=grant&attempts=5&poll=1s&pause=1s&offset=3ms"));
    const plan = await page.locator("#rust").textContent();
    const [uses, ...rest] = plan.split("\n");
    modules.plan = `${uses}\npub fn plan() -> Result<Plan, fencegate::OutOfRange> {\n${rest.join("\n")}\nOk(plan)\n}`;
    assert.equal(await compiled(modules), "");
  });
});

describe("a bad entry", AT_ONCE, () => {
  for (const [key, value, words] of [
    ["ttl", "30", /unit is missing/],
    ["ttl", "soon", /number/],
    ["safety_margin", "-2", /no sign|the word -1/],
    ["drift", "100%", /below/],
    ["rtt", "5", /unit is missing/],
  ]) {
    story(`${key}: “${value}” is told why, and the last answer stays`, "#check?check.system=patroni", async (page) => {
      const before = await page.locator("#check-window").textContent();
      await page.locator(`#${key}`).fill(value);
      assert.match(await page.locator(`#${key}-error`).textContent(), words);
      assert.equal(await page.locator(`#${key}`).getAttribute("aria-invalid"), "true");
      assert.equal(await page.locator("#check-window").textContent(), before);
      assert.ok(await page.locator("#stale-note").isVisible());
      await assertNothingStrange(page);
    });
  }
});

describe("by hand", AT_ONCE, () => {
  story("the sliders, by mouse and keyboard", "#check", async (page) => {
    assert.equal(await byHand(page), 2);
  });
});

describe("by keyboard alone", AT_ONCE, () => {
  story("every system is reached, and its answer saved", "#check", async (page) => {
    const all = presets().systems.map(({ system }) => system);
    await page.locator("#system").focus();
    await page.keyboard.press("Home");
    for (const system of all) {
      await page.locator("#check-title").filter({ hasText: new RegExp(`^${system}$`) }).waitFor();
      await page.keyboard.press("ArrowDown");
    }
    await page.locator("#system").selectOption("patroni");
    await page.getByRole("button", { name: "JSON" }).focus();
    const [download] = await Promise.all([page.waitForEvent("download"), page.keyboard.press("Enter")]);
    assert.equal(download.suggestedFilename(), "check.json");
  });

  story("a system is chosen and a rule broken", "#check", async (page) => {
    await page.locator("#system").focus();
    await page.keyboard.type("kub");
    await page.locator("#lease_duration").waitFor();
    await page.keyboard.press("Tab");
    await page.keyboard.type("10s");
    await page.locator("#verdict", { hasText: "broken" }).waitFor();
  });
});
