// The fourth view: the firmware itself in a worker of the page, and the story against it.

import axe from "axe-core";
import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, it } from "node:test";
import { open } from "./browser.mjs";
import { DIST, setting, settled, SHOTS } from "./page.mjs";

const set = setting();
const { story, visit } = set;

/** A page that slept too long between two pictures would be one that the emulator blocks. */
const LONGEST_TASK = 200;

const button = (page, name) => page.getByRole("button", { name, exact: true });
const press = (page, name) => button(page, name).click({ timeout: 20_000 });
const told = (page, words) => page.locator("#told", { hasText: words }).waitFor({ timeout: 30_000 });
const lit = (page, n, yes) => page.locator(`#pin-${n}${yes ? ".lit" : ":not(.lit)"}`).waitFor({ timeout: 10_000 });
const frames = (page) => page.locator("#frames").innerText();

/** Counts pictures and tasks that took long, from now on. */
const watch = (page) =>
  page.evaluate(() => {
    window.seen = { longest: 0, pictures: 0, gap: 0 };
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) window.seen.longest = Math.max(window.seen.longest, duration);
    }).observe({ type: "longtask" });
    let before = performance.now();
    const tick = (now) => {
      window.seen.pictures += 1;
      window.seen.gap = Math.max(window.seen.gap, now - before);
      before = now;
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  });

describe("a gate in the page", () => {
  story("boots, plays the story, and its fence survives the cut, without the page ever waiting", "#gate", async (page) => {
    await watch(page);
    const begun = Date.now();
    await press(page, "Boot the board");
    await told(page, /The gate is ready: boot \d+, and nobody has raised its fence/);
    const ready = Date.now() - begun;
    assert.match(await frames(page), /blank board → gate[\s\S]*set output|set output[\s\S]*blank board/);

    await press(page, "A takes token 33 and opens");
    await lit(page, 0, true);
    await told(page, /A holds token 33/);
    assert.match(await page.locator("#fence").textContent(), /token 33 of a/);
    assert.match(await frames(page), /a → gate drive channel 0 to 1, token 33, window \d+ ms/);

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

    const { longest, pictures, gap } = await page.evaluate(() => window.seen);
    const pace = await page.locator("#pace").textContent();
    console.log(`ready after ${ready} ms; longest task ${longest} ms; ${pictures} pictures, ${Math.round(gap)} ms apart at most; ${pace}`);
    assert.ok(longest < LONGEST_TASK, `a task of ${longest} ms`);
    assert.ok(pictures > 100);
  });
});
