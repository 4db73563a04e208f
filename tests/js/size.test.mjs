// Size a lease, in a real browser: every number is the module's and the command's, to the last digit.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, it } from "node:test";
import { open } from "./browser.mjs";
import { command } from "./command.mjs";
import { parseLossless } from "./lossless.mjs";
import { chain, plan, presets, size } from "./module.mjs";
import { assertNothingStrange, AT_ONCE, byHand, described, field, figures, repainted, saved, same, sentence, setting, settled } from "./page.mjs";

const set = setting();
const { story } = set;
const DEFAULTS = { ttl_us: 10_000_000, drift_ppb: 1_000_000, rtt_us: 5_000, work_us: 200_000 };
const OPENED = "#size";

describe("the shared cases, in the page", () => {
  it("all of them, by their addresses", async () => {
    const cases = parseLossless(await readFile(new URL("../cases/calculator.json", import.meta.url), "utf8"));
    const { page, trouble, close } = await open(set.browser, set.server.url);
    await page.locator("#window_us").waitFor();
    const us = (value) => (value === undefined ? "" : `${value}us`);
    const seen = { plan: 0, size: 0, redlock: 0, quorum: 0 };
    for (const { call, name, input, expect, expect_error } of cases) {
      seen[call] += 1;
      if (call === "redlock" || call === "quorum") {
        // Both are figures of the page's Redlock; a quorum is asked for no other way.
        const said = new URLSearchParams({ "check.system": "redlock", "check.ttl.is": us(input.ttl_us ?? 10_000_000) });
        const put = (key, value) => value !== undefined && said.set(`check.${key}.is`, value);
        for (const key of ["nodes", "granted"]) put(key, input[key]);
        for (const key of ["elapsed", "drift_fixed"]) if (`${key}_us` in input) put(key, us(input[`${key}_us`]));
        if ("drift_factor_ppb" in input) put("drift_factor", `${input.drift_factor_ppb}ppb`);
        await page.evaluate((hash) => (location.hash = hash), `#check?${said}`);
        await settled(page);
        if (expect_error) assert.ok(await page.locator(`#${expect_error.replace(/_(us|ppb)$/, "")}[aria-invalid=true]`).isVisible(), name);
        else {
          const shown = await redlockFigures(page);
          for (const [field, value] of Object.entries(expect)) assert.equal(shown[field], `${value}`, `${call} ${JSON.stringify(input)}`);
        }
        continue;
      }
      const address = new URLSearchParams({
        from: call === "plan" ? "ttl" : "work",
        ...(call === "plan"
          ? { ttl: us(input.ttl_us), start: input.start ?? "send", offset: us(input.clock_offset_us) }
          : { lost: `${input.lost ?? 1}`, granularity: us(input.granularity_us) }),
        ...{
          work: us(input.work_us),
          pause: us(input.pause_us),
          rtt: us(input.rtt_us),
          poll: us(input.poll_us),
          attempts: `${input.attempts ?? 3}`,
        },
        ...{ holder: `${input.drift_ppb}ppb`, coordinator: "0ppb" },
      });
      await page.evaluate((hash) => (location.hash = hash), `#size?${address}`);
      await settled(page);
      if (expect_error) {
        assert.ok(await page.locator("#stale-note").isVisible(), name);
        assert.notEqual((await page.locator(".error").allTextContents()).join(""), "", name);
      } else if (expect.ttl_us === null) assert.ok(await page.locator("#no-ttl").isVisible(), name);
      else
        same(await figures(page), call === "plan" ? expect : { ...plan({ ...lease(input), ttl_us: expect.ttl_us }), ...expect });
    }
    assert.equal(Object.values(seen).reduce((a, b) => a + b), cases.length);
    for (const [call, least] of [["plan", 20], ["size", 7], ["redlock", 4]]) assert.ok(seen[call] >= least, `${seen[call]} of ${call}`);
    assert.deepEqual(trouble, []);
    await close();
  });
});

/** A Redlock's figures on the page. */
const redlockFigures = (page) =>
  page.evaluate(() =>
    Object.fromEntries([...document.querySelectorAll("#redlock-title + table tbody tr")].map((row) => [row.id, row.querySelector("data").value])),
  );

describe("quorums, in the page", AT_ONCE, () => {
  for (const nodes of ["1", "2", "5", "1000000", "9007199254740993", `${2n ** 64n - 3n}`]) {
    story(`of ${nodes} nodes are the command's`, `#check?check.system=redlock&check.ttl.is=10s&check.nodes.is=${nodes}`, async (page) => {
      const { answer } = command("quorum", "--nodes", nodes);
      const { quorum, tolerates } = await redlockFigures(page);
      assert.deepEqual([quorum, tolerates], [`${answer.quorum}`, `${answer.tolerates}`]);
    });
  }
});

/** Where the page marks what the command names. */
const MARKED = {
  ttl_us: ["ttl", "work"],
  drift_ppb: ["holder", "coordinator", "drift"],
  clock_offset_us: ["offset"],
  ...Object.fromEntries(["rtt", "work", "pause", "poll", "granularity"].map((field) => [`${field}_us`, [field]])),
  attempts: ["attempts"],
  lost: ["lost"],
};

const lease = ({ lost: _, granularity_us: __, ...rest }) => rest;

/** Numbers from a seed: Mulberry32. */
function numbers(seed) {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}

describe("a thousand random inputs", () => {
  it("give in the page what its own command line gives, to the last digit", async (t) => {
    const seed = Number(process.env.FENCEGATE_SEED ?? Date.now() % 1_000_000_000);
    t.diagnostic(`FENCEGATE_SEED=${seed}`);
    console.log(`seed ${seed}`);
    const random = numbers(seed);
    const digits = (most) => Array.from({ length: 1 + random(most) }, (_, at) => (at ? random(10) : 1 + random(9))).join("");
    const time = (empty) =>
      empty && random(3) === 0
        ? ""
        : `${digits(random(8) === 0 ? 17 : 5)}${random(2) ? `.${digits(4)}` : ""}${["ns", "us", "ms", "s", "m", "h"][random(6)]}`;
    const drift = () =>
      `${digits(3)}${random(2) ? `.${digits(3)}` : ""}${["ppb", "ppm", "ppm", "%"][random(8) === 0 ? 3 : random(3)]}`;
    // One in ten has something in it that is no duration, no drift or no number of heartbeats.
    const spoilt = (value, bad) => (random(80) === 0 ? bad[random(bad.length)] : value);
    const inputs = Array.from({ length: 1_000 }, () => {
      const from = random(2) ? "ttl" : "work";
      const maybe = () => spoilt(time(true), ["5", "1m2h", "soon", "-1s", "99999999999999999999d"]);
      return {
        from,
        ...(from === "ttl"
          ? { ttl: spoilt(time(false), ["10", "1ns", "0s"]), start: random(2) ? "send" : "grant", offset: maybe() }
          : { lost: `${random(4)}`, granularity: random(2) ? spoilt("1s", ["0s"]) : "" }),
        ...{
          work: maybe(),
          pause: maybe(),
          rtt: maybe(),
          poll: maybe(),
          attempts: spoilt(`${2 + random(9)}`, ["0", "1"]),
          holder: spoilt(drift(), ["100%", "1s", "60"]),
          coordinator: spoilt(drift(), ["99.9999%", "x"]),
        },
      };
    });
    /** The command's words for it, by no way of the page's. */
    const wordsOf = ({ from, holder, coordinator, offset, ...rest }) => [
      from === "ttl" ? "plan" : "size",
      ...["--drift", holder, "--drift", coordinator],
      ...Object.entries({ ...rest, "clock-offset": offset }).flatMap(([flag, value]) => (value ? [`--${flag}`, value] : [])),
    ];
    const { page, trouble, close } = await open(set.browser, set.server.url);
    await page.locator("#window_us").waitFor();
    const shown = await page.evaluate(async (hashes) => {
      const all = [];
      for (const hash of hashes) {
        const changed = new Promise((done) => addEventListener("hashchange", done, { once: true }));
        location.hash = hash;
        await changed;
        await new Promise((done) => setTimeout(done, 0));
        const stale = document.querySelector(".results").classList.contains("stale");
        const rows = [...document.querySelectorAll("#figures-title + table tbody tr")];
        all.push({
          none: document.getElementById("no-ttl") !== null,
          problems: Object.fromEntries(
            [...document.querySelectorAll(".error")].filter((error) => error.textContent).map((error) => [error.id, error.textContent]),
          ),
          command: stale ? undefined : document.getElementById("command").textContent,
          figures: stale ? undefined : Object.fromEntries(rows.map((row) => [row.id, row.querySelector("data").value])),
        });
      }
      return all;
    }, inputs.map((input) => `#size?${new URLSearchParams(input)}`));
    assert.deepEqual(trouble, []);
    await close();
    const counted = { answered: 0, none: 0, refused: 0 };
    for (const [at, { none, problems, command: words, figures: figured }] of shown.entries()) {
      const own = wordsOf(inputs[at]);
      const { status, answer, refused } = command(...own);
      const told = `${own.join(" ")}: ${status}, ${JSON.stringify(problems)}`;
      if (figured) {
        assert.ok(status < 2, told);
        same(figured, answer);
        // And what the page hands over asks the same.
        same(figured, command(...words.split(" ").slice(1)).answer);
        counted.answered += 1;
      } else if (none) {
        assert.deepEqual([status, answer.ttl_us], [1, null], told);
        counted.none += 1;
      } else {
        // The same field, for the same reason.
        assert.equal(status, 2, told);
        const sentence = `${refused.reason.charAt(0).toUpperCase()}${refused.reason.slice(1)}.`;
        const where = MARKED[refused.field].filter((id) => problems[`${id}-error`] === sentence);
        assert.notEqual(where.length, 0, `${told}: ${refused.field}: ${sentence}`);
        counted.refused += 1;
      }
    }
    console.log(counted);
    assert.ok(counted.answered > 500 && counted.refused > 50, JSON.stringify(counted));
  });
});

describe("the calculator", AT_ONCE, () => {
  story("opens with a lease of ten seconds and the module's own figures for it", "", async (page) => {
    same(await figures(page), plan(DEFAULTS));
    assert.match(await page.locator("#headline").textContent(), /^9\.99\ss$/);
    assert.match(await page.locator("body").innerText(), /not a certified safety function/);
    assert.match(await page.locator("#verdicts").innerText(), /First: what does a double run cost\?/);
    assert.equal(await page.locator("input[name=token]:checked").count(), 0, "nobody has said that there is a fence");
    await assertNothingStrange(page);
  });

  story("takes every input into account", OPENED, async (page) => {
    await field(page, "TTL").fill("1m30s");
    await field(page, "Holder’s clock").fill("1%");
    await field(page, "Coordinator’s clock").fill("20 ppm");
    await field(page, "Round trip").fill("20 ms");
    await page.getByLabel("at the reply").check();
    await field(page, "Work").fill("");
    await page.getByText("Pauses, heartbeats, polling").click();
    await field(page, "Pause").fill("1s");
    await field(page, "Poll").fill("500ms");
    await field(page, "Heartbeats per TTL").fill("5");
    await field(page, "Wall-clock offset").fill("3ms");
    const input = {
      ttl_us: 90_000_000,
      drift_ppb: 10_020_000,
      rtt_us: 20_000,
      start: "grant",
      pause_us: 1_000_000,
      poll_us: 500_000,
      attempts: 5,
      clock_offset_us: 3_000,
    };
    same(await figures(page), plan(input));
  });

  story("finds the least TTL from the work", OPENED, async (page) => {
    await page.getByLabel("from the work to the least TTL").check();
    await field(page, "Work").fill("2s");
    await field(page, "Pause").fill("500ms");
    await field(page, "Round trip").fill("50ms");
    await field(page, "Step of the TTL").fill("1s");
    await field(page, "Lost renewals").fill("1");
    same(
      await figures(page),
      size({ drift_ppb: 1_000_000, rtt_us: 50_000, work_us: 2_000_000, pause_us: 500_000, granularity_us: 1_000_000 }),
    );
    assert.match(await page.locator("#headline").textContent(), /^8\ss$/);
    await field(page, "Lost renewals").fill("3");
    assert.ok(await page.locator("#no-ttl").isVisible(), "no TTL is long enough");
    // What can be taken along is of this question, not of the last one that had an answer.
    assert.equal(await page.locator("#rust").count(), 0);
    const words = await page.locator("#command").textContent();
    assert.equal(command(...words.split(" ").slice(1)).answer.ttl_us, null);
  });

  story("rounds what is typed to the safe side: the TTL down, everything else up", OPENED, async (page) => {
    await field(page, "TTL").fill("9999999999ns");
    await field(page, "Holder’s clock").fill("0.5ppb");
    await field(page, "Coordinator’s clock").fill("0");
    await field(page, "Round trip").fill("1ns");
    await field(page, "Work").fill("0.0000001s");
    same(await figures(page), plan({ ttl_us: 9_999_999, drift_ppb: 1, rtt_us: 1, work_us: 1 }));
  });

  story("is exact beyond what a JavaScript number can hold", OPENED, async (page) => {
    for (const name of ["Holder’s clock", "Coordinator’s clock", "Round trip", "Work"]) await field(page, name).fill("0");
    await field(page, "TTL").fill("9223372036854775807us");
    assert.equal((await figures(page)).window_us, "9223372036854775807");
  });

  story("offers the clocks that the module knows, with their sources", OPENED, async (page) => {
    const { clocks } = presets();
    const pick = page.getByLabel("Holder’s clock: a known one");
    assert.equal(await pick.locator("option").count(), clocks.length + 1);
    for (const [at, { drift_ppb, source }] of clocks.entries()) {
      await pick.selectOption(String(at));
      same(await figures(page), plan({ ...DEFAULTS, drift_ppb: drift_ppb + 500_000 }));
      assert.ok((await page.locator(".clocks .source").allTextContents()).includes(source));
    }
  });

  story("speaks the visitor's words and names ours beside them", OPENED, async (page) => {
    for (const name of [
      "My command time-out is 500 ms",
      "Two controllers, one relay",
      "My lock expires during the job",
      "The collector stops my process",
    ]) {
      await page.getByRole("button", { name }).click();
      assert.ok((await page.locator(".ours").textContent()).length > 60, name);
      await assertNothingStrange(page);
    }
  });

  story("opens an opener as the page begins, whatever was set before", "#size", async (page) => {
    const dirty =
      "#size?from=work&work=9s&pause=7s&rtt=1s&poll=5s&attempts=9&lost=3&granularity=1s&holder=1%25&coordinator=2%25&offset=3s&speed=9&page=1s&cost=wasted&over=rtt";
    for (const name of await page.locator(".openers .chip").allTextContents()) {
      const said = [];
      for (const hash of ["#size?over=rtt", dirty]) {
        await page.evaluate((to) => (location.hash = to), hash);
        await page.getByRole("button", { name }).click();
        await settled(page);
        said.push([await page.locator("#command").textContent(), await page.locator("#verdicts").innerText(), await figures(page)]);
        await page.waitForTimeout(200); // the address follows
        said.at(-1).push(new URL(page.url()).hash);
      }
      assert.deepEqual(said[1], said[0], name);
    }
  });

  story("adds up a chain of time-outs, with the travel", OPENED, async (page) => {
    await page.getByRole("button", { name: "Two controllers, one relay" }).click();
    const { total_us, travel_um } = chain({ parts_us: [500_000, 100_000, 50_000, 200_000], speed_mm_s: 500 });
    assert.deepEqual(await page.locator("#chain data").evaluateAll((all) => all.map((data) => data.value)), [
      `${total_us}`,
      `${travel_um}`,
    ]);
    await page.getByRole("button", { name: "Take it as the work" }).click();
    assert.equal(await page.locator("#work").inputValue(), `${total_us}us`);
    await field(page, "Gate").fill("soon");
    assert.match(await sentence(page, "gate"), /number/);
  });

  story("is to scale: the window's bar ends where the window ends", OPENED, async (page) => {
    const drawn = await page.evaluate(() => {
      const [lease, act, finish] = ["lease", "act", "finish"].map((c) =>
        document.querySelector(`svg.picture rect.${c}`).getBBox(),
      );
      return { work: act.width / lease.width, window: (finish.x + finish.width - act.x) / lease.width };
    });
    assert.ok(Math.abs(drawn.work - 9.79 / 10) < 0.001, `work ends at ${drawn.work}`);
    assert.ok(Math.abs(drawn.window - 9.99 / 10) < 0.001, `the window ends at ${drawn.window}`);
    assert.match(await page.locator("svg.picture .title").textContent(), /The end, 1\d\d times larger/);
  });

  for (const start of ["send", "grant"]) {
    story(
      `the picture's labels are the figures, with the timer started at ${start}`,
      `#size?ttl=10s&rtt=1s&work=1s&start=${start}`,
      async (page) => {
        const found = plan({ ttl_us: 10_000_000, drift_ppb: 1_000_000, rtt_us: 1_000_000, work_us: 1_000_000, start });
        const seconds = (us) => `${Number(us) / 1_000_000}\u00a0s`;
        const labels = await page.locator("svg.picture text.mark").allTextContents();
        for (const label of [
          `window ends ${seconds(found.window_us)}`,
          `no new work from ${seconds(found.work_deadline_us)}`,
          `cancel ${seconds(found.cancel_after_us)} after the answer`,
          `latest ${seconds(found.takeover_us)}`,
        ])
          assert.ok(labels.includes(label), `${label}: ${labels}`);
        assert.equal(await page.locator("#headline").textContent(), seconds(found.window_us));
        // The axis below counts as the labels do: where the window's bar begins is its zero.
        const [zero, begins] = await page.evaluate(() => {
          const tick = [...document.querySelectorAll("svg.picture text.tick")].find((one) => one.textContent === "0\u00a0s");
          return [+tick.previousSibling.getAttribute("x1"), +document.querySelector("svg.picture rect.act").getAttribute("x")];
        });
        assert.ok(Math.abs(zero - begins) < 1, `${zero} and ${begins}`);
      },
    );
  }

  story("says of each part what it is, its formula and its source", OPENED, async (page) => {
    const parts = page.locator("svg.picture .part");
    const count = await parts.count();
    assert.ok(count >= 8, `${count} parts`);
    for (let at = 0; at < count; at += 1) {
      await parts.nth(at).focus();
      const said = await page.locator(".explained").innerText();
      assert.match(said, /=|≤/, said);
      assert.match(said, /core\/src|configuration/, said);
      assert.match(said, /\d/, `numbers are in it: ${said}`);
      assert.ok((await parts.nth(at).getAttribute("aria-label")).length > 30);
    }
    await parts.first().hover();
    assert.match(await page.locator(".explained").innerText(), /coordinator grants/);
  });
});

describe("formulas with their numbers in them", AT_ONCE, () => {
  const at = async (page, name) => page.locator(`svg.picture .part[aria-label^="${name}"]`).first().getAttribute("aria-label");

  story("where a heartbeat is a part of the TTL", "#size?ttl=10s&attempts=5&rtt=5ms&poll=1s", async (page) => {
    assert.match(await at(page, "Heartbeats"), /h = ⌊T \/ n⌋ = ⌊10\ss \/ 5⌋ = 2\ss; k · 2\ss \+ 5\sms < 9\.99\ss for k ≤ 4/);
    assert.match(await at(page, "Cancellation"), /c = ⌊T \/ 3⌋ = ⌊10\ss \/ 3⌋ = 3\.333333\ss/);
    assert.match(await at(page, "Takeover"), /⌈10\ss \/ \(1 − 1000\sppm\)⌉ \+ 2 · 5\sms \+ 1\ss = 11\.020011\ss/);
  });

  story("where it comes early for cancellation's sake", "#size?ttl=10s&attempts=3&rtt=5ms", async (page) => {
    assert.match(await at(page, "Heartbeats"), /h = c − d = 3\.333333\ss − 5\sms = 3\.328333\ss/);
  });
});

describe("heartbeats in the picture", AT_ONCE, () => {
  for (const [attempts, drawn] of [
    [5, "one by one"],
    [70, "one by one"],
    [400, "a band"],
    [10_000_000, "a band"],
  ]) {
    story(`are all there, and counted in words: ${attempts} a TTL, ${drawn}`, `#size?ttl=10s&attempts=${attempts}&rtt=0`, async (page) => {
      const { renewals_in_window, heartbeat_us, takeover_us } = plan({ ...DEFAULTS, rtt_us: 0, attempts });
      const words = (await page.locator("#beats").innerText()).replace(/\u202f/g, "");
      assert.match(words, new RegExp(`\\b${renewals_in_window} of them are answered inside the window and still help`));
      const whole = page.locator("svg.picture > g").first();
      if (drawn === "a band") {
        assert.match(words, /band/);
        assert.equal(await whole.locator("circle.beat").count(), 0);
        assert.ok((await whole.locator("rect.beat:not(.late)").boundingBox()).width > 500);
      } else {
        assert.doesNotMatch(words, /band/);
        assert.equal(await whole.locator("circle.beat").count(), Math.floor((Number(takeover_us) - 1) / Number(heartbeat_us)));
        assert.equal(await whole.locator("circle.beat:not(.late)").count(), Number(renewals_in_window));
      }
    });
  }
});

describe("a lease that nobody renews", AT_ONCE, () => {
  story("of 60 s, for jobs of 30 s to 15 min", "#size?ttl=60s&cost=broken", async (page) => {
    await page.getByRole("group", { name: "Is it renewed" }).getByLabel("no").check();
    await field(page, "Work").fill("15m");
    await field(page, "Shortest job").fill("30s");
    const words = await page.locator(".verdict", { hasText: "The work breaks first" }).innerText();
    assert.match(words, /jobs of 30\ss to 15\smin[\s\S]*takes 59\.94\ss or longer[\s\S]*A job of 30\ss still ends in time/);
    // The TTL that it names is the least that carries the longest job.
    const [, minutes, seconds] = words.match(/a TTL of at least (\d+)\smin ([\d.]+)\ss/);
    const least = Math.round((Number(minutes) * 60 + Number(seconds)) * 1e6);
    const left = (ttl_us) => plan({ ...DEFAULTS, ttl_us, work_us: 900_000_000 }).work_deadline_us;
    assert.deepEqual([left(least) > 0, left(least - 1)], [true, 0]);
    for (const none of ["circle.beat", "line.cancel"]) assert.equal(await page.locator(`svg.picture ${none}`).count(), 0, none);
    assert.equal(await page.locator("#heartbeat_us").count(), 0);
    await field(page, "Shortest job").fill("2m");
    assert.match(await page.locator("#verdicts").innerText(), /Not even the shortest one fits/);
    await field(page, "Work").fill("45s");
    assert.match(await page.locator("#verdicts").innerText(), /The longest job fits/);
    await field(page, "Shortest job").fill("soon");
    assert.match(await sentence(page, "shortest"), /number/);
    await assertNothingStrange(page);
  });

  story("with a pause, or with no work said", "#size?ttl=60s&renews=no&work=&pause=1s", async (page) => {
    assert.match(await page.locator("#verdicts").innerText(), /Whatever takes 59\.94\ss or longer[\s\S]*A pause is part of the job/);
  });
});

describe("the verdicts", AT_ONCE, () => {
  const VERDICTS = [
    [
      "work of fifteen minutes under 60 s",
      "#size?ttl=60s&work=15m&cost=broken",
      /The work breaks first[\s\S]*15\smin[\s\S]*at least 45\smin/,
    ],
    ["work of thirty seconds under 60 s", "#size?ttl=60s&work=30s&rtt=50ms&cost=broken", /What breaks first/],
    ["heartbeats that cannot keep up", "#size?ttl=900ms&rtt=400ms", /Heartbeats cannot keep up/],
    ["cancellation that a single lost renewal trips", "#size?ttl=10s&attempts=3", /One lost renewal trips cancellation/],
    ["a schedule that survives one", "#size?ttl=10s&attempts=10", /A lost renewal is ridden through/],
    ["no window at all", "#size?ttl=100ms&rtt=100ms&start=grant", /There is no window/],
    ["a pause too long", "#size?ttl=10s&pause=9s", /The pause breaks it/],
    ["wasted work", "#size?cost=wasted", /An efficiency lock[\s\S]*not how often it fails/],
    ["broken state with a fence", "#size?cost=broken&token=yes", /A correctness lock, with a fence[\s\S]*What does is a resource that refuses/],
    ["broken state, and nothing said of a token", "#size?cost=broken", /Can the resource check a token\?[\s\S]*nothing enforces/],
    ["broken state without one", "#size?cost=broken&token=no", /idempotent[\s\S]*collide softly/],
  ];
  for (const [name, hash, words] of VERDICTS) {
    story(name, hash, async (page) => {
      assert.match(await page.locator("#verdicts").innerText(), words);
      await assertNothingStrange(page);
    });
  }
});

describe("a second try", AT_ONCE, () => {
  for (const [ttl_us, rtt_us, attempts] of [
    [10_000_000, 5_000, 3],
    [10_000_000, 5_000, 6],
    [10_000_000, 1_000_000, 4],
    [10_000_000, 3_333_330, 3],
    [10_000_000, 3_333_332, 3],
  ]) {
    story(
      `takes as many heartbeats as the page says, and not one less (${rtt_us} µs, ${attempts})`,
      `#size?ttl=${ttl_us}us&rtt=${rtt_us}us&attempts=${attempts}&work=`,
      async (page) => {
        const words = await page.locator(".verdict", { hasText: "One lost renewal trips cancellation" }).innerText();
        const said = words.match(/From ([\d\u202f]+) heartbeats per TTL/)?.[1].replace(/\D/g, "");
        const misses = (n) => plan({ ...DEFAULTS, ttl_us, rtt_us, work_us: 0, attempts: n }).misses_before_cancel;
        if (said) assert.deepEqual([misses(+said) > 0, misses(+said - 1)], [true, 0], words);
        else {
          assert.match(words, /No number of heartbeats/);
          assert.equal(misses(ttl_us), 0);
        }
      },
    );
  }
});

describe("a bad entry", AT_ONCE, () => {
  const BAD = [
    ["TTL", "ttl", "", /Nothing is written/],
    ["TTL", "ttl", "10", /unit is missing/],
    ["TTL", "ttl", "-5s", /no sign/],
    ["TTL", "ttl", "ten seconds", /number/],
    ["TTL", "ttl", "1,5s", /no such unit/i],
    ["TTL", "ttl", "NaN", /number/],
    ["TTL", "ttl", "0s", /at least/],
    ["TTL", "ttl", "99999999999999999999d", /64 bits/],
    ["TTL", "ttl", "9223372036854775807us", /does not fit/],
    ["Holder’s clock", "holder", "5s", /no such unit/i],
    ["Holder’s clock", "drift", "100%", /below/],
    ["Round trip", "rtt", "5 parsecs", /no such unit/i],
    ["Work", "work", "soon", /number/],
  ];
  for (const [name, id, typed, words] of BAD) {
    story(`${id}: “${typed}” is told why, and the last good picture stays`, OPENED, async (page) => {
      const before = [await figures(page), await page.locator("svg.picture").innerHTML()];
      await field(page, name).fill(typed);
      assert.match(await sentence(page, id), words);
      // What is wrong with two clocks together is heard at both.
      for (const at of id === "drift" ? ["holder", "coordinator"] : [id]) {
        assert.equal(await page.locator(`#${at}`).getAttribute("aria-invalid"), "true");
        assert.ok((await described(page, at)).includes(await sentence(page, id)));
      }
      assert.deepEqual([await figures(page), await page.locator("svg.picture").innerHTML()], before);
      assert.match(await page.locator("#stale-note").innerText(), /the last one that there was/);
      await assertNothingStrange(page);
      await field(page, name).fill(id === "drift" || id === "holder" ? "500ppm" : "7s");
      assert.equal(await sentence(page, id), "");
      assert.equal(await page.locator("#stale-note").count(), 0);
    });
  }
});

describe("by hand", AT_ONCE, () => {
  story("every slider moves its field, by keyboard and by mouse, and the answer with it", "#size?start=send", async (page) => {
    await page.locator("details.more summary").first().click();
    const count = await byHand(page);
    assert.ok(count >= 8, `${count} sliders`);
    same(await figures(page), plan(DEFAULTS));
  });

  story("works by keyboard alone, from the skip link to the answer", "", async (page) => {
    const focused = () =>
      page.evaluate(() => document.activeElement.id || document.activeElement.name || document.activeElement.textContent);
    await page.keyboard.press("Tab");
    assert.match(await focused(), /To the content/);
    await page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
    assert.equal(await focused(), "cost");
    await page.keyboard.press("Space");
    for (let presses = 0; (await focused()) !== "ttl"; presses += 1) {
      assert.ok(presses < 20, "the TTL is reached");
      await page.keyboard.press("Tab");
    }
    await page.keyboard.type("20s"); // arriving by Tab selects what is there
    same(await figures(page), plan({ ...DEFAULTS, ttl_us: 20_000_000 }));
  });

  story(
    "saves JSON with the module's integers",
    "#size?ttl=9223372036854775807us&holder=0&coordinator=0&rtt=0&work=0",
    async (page) => {
      const { name, content } = await saved(page, "JSON");
      assert.equal(name, "lease.json");
      const { ttl_us, window_us, safe } = parseLossless(content.toString());
      assert.deepEqual([ttl_us, window_us, safe], [2n ** 63n - 1n, 2n ** 63n - 1n, true]);
    },
  );

  story("saves by keyboard alone", OPENED, async (page) => {
    for (const kind of ["JSON", "SVG", "PNG"]) {
      await page.getByRole("button", { name: kind, exact: true }).focus();
      const [download] = await Promise.all([page.waitForEvent("download"), page.keyboard.press("Enter")]);
      assert.equal(download.suggestedFilename(), `lease.${kind.toLowerCase()}`);
    }
  });

  story("saves the picture as SVG and PNG", OPENED, async (page) => {
    const svg = (await saved(page, "SVG")).content.toString();
    assert.match(svg, /^<\?xml[\s\S]*xmlns="http:\/\/www\.w3\.org\/2000\/svg"[\s\S]*window ends/);
    assert.doesNotMatch(svg, /class=|var\(/, "it needs no style sheet");
    assert.deepEqual(await repainted(page, "svg.picture", svg), []);
    const png = (await saved(page, "PNG")).content;
    assert.equal(png.subarray(1, 4).toString(), "PNG");
    assert.ok(png.readUInt32BE(16) > 1_000 && png.length > 10_000, "large enough to be shown");
  });

  story(
    "hands over its command and its Rust",
    "#size?ttl=30s&holder=1%25&coordinator=20ppm&rtt=20ms&start=grant&work=2s&attempts=5&poll=1s&pause=1s&offset=3ms",
    async (page) => {
      const words = await page.locator("#command").textContent();
      const { answer } = command(...words.split(" ").slice(1));
      same(await figures(page), answer);
      const rust = await page.locator("#rust").textContent();
      for (const part of [
        "from_micros(30_000_000)",
        "from_ppb(10_020_000)",
        "Start::Grant",
        ".attempts(5)",
        "clock_offset",
        "pause",
      ])
        assert.ok(rust.includes(part), part);
      await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
      await page.getByRole("button", { name: "Copy: At the command line" }).click();
      assert.equal(await page.evaluate(() => navigator.clipboard.readText()), words);
    },
  );

  story("hears the new answer once the typing stops", OPENED, async (page) => {
    await field(page, "TTL").fill("20s");
    await page
      .getByRole("status")
      .filter({ hasText: /Window 19\.98\ss, margin 20\sms/ })
      .waitFor({ state: "attached" });
  });

  it("says on each axis what it shows, and marks the visitor's own setting", async (t) => {
    const { page, close } = await open(set.browser, "about:blank");
    t.after(close);
    // What is written and dotted on a canvas, told by the canvas itself.
    await page.addInitScript(() => {
      globalThis.drawn = { text: [], dots: 0 };
      const { fillText, arc } = CanvasRenderingContext2D.prototype;
      Object.assign(CanvasRenderingContext2D.prototype, {
        fillText(text, ...rest) {
          drawn.text.push(text);
          return fillText.call(this, text, ...rest);
        },
        arc(...rest) {
          drawn.dots += 1;
          return arc.call(this, ...rest);
        },
      });
    });
    await page.goto(`${set.server.url}#size`);
    await page.locator("#plot-ttl canvas").waitFor();
    const { text, dots } = await page.evaluate(() => drawn);
    for (const title of ["Drift of both clocks, ppm or %", "After the start of the timer, s", "Work, ms to h", "Least TTL and takeover, ms to d", "Renewals an hour"])
      assert.ok(text.includes(title), `${title}: ${text}`);
    // A dot on each of three curves in two plots, each time that they are drawn.
    assert.deepEqual([dots > 0, dots % 6], [true, 0]);
    for (const [plot, setting] of [["window", /1000\sppm/], ["ttl", /200\sms/]]) {
      assert.match(await page.locator(`#plot-${plot} .legend`).innerText(), new RegExp(`your setting, ${setting.source}`));
      assert.match(await page.locator(`#plot-${plot} tr.here th`).textContent(), new RegExp(`${setting.source}, your setting`));
    }
  });

  for (const over of ["drift", "rtt"]) {
    story(`has a table beside each plot (over ${over}), with the module's numbers`, `#size?over=${over}`, async (page) => {
      for (const plot of ["window", "ttl"]) {
        await page.locator(`#plot-${plot} summary`).click();
        assert.ok((await page.locator(`#plot-${plot} tbody tr`).count()) >= 10);
        assert.equal(await page.locator(`#plot-${plot} canvas`).count(), 1);
      }
      const row = page
        .locator("#plot-window tbody tr")
        .filter({ has: page.getByRole("rowheader", { name: over === "drift" ? /^1000\sppm, your/ : /^5\sms, your/ }) });
      assert.match(await row.innerText(), /9\.99\ss/);
      assert.match(await page.locator("#plot-ttl tbody").innerText(), /none|\ss/);
    });
  }
});
