// What `cargo xtask bench web` records: bytes of the module and of the page, the time to the first number and to each
// next one in a real browser, `plan` through the module beside the same arithmetic in plain JavaScript, and how fast the
// emulated Pico runs in the page. Prints the rows of a table as JSON.

import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { open, launch } from "./browser.mjs";
import { PACKAGE, plan } from "./module.mjs";
import { serve } from "./server.mjs";

const DIST = new URL("../../web/dist/", import.meta.url);
const VISITS = 20;
const ENTRIES = 300;
const CALLS = 100_000;

const rows = [];
const row = (what, figure) => rows.push([what, figure]);
const grouped = (n) => Math.round(n).toLocaleString("en-US");

/** Bytes raw, by gzip -9 and by brotli -11, each file by itself, as a server sends them. */
async function bytes(files) {
  const all = await Promise.all(files.map((file) => readFile(file)));
  const sum = (size) => grouped(all.reduce((total, content) => total + size(content), 0));
  return `${sum((content) => content.length)} / ${sum((content) => gzipSync(content, { level: 9 }).length)} / ${sum((content) => brotliCompressSync(content).length)}`;
}

const quantile = (values, q) => values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * q))];
const ms = (values) => `${quantile(values, 0.5).toFixed(1)} ms, 95 % within ${quantile(values, 0.95).toFixed(1)} ms`;

/** The plan's arithmetic as one would write it in JavaScript; exact, since BigInt. */
function plain({ ttl_us: t, drift_ppb: ppb, rtt_us: d, attempts: n, work_us: w, poll_us: poll }) {
  const G = 1_000_000_000n;
  const up = (a, b) => (a + b - 1n) / b;
  const less = (a, b) => (a > b ? a - b : 0n);
  const margin = up(t * ppb, G);
  const window = less(t, margin);
  const [c, even] = [t / 3n, t / n];
  const sustainable = c > d;
  const h = even + d <= c ? even : sustainable ? c - d : even;
  return {
    margin_us: margin,
    window_us: window,
    safe: window > 0n,
    heartbeat_us: h,
    sustainable,
    renewals_in_window: less(less(window, d), 1n) / h,
    cancel_after_us: c,
    misses_before_cancel: sustainable ? less((c - d) / h, 1n) : 0n,
    stall_tolerance_us: less(window, h + d),
    work_deadline_us: less(window, w),
    takeover_us: up(t * G, G - ppb) + 2n * d + poll,
    renewals_per_hour: 3_600_000_000n / h,
  };
}

function calls() {
  const input = {
    ttl_us: 10_000_000n,
    drift_ppb: 1_000_000n,
    rtt_us: 50_000n,
    attempts: 5n,
    work_us: 2_000_000n,
    poll_us: 1_000_000n,
  };
  const [ours, theirs] = [plan(input), plain(input)];
  for (const [field, value] of Object.entries(theirs)) assert.equal(String(ours[field]), String(value), field);
  const time = (call) => {
    let last;
    const begin = performance.now();
    for (let k = 0; k < CALLS; k += 1) last = call({ ...input, ttl_us: 10_000_000n + BigInt(k) });
    assert.ok(last.safe);
    return CALLS / ((performance.now() - begin) / 1_000);
  };
  for (const call of [plan, plain]) time(call); // warm
  row("`plan` through the module, calls a second", grouped(time(plan)));
  row("the same arithmetic in plain JavaScript with BigInt, calls a second", grouped(time(plain)));
}

async function browser() {
  const [server, chromium] = await Promise.all([serve(DIST), launch()]);
  const first = [];
  for (let visit = 0; visit < VISITS; visit += 1) {
    const { page, close } = await open(chromium, "about:blank", {});
    await page.addInitScript(() => {
      new MutationObserver(() => {
        const value = document.querySelector("#window_us data")?.value;
        if (value === "9990000") globalThis.firstNumber ??= performance.now();
      }).observe(document, { childList: true, subtree: true });
    });
    await page.goto(server.url);
    await page.locator("#window_us").waitFor();
    first.push(await page.evaluate(() => globalThis.firstNumber));
    await close();
  }
  row("from navigation to the first correct number, nothing cached", ms(first));
  const { page, close } = await open(chromium, server.url);
  await page.locator("#window_us").waitFor();
  await page.waitForTimeout(1_000);
  const { script, painted } = await page.evaluate(async (entries) => {
    const input = document.getElementById("ttl");
    const [script, painted] = [[], []];
    for (let k = 0; k < entries; k += 1) {
      const ttl = 10_000_000 + k * 1_000;
      await new Promise((done) => setTimeout(done, 20));
      await new Promise((done) => requestAnimationFrame(done));
      const begin = performance.now();
      input.value = `${ttl}us`;
      input.dispatchEvent(new Event("input", { bubbles: true }));
      const wanted = String(ttl - Math.ceil(ttl / 1_000));
      while (document.querySelector("#window_us data").value !== wanted) await Promise.resolve();
      script.push(performance.now() - begin);
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
      painted.push(performance.now() - begin);
    }
    return { script, painted };
  }, ENTRIES);
  row("from an input event to the changed page, script", ms(script));
  row("from an input event to the painted result, the wait for the next frame included", ms(painted));
  await close();
  await chromium.close();
  await server.close();
}

/** For how long the emulated Pico is watched in each of its states, in ms. */
const WATCHED = 8_000;

/** The Pico in the page's worker. It says each second how far it has come, and for how long it had to work for that. */
async function emulator() {
  const [server, chromium] = await Promise.all([serve(DIST), launch()]);
  const { page, close } = await open(chromium, "about:blank", {});
  await page.addInitScript(() => {
    globalThis.paces = [];
    globalThis.longest = 0;
    const Plain = Worker;
    globalThis.Worker = class extends Plain {
      constructor(...what) {
        super(...what);
        globalThis.pico = this;
        this.addEventListener("message", ({ data }) => data.kind === "pace" && globalThis.paces.push(data));
      }
    };
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) globalThis.longest = Math.max(globalThis.longest, duration);
    }).observe({ type: "longtask" });
  });
  await page.goto(`${server.url}#gate`);
  const press = (name) => page.getByRole("button", { name, exact: true }).click();
  const told = (words) => page.locator("#told", { hasText: words }).waitFor({ timeout: 60_000 });
  /** What the worker says from now on, in the mean. */
  const watched = async (what) => {
    // Behind the report in which the time before is.
    await page.waitForTimeout(1_100);
    await page.evaluate(() => void globalThis.paces.splice(0));
    await page.waitForTimeout(WATCHED);
    const paces = await page.evaluate(() => globalThis.paces);
    const mean = (field) => paces.reduce((sum, pace) => sum + pace[field], 0) / paces.length;
    const [speed, load] = [mean("speed"), mean("load")];
    const percent = (n) => `${(100 * n).toFixed(1)} %`;
    row(`${what}: its time beside real time / its worker at work / what it could do`, `${percent(speed)} / ${percent(load)} / ${(speed / load).toFixed(1)} times real time`);
  };
  // What loads the page and the view is not the emulator's.
  await page.getByRole("button", { name: "Boot the board", exact: true }).waitFor();
  await page.waitForTimeout(1_000);
  await page.evaluate(() => void (globalThis.longest = 0));
  const begun = performance.now();
  await press("Boot the board");
  await told(/The gate is ready/);
  row("the emulated Pico in the page, from the button to a gate, provisioned", `${Math.round(performance.now() - begun)} ms`);
  await watched("the same, idle");
  await press("A takes token 33 and opens");
  await told(/A holds token 33/);
  await watched("the same, driven once a second");
  // As much as the line carries in 12 s; frames of noise, 20 bytes each.
  const noise = page.evaluate(() => globalThis.pico.postMessage({ kind: "bytes", bytes: Uint8Array.from({ length: 138_000 }, (_, n) => n % 20) }));
  await Promise.all([noise, watched("the same, and noise at line speed")]);
  const longest = Math.round(await page.evaluate(() => globalThis.longest));
  row("longest task of the page's own thread in all of that", longest ? `${longest} ms` : "none of 50 ms or more");
  await close();
  await chromium.close();
  await server.close();
}

const page = (await readdir(DIST, { recursive: true, withFileTypes: true }))
  .filter((entry) => entry.isFile())
  .map((entry) => `${entry.parentPath}/${entry.name}`);
row("module `.wasm`, bytes raw / gzip / brotli", await bytes([new URL("fencegate_bg.wasm", PACKAGE)]));
/** What the gate's view brings along, which is not loaded before that is opened. */
const later = page.filter((file) => /\.uf2$|\/(worker|view)-|gate_gate/.test(file));
const first = page.filter((file) => !later.includes(file));
row("everything that the page loads at first, bytes raw / gzip / brotli", await bytes(first));
row("of that scripts and style, bytes raw / gzip / brotli", await bytes(first.filter((file) => /\.(js|css)$/.test(file))));
row("what the gate's view brings along when it is opened, firmware included, bytes raw / gzip / brotli", await bytes(later));
calls();
await browser();
await emulator();
console.log(JSON.stringify(rows));
