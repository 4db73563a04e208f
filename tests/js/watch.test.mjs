// Watch it happen, in a real browser: every ready-made story with the fence heeded and unheeded.

import assert from "node:assert/strict";
import { describe } from "node:test";
import { command } from "./command.mjs";
import { plan, scenarios, Story } from "./module.mjs";
import { assertNothingStrange, AT_ONCE, byHand, repainted, saved, setting } from "./page.mjs";

const { story } = setting();
const FENCING = ["on", "off"];

/** What the module tells under Node. */
function tell(scenario) {
  const told = new Story(scenario);
  const events = told.runTo(scenario.until_us);
  const state = told.state();
  told.free();
  return { events, state };
}

const ledger = (page) =>
  page
    .locator("#ledger tbody tr")
    .evaluateAll((rows) => rows.map(({ className, cells }) => [className, cells[1]?.textContent, cells[3]?.textContent]));

describe("every ready-made story", AT_ONCE, () => {
  for (const { name, title, scenario } of scenarios) {
    for (const fencing of FENCING) {
      story(`${title}, fencing ${fencing}`, `#watch?watch.story=${name}&watch.fencing=${fencing}`, async (page) => {
        const { events, state } = tell({ ...scenario, fencing: fencing === "on" });
        assert.deepEqual(
          await ledger(page),
          state.ledger.map(({ verdict, who, text }) => [verdict, who, text]),
        );
        const outcome = await page.locator("#outcome").textContent();
        assert.match(outcome, state.corrupted ? /corrupted/ : state.bounced ? /Refused/ : /Nothing late/);
        assert.equal(await page.locator("#log li").count(), events.length);
        for (const { words } of state.ledger.filter(({ words }) => words))
          assert.ok((await page.locator("#ledger").innerText()).includes(words), words);
        await assertNothingStrange(page);
      });
    }
  }
});

describe("writes from outside of a story", AT_ONCE, () => {
  story("go from their writer's lane to the resource", "#watch?watch.story=row", async (page) => {
    const { scenario } = scenarios.find(({ name }) => name === "row");
    const strokes = await page.locator("svg.timeline line.message.write").evaluateAll((all) => all.map((line) => line.getBBox().height));
    assert.equal(strokes.length, scenario.writes.length);
    // The first writer's lane is the farthest from the resource.
    assert.equal(Math.max(...strokes), strokes[0]);
    for (const height of strokes) assert.ok(height > 30, `${height} pixels`);
  });
});

describe("the pause", AT_ONCE, () => {
  story("is chosen, switched and watched with a mouse", "#watch", async (page) => {
    await page.locator("#story").selectOption("ticket");
    await page.locator("#fencing").uncheck();
    assert.match(await page.locator("#outcome").textContent(), /corrupted/);
    assert.match(await page.locator("#ledger tr.corrupted").innerText(), /402 < 403/);
    await page.locator("#story").selectOption("pause");
    await page.locator("#fencing").check();
    assert.match(await page.locator("#outcome").textContent(), /33 < 34/);
  });

  story("is scrubbed back and forth, and stepped by events", "#watch?watch.story=pause", async (page) => {
    const scrub = page.getByRole("slider", { name: "Time in the story" });
    const { width, height } = await scrub.boundingBox();
    await scrub.click({ position: { x: width * 0.3, y: height / 2 } });
    await page.locator("#log").getByText("freezes").waitFor();
    assert.match(await page.locator(".actor.w0").innerText(), /frozen/);
    assert.equal((await ledger(page)).length, 1);
    assert.match(await page.locator("#outcome").textContent(), /Nothing late so far/);
    const before = await page.locator("#log li").count();
    await page.getByRole("button", { name: "One event on" }).click();
    assert.ok((await page.locator("#log li").count()) > before);
    await page.getByRole("button", { name: "One event back" }).click();
    await page.getByRole("button", { name: "One event back" }).click();
    assert.ok((await page.locator("#log li").count()) <= before);
  });

  story("runs and stops", "#watch?watch.story=pause&watch.at=0", async (page) => {
    await page.getByLabel("Speed").selectOption("4");
    await page.getByRole("button", { name: "Play" }).click();
    await page.locator("#log li").first().waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    const [stopped] = await Promise.all([page.locator("#now").textContent()]);
    await page.waitForTimeout(200);
    assert.equal(await page.locator("#now").textContent(), stopped);
  });

  story(
    "goes event by event for who asks for less motion",
    "#watch?watch.story=row&watch.at=0",
    async (page) => {
      await page.getByLabel("Speed").selectOption("4");
      await page.getByRole("button", { name: "Play" }).click();
      await page.locator("#ledger tr.landed").first().waitFor();
      assert.match(await page.locator("#now").textContent(), /^[1-5]\ss$/, "only instants at which something happens");
      const animated = await page.evaluate(() => document.getAnimations().filter((one) => one.playState === "running").length);
      assert.equal(animated, 0);
    },
    { reducedMotion: "reduce" },
  );

  story("has sliders for mouse and keyboard", "#watch?watch.story=pause", async (page) => {
    assert.equal(await byHand(page), 4);
  });

  story("is one of many, all reached by keyboard alone", "#watch", async (page) => {
    await page.locator("#story").focus();
    await page.keyboard.press("Home");
    for (const { title } of scenarios) {
      await page.locator("h2#story-title", { hasText: title }).waitFor();
      await assertNothingStrange(page);
      await page.keyboard.press("ArrowDown");
    }
  });

  story("is worked by keyboard alone", "#watch?watch.story=pause", async (page) => {
    await page.locator("#story").focus();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Space");
    assert.match(await page.locator("#outcome").textContent(), /corrupted/);
    const scrub = page.getByRole("slider", { name: "Time in the story" });
    await scrub.focus();
    await page.keyboard.press("Home");
    assert.equal(await page.locator("#ledger tbody tr").innerText(), "Nothing yet.");
    await page.keyboard.press("End");
    assert.match(await page.locator("#outcome").textContent(), /corrupted/);
  });

  story("is the visitor's own: jobs, delay, TTL, drift and freeze", "#watch?watch.story=pause", async (page) => {
    const { scenario } = scenarios.find(({ name }) => name === "pause");
    await page.getByLabel("A writes").fill("one\ntwo");
    await page.locator("#delay").fill("50ms");
    await page.locator("#ttl").fill("6s");
    await page.locator("#drift").fill("-1%");
    await page.locator("#freeze").fill("9s");
    const [a, b] = scenario.workers;
    const { state } = tell({
      ...scenario,
      ttl_us: 6_000_000,
      workers: [
        { ...a, job: ["one", "two"], delay_us: 50_000, drift_ppb: -10_000_000 },
        { ...b, delay_us: 50_000 },
      ],
      happenings: [{ ...scenario.happenings[0], for_us: 9_000_000 }],
    });
    assert.deepEqual(
      await ledger(page),
      state.ledger.map(({ verdict, who, text }) => [verdict, who, text]),
    );
  });

  for (const [id, typed, words] of [
    ["ttl", "10", /unit is missing/],
    ["ttl", "60ms", /answer/],
    ["ttl", "0s", /at least/],
    ["delay", "2d", /a day at most/],
    ["drift", "60%", /at most 50 %/],
    ["freeze", "a while", /number/],
  ]) {
    story(
      `says what is wrong with a bad ${id} (${typed}), and keeps the last good story`,
      "#watch?watch.story=pause",
      async (page) => {
        const before = await ledger(page);
        await page.locator(`#${id}`).fill(typed);
        assert.match(await page.locator(`#${id}-error`).textContent(), words);
        assert.deepEqual(await ledger(page), before);
        assert.ok(await page.locator("#stale-note").isVisible());
        await assertNothingStrange(page);
      },
    );
  }

  story("is cut off, and said to be, where more happens than can be shown", "#watch?watch.story=pause", async (page) => {
    assert.equal(await page.locator("#cut").count(), 0);
    await page.evaluate(async () => {
      for (const [id, value] of [["delay", "0s"], ["ttl", "160ms"]]) {
        const input = document.getElementById(id);
        input.value = value;
        input.dispatchEvent(new Event("input", { bubbles: true }));
      }
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
    });
    assert.match(await page.locator("#cut").textContent(), /told up to [\d.]+\ss/);
    const told = await page.locator("#log li").count();
    assert.ok(told > 300 && told <= 600, `${told} events`);
    await assertNothingStrange(page);
  });

  story("hands over its lease as a command and in Rust", "#watch?watch.story=pause&watch.ttl=12s", async (page) => {
    const { scenario } = scenarios.find(({ name }) => name === "pause");
    const { drift_ppb, rtt_us, poll_us } = scenario;
    const { status, answer } = command(...(await page.locator("#plan").textContent()).split(" ").slice(1));
    assert.equal(status, 0);
    const { window_us } = plan({ ttl_us: 12_000_000, drift_ppb, rtt_us, poll_us });
    assert.equal(answer.window_us, window_us);
    assert.match(await page.locator("#rust").textContent(), new RegExp(`from_micros\\(12_000_000\\)[\\s\\S]*window ${window_us} µs`));
    await page.locator("#story").selectOption("no-expiry");
    assert.equal(await page.locator("#plan, #rust").count(), 0, "a lock that never expires has no plan");
  });

  story("keeps its pace in the address", "#watch?watch.pace=4", async (page) => {
    assert.equal(await page.getByLabel("Speed").inputValue(), "4");
    await page.getByLabel("Speed").selectOption("1");
    await page.waitForURL(/watch\.pace=1/);
  });

  story("is saved as JSON, SVG and PNG", "#watch?watch.story=pause&watch.fencing=off", async (page) => {
    const { events } = tell({ ...scenarios.find(({ name }) => name === "pause").scenario, fencing: false });
    assert.deepEqual(JSON.parse((await saved(page, "JSON")).content).events, events);
    const svg = (await saved(page, "SVG")).content.toString();
    assert.match(svg, /lock service/);
    assert.deepEqual(await repainted(page, "svg.timeline", svg), []);
    assert.equal((await saved(page, "PNG")).content.subarray(1, 4).toString(), "PNG");
  });

  story("is saved by keyboard alone", "#watch?watch.story=pause", async (page) => {
    for (const kind of ["JSON", "SVG", "PNG"]) {
      await page.getByRole("button", { name: kind, exact: true }).focus();
      const [download] = await Promise.all([page.waitForEvent("download"), page.keyboard.press("Enter")]);
      assert.equal(download.suggestedFilename(), `story.${kind.toLowerCase()}`);
    }
  });
});
