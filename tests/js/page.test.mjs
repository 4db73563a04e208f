// The built page in a real browser, served from 127.0.0.1 only.

import axe from "axe-core";
import assert from "node:assert/strict";
import { access } from "node:fs/promises";
import { after, before, describe, it } from "node:test";
import { launch, open } from "./browser.mjs";
import { PACKAGE, plan } from "./module.mjs";
import { example } from "./readme.mjs";
import { serve } from "./server.mjs";

const DIST = new URL("../../web/dist/", import.meta.url);
await access(new URL("index.html", DIST)).catch(() => {
  throw new Error("no page in web/dist: run `cargo xtask web` first");
});

const FIGURES = ["window_us", "margin_us", "heartbeat_us", "cancel_after_us", "work_deadline_us", "takeover_us"];
const DEFAULTS = { ttl_us: 10_000_000, drift_ppb: 1_000_000, rtt_us: 5_000, start: "send", work_us: 200_000 };

/** Stories share nothing but the browser and the server. */
const AT_ONCE = { concurrency: 4 };

let browser, server;
before(async () => {
  [browser, server] = await Promise.all([launch(), serve(DIST)]);
});
after(async () => {
  await browser?.close();
  await server?.close();
});

/** Tells a story on a fresh page; whatever was said on its console, or went wrong unseen, is the end of it. */
function story(name, tell, { hash = "", ...options } = {}) {
  it(name, async () => {
    const { page, trouble, requests, close } = await open(browser, server.url + hash, options);
    try {
      await page.locator("#window_us, [aria-invalid=true]").first().waitFor();
      await tell(page, requests);
      assert.deepEqual(trouble, []);
    } finally {
      await close();
    }
  });
}

/** A fresh page on a server of its own; both are gone after the test, however it ends. */
async function visit(t, folder, options) {
  const own = await serve(folder, options);
  t.after(own.close);
  const opened = await open(browser, own.url);
  t.after(opened.close);
  return opened;
}

/** The figures on the page, exact. */
const figures = (page) =>
  page.evaluate((names) => Object.fromEntries(names.map((n) => [n, document.querySelector(`#${n} data`).value])), FIGURES);

/** The same of the module, asked here under Node. */
const answer = (input) => {
  const planned = plan(input);
  return Object.fromEntries(FIGURES.map((name) => [name, String(planned[name])]));
};

const field = (page, name) => page.getByRole("textbox", { name });

const sentence = (page, id) => page.locator(`#${id}-error`).textContent();

/** What a reader of the screen hears at a field: the texts that `aria-describedby` points to. */
const described = (page, name) =>
  field(page, name).evaluate((input) =>
    input.getAttribute("aria-describedby").split(" ").map((id) => document.getElementById(id).textContent).join(" "),
  );

async function assertNoAnswer(page) {
  assert.equal(await page.locator("#headline").textContent(), "—");
  assert.equal(await page.locator("#figures").isVisible(), false, "no figures");
  assert.equal(await page.locator("#picture").isVisible(), false, "no picture");
  assert.doesNotMatch(await page.locator("body").innerText(), /NaN|undefined|Infinity/);
}

describe("the calculator", AT_ONCE, () => {
  story("opens with a lease of ten seconds and the module's own figures for it", async (page) => {
    assert.deepEqual(await figures(page), answer(DEFAULTS));
    assert.equal((await page.locator("#headline").textContent()).replace(/\s/g, " "), "9.99 s");
    assert.match(await page.locator("body").innerText(), /not a certified safety function/);
  });

  story("answers anew when the TTL changes", async (page) => {
    await field(page, "TTL").fill("1m30s");
    assert.deepEqual(await figures(page), answer({ ...DEFAULTS, ttl_us: 90_000_000 }));
    await field(page, "TTL").fill("1.5s");
    assert.deepEqual(await figures(page), answer({ ...DEFAULTS, ttl_us: 1_500_000 }));
  });

  story("takes every other input into account", async (page) => {
    await field(page, "Holder").fill("1%");
    await field(page, "Coordinator").fill("20");
    await field(page, "Round trip").fill("20 ms");
    await page.getByLabel("at the reply").check();
    await field(page, "Work time").fill("");
    const input = { ttl_us: 10_000_000, drift_ppb: 10_020_000, rtt_us: 20_000, start: "grant" };
    assert.deepEqual(await figures(page), answer(input));
  });

  story("rounds what is typed to the safe side: the TTL down, everything else up", async (page) => {
    await field(page, "TTL").fill("9999999999ns");
    await field(page, "Holder").fill("0.5ppb");
    await field(page, "Coordinator").fill("0");
    await field(page, "Round trip").fill("1ns");
    await field(page, "Work time").fill("0.0000001s");
    const input = { ttl_us: 9_999_999, drift_ppb: 1, rtt_us: 1, work_us: 1 };
    assert.deepEqual(await figures(page), answer(input));
  });

  story("is exact beyond what a JavaScript number can hold", async (page) => {
    for (const name of ["Holder", "Coordinator", "Round trip", "Work time"]) await field(page, name).fill("0");
    await field(page, "TTL").fill("9223372036854775807us");
    assert.equal((await figures(page)).window_us, "9223372036854775807");
  });

  story("says so where no window is left", async (page) => {
    await page.getByLabel("at the reply").check();
    await field(page, "Round trip").fill("10s");
    assert.equal((await figures(page)).window_us, "0");
    assert.match(await page.locator("#warnings").innerText(), /no moment at which this lease may be relied on/);
  });
});

describe("wrong input", AT_ONCE, () => {
  story("a TTL of zero: the module's sentence at the field, and no figure anywhere", async (page) => {
    await field(page, "TTL").fill("0s");
    assert.match(await sentence(page, "ttl"), /^A TTL is at least 1 µs.*\.$/);
    assert.equal(await field(page, "TTL").getAttribute("aria-invalid"), "true");
    assert.ok((await described(page, "TTL")).includes(await sentence(page, "ttl")));
    await assertNoAnswer(page);
  });

  story("a drift of 100 %: one sentence, heard at both clocks", async (page) => {
    await field(page, "Holder").fill("100%");
    assert.match(await sentence(page, "drift"), /^A drift must stay below .*100 %.*\.$/);
    for (const clock of ["Holder", "Coordinator"]) {
      assert.equal(await field(page, clock).getAttribute("aria-invalid"), "true");
      assert.ok((await described(page, clock)).includes(await sentence(page, "drift")));
    }
    await assertNoAnswer(page);
  });

  story("an answer that does not fit is blamed on the TTL", async (page) => {
    await field(page, "TTL").fill("9223372036854775807us");
    assert.match(await sentence(page, "ttl"), /does not fit/);
    await field(page, "TTL").fill("99999999999999999999d");
    assert.match(await sentence(page, "ttl"), /18446744073709551615/);
    await assertNoAnswer(page);
  });

  for (const typed of ["10", "", "-5s", "1,5s", "ten seconds", "1e3s", "NaN", "s"]) {
    story(`a TTL of “${typed}” is told how to write it`, async (page) => {
      await field(page, "TTL").fill(typed);
      assert.match(await sentence(page, "ttl"), /^(A unit is missing|This is no duration): .*[.?]$/);
      await assertNoAnswer(page);
    });
  }

  story("is forgotten once it is right again", async (page) => {
    await field(page, "Round trip").fill("5 parsecs");
    await assertNoAnswer(page);
    await field(page, "Round trip").fill("5ms");
    assert.equal(await sentence(page, "rtt"), "");
    assert.equal(await page.locator("[aria-invalid=true]").count(), 0);
    assert.deepEqual(await figures(page), answer(DEFAULTS));
  });
});

describe("the address", AT_ONCE, () => {
  it("holds the settings, and another page opened there has the same answer", async (t) => {
    const { page } = await visit(t, DIST);
    await field(page, "TTL").fill("1m 30s");
    await field(page, "Holder").fill("0.1%");
    await page.getByLabel("at the reply").check();
    await page.waitForURL(/start=grant/);
    const shared = await open(browser, page.url());
    t.after(shared.close);
    await shared.page.locator("#window_us").waitFor();
    assert.deepEqual(await figures(shared.page), await figures(page));
    assert.equal(await shared.page.getByLabel("at the reply").isChecked(), true);
  });

  story(
    "may say too much or too little",
    async (page) => {
      assert.deepEqual(await figures(page), answer({ ...DEFAULTS, ttl_us: 20_000_000 }));
      await page.evaluate(() => (location.hash = "#ttl=0s"));
      await page.locator("#ttl[aria-invalid=true]").waitFor();
    },
    { hash: "#ttl=20s&start=sideways&colour=red" },
  );
});

describe("everybody", AT_ONCE, () => {
  story("can work it with the keyboard alone", async (page) => {
    const focused = () => page.evaluate(() => document.activeElement.name || document.activeElement.id);
    await page.keyboard.press("Tab");
    assert.equal(await focused(), "ttl");
    await page.keyboard.type("20s"); // arriving by Tab selects what is there
    for (const next of ["holder", "coordinator", "rtt", "start"]) {
      await page.keyboard.press("Tab");
      assert.equal(await focused(), next);
    }
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Tab");
    assert.equal(await focused(), "work");
    await page.keyboard.press("Enter");
    assert.deepEqual(await figures(page), answer({ ...DEFAULTS, ttl_us: 20_000_000, start: "grant" }));
  });

  story("hears the new answer once the typing stops", async (page) => {
    await field(page, "TTL").fill("20s");
    const said = page.getByRole("status").filter({ hasText: /Window 19\.98\ss, margin 20\sms/ });
    await said.waitFor({ state: "attached", timeout: 5_000 });
  });

  story("finds the picture's figures in a table", async (page) => {
    assert.match(await page.getByRole("img").getAttribute("aria-label"), /table/);
    assert.equal(await page.getByRole("table").getByRole("row").count(), FIGURES.length + 1);
    assert.equal(await page.getByRole("row", { name: /^Takeover/ }).getByRole("cell").count(), 2);
  });

  const leases = ["", "#ttl=9223372036854775807us&holder=0&coordinator=0&rtt=0", "#ttl=100ms&rtt=100ms&start=grant", "#ttl=0"];
  for (const hash of leases) {
    story(
      `sees all of it on a telephone (${hash || "defaults"})`,
      async (page) => {
        const [content, screen] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
        assert.equal(screen, 360);
        assert.ok(content <= screen, `${content} pixels on a screen of ${screen}`);
      },
      { hash, viewport: { width: 360, height: 740 } },
    );
  }

  for (const colorScheme of ["light", "dark"]) {
    for (const [width, hash] of [[1280, ""], [360, ""], [1280, "#ttl=0&holder=x"], [1280, "#ttl=100ms&rtt=100ms&start=grant"]]) {
      story(
        `can read it: axe, ${colorScheme}, ${width} pixels${hash && `, ${hash}`}`,
        async (page) => {
          await page.evaluate(axe.source);
          const { violations, passes } = await page.evaluate(() => axe.run());
          assert.deepEqual(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]), []);
          assert.ok(passes.some(({ id }) => id === "color-contrast"), "contrast was looked at");
        },
        { hash, colorScheme, viewport: { width, height: 900 } },
      );
    }
  }
});

describe("the picture", AT_ONCE, () => {
  story("is to scale: the window's bar ends where the window ends", async (page) => {
    const drawn = await page.evaluate(() => {
      const [lease, act, finish] = ["lease", "act", "finish"].map((c) => document.querySelector(`svg .${c}`).getBBox());
      return { work: act.width / lease.width, window: (finish.x + finish.width - act.x) / lease.width };
    });
    assert.ok(Math.abs(drawn.work - 9.79 / 10) < 0.001, `work ends at ${drawn.work}`);
    assert.ok(Math.abs(drawn.window - 9.99 / 10) < 0.001, `the window ends at ${drawn.window}`);
  });

  story("shows the margin larger where it is too narrow to be seen", async (page) => {
    const titles = await page.locator("svg .title").allTextContents();
    assert.match(titles.join(), /The end, 1\d\d times larger/);
  });

  for (const hash of ["", "#ttl=30s&holder=83333&rtt=20ms&start=grant&work=2s", "#ttl=10s&rtt=3.3s&start=grant"]) {
    for (const width of [1280, 360]) {
      story(
        `has no label on top of another, ${width} pixels (${hash || "defaults"})`,
        async (page) => {
          const overlaps = await page.evaluate(() => {
            const labels = [...document.querySelectorAll("svg text")].map((t) => [t.textContent, t.getBoundingClientRect()]);
            const meet = (a, b) => a.left < b.right && b.left < a.right && a.top + 3 < b.bottom && b.top + 3 < a.bottom;
            return labels.flatMap(([a, box], i) => labels.slice(i + 1).filter(([, o]) => meet(box, o)).map(([b]) => [a, b]));
          });
          assert.deepEqual(overlaps, []);
        },
        { hash, viewport: { width, height: 900 } },
      );
    }
  }
});

describe("the page's surroundings", AT_ONCE, () => {
  story("nothing is asked of anybody but the server that it came from", async (page, requests) => {
    await field(page, "TTL").fill("20s");
    assert.ok(requests.some((url) => url.endsWith(".wasm")), "the module was loaded");
    assert.deepEqual(requests.filter((url) => !url.startsWith(server.url)), []);
  });

  story("once loaded it needs no network", async (page) => {
    await page.waitForLoadState("networkidle"); // the icon, too
    await page.context().setOffline(true);
    await field(page, "TTL").fill("20s");
    await page.waitForURL(/ttl=20s/);
    assert.deepEqual(await figures(page), answer({ ...DEFAULTS, ttl_us: 20_000_000 }));
  });

  it("works on a sub-path", async (t) => {
    const { page, trouble } = await visit(t, DIST, { base: "/some/where/" });
    await page.locator("#window_us").waitFor();
    assert.deepEqual(await figures(page), answer(DEFAULTS));
    assert.deepEqual(trouble, []);
  });

  it("carries its policy itself, for servers that send none", async (t) => {
    const { page, trouble } = await visit(t, DIST, { policy: "" });
    await page.locator("#window_us").waitFor();
    assert.deepEqual(trouble, []);
    await page.evaluate(() => document.body.append(Object.assign(document.createElement("script"), { text: "pwned = 1" })));
    assert.equal(await page.evaluate(() => "pwned" in window), false, "an inline script does not run");
    assert.match(trouble.join(), /Content Security Policy/);
  });

  it("the module's README tells the truth about browsers", async (t) => {
    const pages = { "index.html": example("html"), "favicon.ico": "" };
    const { page, trouble } = await visit(t, PACKAGE, { pages, policy: "" });
    await page.locator("output", { hasText: "9985000 µs" }).waitFor();
    assert.deepEqual(trouble, []);
  });
});
