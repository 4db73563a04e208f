// A gate's client for JavaScript against the firmware itself: under Node in virtual time, and in the page's fourth view.

import axe from "axe-core";
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { Bench, Decoder, GateClient, INSTANCE, Keys, PACKAGE, SECRETS } from "./gate-bench.mjs";
import { button, frames, lit, overhear, press, says, stopClock, told } from "./gate-view.mjs";
import { DIST, setting, SHOTS } from "./page.mjs";

const set = setting();
const { story, visit } = set;

/** What the line brings in a phase of noise, in bytes, and for how long that is looked at: it takes 3.5 s at 115,200 baud. */
const NOISE = 40_000;
const NOISE_MS = 3_000;
const PHASES = 3;

/** For how long the page's own scripts may be at work in a phase, in ms. An emulator among them would be for 900 at least. */
const WORK = 200;

/**
 * Says, each time it is asked, what happened since: for how long the page's own scripts were at work, in ms, and how many
 * pictures there were. Work is counted in the main thread's own time, of which others on the machine take nothing: scripts
 * that were at work for less have not blocked the page for longer, and are not blamed where it waits for a processor.
 */
async function watch(page) {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Performance.enable", { timeDomain: "threadTicks" });
  await page.evaluate(() => {
    window.pictures = 0;
    const tick = () => requestAnimationFrame(() => ((window.pictures += 1), tick()));
    tick();
  });
  let before = { work: 0, pictures: 0 };
  const seen = async () => {
    const { metrics } = await devtools.send("Performance.getMetrics");
    const now = {
      work: 1_000 * metrics.find(({ name }) => name === "ScriptDuration").value,
      pictures: await page.evaluate(() => window.pictures),
    };
    const since = { work: Math.round(now.work - before.work), pictures: now.pictures - before.pictures };
    before = now;
    return since;
  };
  await seen();
  return seen;
}

describe("the module", () => {
  const bench = new Bench();
  const stamp = (token) => ({ channel: 0, epoch: 0, token });
  const fence = (token, holder) => ({ epoch: 0, token, holder, released: false });
  const steps = [];
  const ask = (...asked) => {
    const step = bench.ask(...asked);
    steps.push(step);
    return step;
  };

  it("speaks with the firmware: provisions, drives, is refused, and finds the fence after a cut", () => {
    bench.provision();
    const [a, b, operator] = ["a", "b", "operator"].map((who) => bench.speaker(who));
    const drive = (token) => ({ kind: "drive", ...stamp(token), values: [1], deadline_us: bench.now + 3e6, window_us: 3_000_000 });
    assert.equal(ask(operator, { kind: "status" }).reply.channels, 5);
    assert.deepEqual(ask(a, drive(33)).reply.fence, fence(33, "a"));
    assert.equal(bench.board.outputs, 1);
    assert.deepEqual(ask(b, { kind: "raise", ...stamp(34) }).reply, { kind: "done", fence: fence(34, "b"), window_left_us: 0 });
    assert.equal(bench.board.outputs, 0);
    assert.deepEqual(ask(a, drive(33)).reply, { kind: "refused", reason: "stale", by: fence(34, "b") });
    bench.power();
    assert.deepEqual(ask(operator, { kind: "channel", channel: 0 }).reply.fence, fence(34, "b"));
    assert.deepEqual(ask(b, { kind: "release", ...stamp(34) }).reply.fence, { ...fence(34, "b"), released: true });
    assert.deepEqual(ask(operator, { kind: "epoch", channel: 0, epoch: 3, floor: 100 }).reply.fence, {
      epoch: 3,
      token: 100,
      holder: null,
      released: false,
    });
    assert.equal(ask(a, { kind: "channel", channel: 5 }).reply.reason, "bad_channel");
  });

  it("decodes what went over the line, and proves it", () => {
    assert.ok(bench.frames.every(({ kind, said }) => kind !== "noise" && said !== null));
    const drives = bench.frames.filter(({ said }) => said.kind === "drive");
    assert.deepEqual(drives[0].said, { kind: "drive", channel: 0, token: 33, window_us: drives[0].said.window_us, values: [1] });
    assert.ok(bench.frames.some(({ kind, who, said }) => kind === "answer" && who === "a" && said.reason === "stale"));
    assert.ok(bench.frames.some(({ who, said }) => who === "blank board" && said.kind === "provision"));

    const decoder = new Decoder(new Keys(SECRETS.gate, 7, INSTANCE, randomBytes(32), randomBytes(32)));
    const client = bench.speaker("a");
    client.begin({ kind: "status" }, bench.now + 1e6);
    const { bytes } = client.poll(bench.now);
    assert.deepEqual(decoder.push(bytes), [{ kind: "request", who: "a", said: null, bytes: bytes.length }], "another's seal");
    const garbled = bytes.slice();
    garbled[20] ^= 1;
    assert.equal(bench.decoders[0].push(garbled)[0].kind, "noise");
    assert.equal(bench.decoders[0].push(Uint8Array.of(...Array(400).fill(1), 0))[0].kind, "noise");
  });

  it("gives up where nobody answers", () => {
    const client = bench.speaker("a");
    client.begin({ kind: "status" }, 1_000);
    assert.equal(client.poll(0).kind, "send");
    assert.deepEqual(client.poll(1_000), { kind: "failed", why: "no_answer" });
    assert.equal(client.poll(1_001).kind, "idle");
  });

  it("refuses what is no key, no holder and no operation", () => {
    assert.throws(() => new Keys(SECRETS.gate, 0, 1n, randomBytes(31), randomBytes(32)), /32 bytes/);
    assert.throws(() => new Keys(new Uint8Array(8), 0, 1n, randomBytes(32), randomBytes(32)), /nobody/);
    assert.throws(() => bench.speaker("no such name, at all"), Error);
    const client = bench.speaker("a");
    for (const operation of [{}, { kind: "raise", ...stamp(0) }, { kind: "raise", ...stamp(1.5) }, { kind: "channel", channel: 256 }, null])
      assert.throws(() => client.begin(operation, 1), Error);
  });

  it("declares exactly the fields that it returns", async () => {
    const types = await readFile(new URL("fencegate_gate.d.ts", PACKAGE), "utf8");
    /** The fields of each kind that a union declares. */
    const union = (name) => {
      const body = types.match(new RegExp(`export type ${name} =(.*?)\\n\\n`, "s"))[1].replace(/\/\*.*?\*\//gs, "");
      const found = new Map();
      for (const [, kinds, rest] of body.matchAll(/\{ kind: ([^;}]*);?([^}]*)\}/g))
        for (const [, kind] of kinds.matchAll(/"(\w+)"/g)) found.set(kind, ["kind", ...[...rest.matchAll(/(\w+):/g)].map(([, field]) => field)].sort());
      return found;
    };
    const [declared, said, line] = ["Step", "Reply", "LineFrame"].map(union);
    const same = (object, fields) => assert.deepEqual(Object.keys(object).sort(), fields.get(object.kind), object.kind);
    for (const step of [...steps, GateClient.blank(1n).poll(0)]) same(step, declared);
    for (const { reply } of steps) same(reply, said);
    assert.deepEqual([...new Set(steps.map(({ reply }) => reply.kind))].sort(), ["channel", "done", "refused", "status"]);
    for (const frame of bench.frames) same(frame, line);
    for (const { kind, said: answer } of bench.frames) if (kind === "answer") same(answer, said);
    const fields = [...types.match(/export interface Fence \{(.*?)^\}/ms)[1].matchAll(/^ {4}(\w+):/gm)].map(([, field]) => field);
    assert.deepEqual(Object.keys(steps[1].reply.fence), fields);
    const classes = [...types.matchAll(/^export class (\w+)/gm)].map(([, name]) => name);
    for (const name of ["Keys", "GateClient", "Decoder"]) assert.ok(classes.includes(name), name);
  });
});

describe("a gate in the page", () => {
  story("boots, plays the story, and its fence survives the cut, without the page ever waiting", "#gate", async (page) => {
    const seen = await watch(page);
    await press(page, "Boot the board");
    await told(page, /The gate is ready: boot \d+, and nobody has raised its fence/);
    const boot = await seen();
    assert.equal(page.workers().length, 1);
    assert.match(await frames(page), /blank board → gate[\s\S]*set output|set output[\s\S]*blank board/);

    await press(page, "A takes token 33 and opens");
    await lit(page, 0, true);
    await told(page, /A holds token 33/);
    assert.match(await page.locator("#fence").textContent(), /token 33 of a/);
    assert.match(await frames(page), /a → gate drive channel 0 to 1, token 33, window \d+ ms/);
    await page.locator("#lamp.lit", { hasText: "on" }).waitFor();

    await press(page, "Freeze A");
    await lit(page, 0, false); // the dead man's switch
    await press(page, "B takes token 34 and opens");
    await lit(page, 0, true);
    await told(page, /B holds token 34/);

    await press(page, "Wake A");
    await told(page, "A’s late command bounced: stale, 33 < 34.");
    assert.match(await frames(page), /gate → a refused: stale; fence: token 34 of b/);
    await lit(page, 0, true);
    assert.match(await page.locator(".holder.w0").innerText(), /fenced off/);

    await press(page, "Cut the power");
    await lit(page, 0, false);
    assert.match(await page.locator("#fence").textContent(), /unknown/);
    await press(page, "Boot again");
    await told(page, /boot \d+, and its fence still stands at 34, of B/);
    assert.match(await page.locator("#fence").textContent(), /token 34 of b/);
    await lit(page, 0, true); // B has not given up

    const { work, pictures } = await seen();
    const pace = await page.locator("#pace").textContent();
    console.log(`the page worked for ${boot.work} ms during the boot, ${work} ms and ${pictures} pictures after it; ${pace}`);
    assert.ok(boot.work < WORK && work < WORK, `the page's own scripts were at work for ${boot.work} and ${work} ms`);
    assert.ok(pictures > 100);
  });

  story("stays alive beside an emulator that has as much to do as the line brings", "#gate", async (page) => {
    await overhear(page);
    await press(page, "Boot the board");
    await told(page, /The gate is ready/);
    await press(page, "A takes token 33 and opens");
    await lit(page, 0, true);
    // What the emulator has to do without noise, on this machine: the least of some reports, the first of them of the boot.
    await page.evaluate(() => void (window.heard = []));
    const loads = () => {
      const all = window.heard.flatMap(({ kind, load }) => (kind === "pace" ? [load] : []));
      return all.length > 3 && all;
    };
    const rest = Math.min(...(await (await page.waitForFunction(loads, undefined, { timeout: 20_000 })).jsonValue()));
    const seen = await watch(page);
    for (let phase = 0; phase < PHASES; phase += 1) {
      await page.evaluate((length) => {
        window.heard = [];
        // Frames of noise, 20 bytes each.
        window.pico.postMessage({ kind: "bytes", bytes: Uint8Array.from({ length }, (_, n) => n % 20) });
      }, NOISE);
      await page.waitForTimeout(NOISE_MS);
      const busy = (rest) => window.heard.some(({ kind, load }) => kind === "pace" && load > 2 * rest);
      await page.waitForFunction(busy, rest);
      const { work, pictures } = await seen();
      console.log(`noise: the page worked for ${work} ms and made ${pictures} pictures`);
      assert.ok(work < WORK, `the page's own scripts were at work for ${work} ms`);
    }
    await lit(page, 0, true); // A is heard through it
  });

  for (const colorScheme of ["light", "dark"]) {
    const width = colorScheme === "dark" ? 360 : 1280;
    story(
      `can be read while it runs, and by keyboard: axe, ${colorScheme}, ${width} pixels`,
      "#gate",
      async (page) => {
        await button(page, "Boot the board").focus();
        await page.keyboard.press("Enter");
        await told(page, /nobody has raised its fence/);
        await button(page, "A takes token 33 and opens").focus();
        await page.keyboard.press("Space");
        await lit(page, 0, true);
        await press(page, "Freeze A");
        await press(page, "B takes token 34 and opens");
        await told(page, /B holds token 34/);
        await press(page, "Wake A");
        await told(page, /bounced: stale/);
        await page.evaluate(axe.source);
        const { violations } = await page.evaluate(() => axe.run());
        assert.deepEqual(
          violations.map(({ id, nodes }) => [id, nodes.map(({ html, any }) => [html.slice(0, 160), any[0]?.message])]),
          [],
        );
        assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= width);
        await page.screenshot({ path: join(SHOTS, `gate-runs-${width}-${colorScheme}.png`), fullPage: true });
      },
      { colorScheme, viewport: { width, height: 900 } },
    );
  }

  story("plays the story by itself, twice, and can be stopped", "#gate", async (page) => {
    await press(page, "Boot the board");
    await told(page, /The gate is ready/);
    await press(page, "Play the story");
    await told(page, "A’s late command bounced: stale, 33 < 34.");
    await told(page, /its fence still stands at 34, of B/);
    await press(page, "Play the story");
    await told(page, /A holds token 35/);
    await press(page, "Stop the story");
    await press(page, "Freeze A");
    await press(page, "Wake A");
  });

  it("stays off where the power is cut while its firmware loads", async (t) => {
    let load;
    const loads = new Promise((done) => (load = done));
    const { page, trouble } = await visit(t, DIST, { before: (name) => name.endsWith(".uf2") && loads });
    await page.getByRole("link", { name: "Try a gate" }).click();
    await button(page, "Boot the board").waitFor();
    await overhear(page);
    const heard = (kind) => page.waitForFunction((kind) => window.heard.some((message) => message.kind === kind), kind);
    await press(page, "Boot the board");
    await heard("opened");
    await told(page, "The board boots, blank");
    await press(page, "Cut the power");
    await heard("off");
    load();
    await page.evaluate(() => new Promise((turn) => setTimeout(turn, 1_000)));
    assert.ok(!(await page.evaluate(() => window.heard)).some(({ kind }) => kind === "up"), "nothing has power");
    await press(page, "Boot again");
    await told(page, /The gate is ready/);
    assert.equal((await page.evaluate(() => window.heard)).filter(({ kind }) => kind === "up").length, 1);
    assert.deepEqual(trouble, []);
  });

  story("lets a holder that was frozen when the emulator stopped take a token of the next boot", "#gate", async (page) => {
    await overhear(page);
    await press(page, "Boot the board");
    await told(page, /The gate is ready/);
    await press(page, "A takes token 33 and opens");
    await told(page, /A holds token 33/);
    await press(page, "Freeze A");
    await told(page, /A is frozen/);
    await page.evaluate(() => window.pico.postMessage({ kind: "cut" }));
    await says(page, { kind: "failed", why: "something that is not modelled" });
    await told(page, "The emulator stopped: something that is not modelled.");
    await press(page, "Boot the board");
    await told(page, /its fence still stands at 33, of A/);
    await press(page, "A takes token 34 and opens");
    await told(page, /A holds token 34/);
    await lit(page, 0, true);
  });

  story("shows that the firmware was reset, in its place on the line", "#gate", async (page) => {
    await overhear(page);
    await press(page, "Boot the board");
    await told(page, /The gate is ready/);
    await says(page, { kind: "reset", why: "watchdog" });
    await page.locator("#frames li").first().filter({ hasText: /the board was reset by its watchdog$/ }).waitFor();
  });

  story("is left while a holder waits, and nothing goes wrong behind it", "#gate", async (page) => {
    await press(page, "Boot the board");
    await told(page, /The gate is ready/);
    await stopClock(page); // A's lease is not over before B has asked for it.
    await press(page, "A takes token 33 and opens");
    await told(page, /A holds token 33/);
    await press(page, "Freeze A");
    await press(page, "B takes token 34 and opens");
    await told(page, /B waits for the lock service/);
    await page.getByRole("link", { name: "Size a lease" }).click();
    await page.locator("#window_us").waitFor();
    await page.evaluate(() => new Promise((turn) => setTimeout(turn, 200)));
  });

  story("keeps the board while no tab is open, for one tab at a time, until it is thrown away", "#gate", async (page) => {
    const open = async () => {
      const next = await page.context().newPage();
      await next.goto(page.url());
      return next;
    };
    await press(page, "Boot the board");
    await told(page, /nobody has raised its fence/);
    await press(page, "A takes token 33 and opens");
    await told(page, /A holds token 33/);
    const another = await open();
    await press(another, "Boot the board");
    await told(another, /nobody has raised its fence/);
    await another.locator("#kept", { hasText: "keeps nothing of the board (another tab of this browser runs it)" }).waitFor();
    await press(page, "Freeze A");
    await press(page, "B takes token 34 and opens");
    await told(page, /B holds token 34/);
    // Answered is kept: the tab is closed in the same instant.
    await Promise.all([page.close(), another.close()]);

    const later = await open();
    await told(later, /board of your last visit is still here/);
    await press(later, "Boot the board");
    await told(later, /boot [2-9]\d*, and its fence still stands at 34, of B/);
    await later.locator("#kept", { hasText: "are kept in this browser" }).waitFor();
    await press(later, "A takes token 35 and opens");
    await told(later, /A holds token 35/);
    await press(later, "Cut the power");
    await press(later, "Take a new board");
    await told(later, /thrown away/);
    await press(later, "Boot the board");
    await told(later, /boot \d+, and nobody has raised its fence/);
  });

  story("says that nothing is kept where the browser refuses, and works all the same", "#size", async (page) => {
    // A database of a later version, which no page of this one may open.
    await page.evaluate(() => new Promise((done) => (indexedDB.open("fencegate-gate", 2).onsuccess = ({ target }) => done(target.result.close()))));
    await page.getByRole("link", { name: "Try a gate" }).click();
    await press(page, "Boot the board");
    await told(page, /nobody has raised its fence/);
    await page.locator("#kept", { hasText: /keeps nothing of the board \(.*version.*\): its fence is gone when this view is closed/ }).waitFor();
    await press(page, "A takes token 33 and opens");
    await told(page, /A holds token 33/);
    await press(page, "Cut the power");
    await press(page, "Boot again");
    await told(page, /its fence still stands at 33, of A/);
  });

  it("is not loaded before it is opened, and is there offline afterwards", async (t) => {
    const { page, trouble, requests, url } = await visit(t, DIST);
    await page.locator("#window_us").waitFor();
    await page.evaluate(() => navigator.serviceWorker.ready);
    await page.waitForFunction(() => navigator.serviceWorker.controller);
    const kept = () =>
      page.evaluate(async () => {
        const keys = await (await caches.open((await caches.keys())[0])).keys();
        return keys.map(({ url }) => url.split("/").at(-1)).filter((name) => /uf2|worker-|view-|gate_gate/.test(name));
      });
    assert.deepEqual(await kept(), []);
    assert.deepEqual(requests.filter((asked) => /uf2|worker-|view-|gate_gate/.test(asked)), []);
    await page.getByRole("link", { name: "Try a gate" }).click();
    await button(page, "Boot the board").waitFor();
    for (let tries = 0; (await kept()).length < 5; tries += 1) {
      assert.ok(tries < 50, "what it needs is kept");
      await page.waitForTimeout(100);
    }
    await page.context().setOffline(true);
    await page.goto(`${url}#size`);
    await page.reload();
    await page.getByRole("link", { name: "Try a gate" }).click();
    await press(page, "Boot the board");
    await told(page, /The gate is ready/);
    assert.deepEqual(trouble, []);
  });

  it("works on a sub-path", async (t) => {
    const { page, trouble } = await visit(t, DIST, { base: "/some/where/" });
    await page.getByRole("link", { name: "Try a gate" }).click();
    await press(page, "Boot the board");
    await told(page, /The gate is ready/);
    assert.deepEqual(trouble, []);
  });
});
