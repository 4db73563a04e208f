// A browser, a server and the built page: what every test of the page begins with.

import assert from "node:assert/strict";
import { access, mkdir } from "node:fs/promises";
import { resolve } from "node:path";
import { after, before, it } from "node:test";
import { fileURLToPath } from "node:url";
import { launch, open } from "./browser.mjs";
import { serve } from "./server.mjs";

export const DIST = new URL("../../web/dist/", import.meta.url);
await access(new URL("index.html", DIST)).catch(() => {
  throw new Error("no page in web/dist: run `cargo xtask web` first");
});

const root = fileURLToPath(new URL("../../", import.meta.url));
/** Where screenshots are kept. */
export const SHOTS = resolve(root, process.env.CARGO_TARGET_DIR ?? "target", "page");

/** Stories share nothing but the browser and the server. */
export const AT_ONCE = { concurrency: 3 };

/** What shows that the page has begun. */
const BEGUN = "h1 + *, [role=alert]";

/** Starts a browser and a server for the file that calls it. */
export function setting() {
  const set = {};
  before(async () => {
    [set.browser, set.server] = await Promise.all([launch(), serve(DIST), mkdir(SHOTS, { recursive: true })]);
  });
  after(async () => {
    await set.browser?.close();
    await set.server?.close();
  });

  /**
   * Tells a story on a fresh page. Whatever was said on its console, went wrong unseen, or was asked of another origin is
   * the end of it.
   */
  set.story = (name, hash, tell, options = {}) =>
    it(name, async () => {
      const { page, trouble, requests, close } = await open(set.browser, set.server.url + hash, options);
      try {
        await page.locator("main:not(.loading)").locator(BEGUN).first().waitFor();
        await tell(page, requests);
        assert.deepEqual(trouble, []);
        const origin = new URL(set.server.url).origin;
        assert.deepEqual(
          requests.filter((url) => !url.startsWith(origin) && !url.startsWith("blob:")),
          [],
        );
      } finally {
        await close();
      }
    });

  /** A fresh page on a server of its own; both are gone after the test, however it ends. */
  set.visit = async (t, folder, options) => {
    const own = await serve(folder, options);
    t.after(own.close);
    const opened = await open(set.browser, own.url);
    t.after(opened.close);
    return { ...opened, url: own.url };
  };
  return set;
}

/** The figures on the page, exact. */
export const figures = (page) =>
  page.evaluate(() =>
    Object.fromEntries(
      [...document.querySelectorAll("#figures-title + table tbody tr")].map((row) => [row.id, row.querySelector("data").value]),
    ),
  );

/** Those of them that a plan of the module or of the command has. */
export const same = (shown, answer) => {
  for (const [field, value] of Object.entries(shown)) assert.equal(value, String(answer[field]), field);
  assert.ok(Object.keys(shown).length >= 10);
};

export const field = (page, name) => page.getByRole("textbox", { name });

/** The sentence at a field. */
export const sentence = (page, id) => page.locator(`#${id}-error`).textContent();

/** What a reader of the screen hears at a field: the texts that `aria-describedby` points to. */
export const described = (page, id) =>
  page.locator(`#${id}`).evaluate((input) =>
    input
      .getAttribute("aria-describedby")
      .split(" ")
      .map((of) => document.getElementById(of).textContent)
      .join(" "),
  );

/** Until the page shows what was asked for last. */
export const settled = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0))));

export async function assertNothingStrange(page) {
  assert.doesNotMatch(await page.locator("body").innerText(), /NaN|undefined|Infinity|\[object/);
}

/** Moves every slider of the form by keyboard and by mouse, and its field with it; how many there are. */
export async function byHand(page) {
  const sliders = page.locator(".settings input[type=range]");
  const count = await sliders.count();
  for (let at = 0; at < count; at += 1) {
    const slider = sliders.nth(at);
    const entry = slider.locator("xpath=preceding-sibling::input");
    const typed = await entry.inputValue();
    await slider.focus();
    await page.keyboard.press("ArrowRight");
    const stepped = await entry.inputValue();
    assert.notEqual(stepped, typed, `slider ${at}`);
    assert.equal(await slider.getAttribute("aria-valuetext"), stepped);
    const { width, height } = await slider.boundingBox();
    await slider.click({ position: { x: width / 3, y: height / 2 } });
    assert.notEqual(await entry.inputValue(), "", `slider ${at}`);
    await assertNothingStrange(page);
    await entry.fill(typed);
  }
  return count;
}

/** The content of what a button saves. */
export async function saved(page, name) {
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name, exact: true }).first().click(),
  ]);
  const chunks = [];
  for await (const chunk of await download.createReadStream()) chunks.push(chunk);
  return { name: download.suggestedFilename(), content: Buffer.concat(chunks) };
}

/** What a saved drawing, opened by itself, would not paint as the page does: each property of each element. */
export const repainted = (page, drawing, svg) =>
  page.evaluate(
    ([drawing, svg]) => {
      const paint = /^(fill|stroke|paint-order|opacity|font-(size|weight|family)|text-anchor|marker|dominant|letter-spacing|word-spacing)/;
      const frame = document.body.appendChild(document.createElement("iframe"));
      const alone = frame.contentDocument;
      alone.body.append(alone.importNode(new DOMParser().parseFromString(svg, "image/svg+xml").documentElement, true));
      const [from, to] = [document.querySelector(drawing), alone.querySelector("svg")].map((root) => [...root.querySelectorAll("*")]);
      const all = from.flatMap((element, at) => {
        const [here, there] = [getComputedStyle(element), frame.contentWindow.getComputedStyle(to[at + 1])]; // the paper is first
        return [...here]
          .filter((name) => paint.test(name) && here.getPropertyValue(name) !== there.getPropertyValue(name))
          .map((name) => `${element.tagName} ${element.textContent} ${name}: ${here.getPropertyValue(name)}, ${there.getPropertyValue(name)}`);
      });
      frame.remove();
      return all;
    },
    [drawing, svg],
  );
