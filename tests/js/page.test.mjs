// The page as a whole: links, people, surroundings, and what it looks like.

import axe from "axe-core";
import assert from "node:assert/strict";
import { cp, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { ICONS, png } from "../../web/icons.mjs";
import { open } from "./browser.mjs";
import { PACKAGE } from "./module.mjs";
import { AT_ONCE, assertNothingStrange, DIST, field, figures, setting, settled, SHOTS } from "./page.mjs";
import { example } from "./readme.mjs";

const set = setting();
const { story, visit } = set;

const STATES = {
  size: "#size?cost=broken",
  work: "#size?from=work&work=2s&pause=500ms&rtt=50ms&cost=wasted",
  none: "#size?ttl=100ms&rtt=100ms&start=grant&cost=broken&token=no",
  wrong: "#size?ttl=0&holder=x&rtt=1",
  unrenewed: "#size?ttl=60s&renews=no&work=15m&shortest=30s&cost=broken",
  crowded: "#size?ttl=10m&attempts=400&cost=broken&token=yes",
  redlock: "#check?check.system=redlock&check.granted.is=2",
  unruled: "#check?check.system=s3",
  huge: "#size?ttl=9223372036854775807us&holder=0&coordinator=0&rtt=0",
  check: "#check?check.system=patroni&check.loop_wait.is=11s",
  bounced: "#watch?watch.story=pause&watch.fencing=on",
  corrupted: "#watch?watch.story=pause&watch.fencing=off",
  restore: "#watch?watch.story=restore&watch.fencing=on&watch.at=9000000",
  gate: "#gate",
};

describe("a link", AT_ONCE, () => {
  it("opened in a fresh browser shows the same numbers", async (t) => {
    const { page, url } = await visit(t, DIST);
    await page.locator("#window_us").waitFor();
    await field(page, "TTL").fill("1m 30s");
    await field(page, "Holder’s clock").fill("0.1%");
    await page.getByLabel("at the reply").check();
    await page.getByLabel("broken state").check();
    await page.waitForURL(/cost=broken/);
    const shared = await open(set.browser, page.url());
    t.after(shared.close);
    await shared.page.locator("#window_us").waitFor();
    assert.deepEqual(await figures(shared.page), await figures(page));
    assert.equal(await shared.page.getByRole("radio", { name: "at the reply" }).isChecked(), true);
    for (const hash of [STATES.check, STATES.corrupted]) {
      const again = await open(set.browser, url + hash);
      t.after(again.close);
      const [said] = await Promise.all([again.page.locator("#verdict, #outcome").textContent()]);
      assert.match(said, /broken|corrupted/);
    }
  });

  story("keeps every view's settings while others are looked at", STATES.check, async (page) => {
    await page.getByRole("link", { name: "Watch it happen" }).click();
    await page.locator("#outcome").waitFor();
    assert.match(page.url(), /#watch\?.*check\.loop_wait\.is=11s/);
    await page.goBack();
    assert.equal(await page.locator("#loop_wait").inputValue(), "11s");
  });

  story(
    "of the first kind, without a view, still opens",
    "#ttl=20s&holder=500ppm&coordinator=500ppm&start=grant",
    async (page) => {
      assert.equal(await page.locator("#ttl").inputValue(), "20s");
      assert.equal(await page.getByRole("radio", { name: "at the reply" }).isChecked(), true);
      assert.equal(await page.getByRole("alert").count(), 0);
    },
  );

  for (const hash of [
    "#ttl=20s&start=sideways&colour=red",
    "#nonsense",
    "#check?check.system=postgres&check.constructor.is=1",
    "#watch?watch.values=1&__proto__=2",
    "#watch?watch.story=nonsense",
    "#watch?watch.at=soon",
    `#size?ttl=${"9".repeat(3_000)}s`,
  ]) {
    story(`that is old or mangled is taken as far as it goes (${hash.slice(0, 40)})`, hash, async (page) => {
      assert.match(await page.getByRole("alert").innerText(), /does not know/);
      assert.equal(await page.locator(".answer").count(), 1);
      await assertNothingStrange(page);
    });
  }

  story("is not written over by what was typed just before Back", "#size?ttl=20s", async (page) => {
    await page.evaluate(() => (location.hash = "#size?ttl=30s"));
    await page.waitForFunction(() => document.querySelector("#ttl").value === "30s");
    await page.evaluate(() => {
      const ttl = document.querySelector("#ttl");
      ttl.value = "40s";
      ttl.dispatchEvent(new Event("input", { bubbles: true }));
      history.back();
    });
    await page.waitForTimeout(400);
    assert.match(page.url(), /ttl=20s/);
    assert.equal(await page.locator("#ttl").inputValue(), "20s");
  });

  story("keeps what was typed just before another view", "#size?ttl=20s", async (page) => {
    await page.evaluate(() => {
      const ttl = document.querySelector("#ttl");
      ttl.value = "40s";
      ttl.dispatchEvent(new Event("input", { bubbles: true }));
    });
    await page.getByRole("link", { name: "Watch it happen" }).click();
    await page.goBack();
    assert.equal(await page.locator("#ttl").inputValue(), "40s");
  });

  story("with a wrong value says so at the field", "#size?ttl=%E0%A4%A&rtt=5", async (page) => {
    assert.equal(await page.locator("#ttl").getAttribute("aria-invalid"), "true");
    await assertNothingStrange(page);
  });
});

describe("what is wrong", AT_ONCE, () => {
  for (const hash of [
    "#size?attempts=1",
    "#size?pause=x",
    "#size?offset=x",
    "#size?lost=x",
    "#size?from=work&lost=x",
    "#size?page=x",
    "#check?check.fenced.is=maybe&check.system=redisson",
    "#watch?watch.ttl=x",
    "#watch?watch.a=" + "x".repeat(1_500),
    ...["no-expiry", "equal-token", "row", "restore"].flatMap((name) => [
      `#watch?watch.story=${name}&watch.ttl=x`,
      `#watch?watch.story=${name}&watch.freeze=x`,
    ]),
  ]) {
    story(`is said where it can be seen (${hash.slice(0, 50)})`, hash, async (page) => {
      const note = page.locator("#stale-note");
      const marked = page.locator("[aria-invalid=true]");
      await settled(page);
      for (const one of await marked.all()) assert.ok(await one.isVisible(), "a marked field is in sight");
      if (!(await note.count())) return;
      if (/marked field/.test(await note.textContent())) assert.ok(await marked.count(), "a field is marked");
      else assert.ok((await note.textContent()).length > 30, await note.textContent());
    });
  }

  story("leaves open what it has opened", "#size", async (page) => {
    await page.getByText("Pauses, heartbeats, polling").click();
    await page.locator("#pause").fill("x");
    assert.notEqual(await page.locator("#pause-error").textContent(), "");
    await page.locator("#pause").fill("1s");
    await settled(page);
    assert.ok(await page.locator("#pause").isVisible());
  });
});

describe("everybody", AT_ONCE, () => {
  for (const [name, hash] of Object.entries(STATES)) {
    story(
      `sees all of it on a telephone: ${name}`,
      hash,
      async (page) => {
        const [content, screen] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
        assert.equal(screen, 360);
        assert.ok(content <= screen, `${content} pixels on a screen of ${screen}`);
      },
      { viewport: { width: 360, height: 740 } },
    );
  }

  const LONG = "x".repeat(300);
  for (const hash of [
    `#size?ttl=${LONG}`,
    `#size?${LONG}=1`,
    `#check?check.system=patroni&check.ttl.is=${LONG}`,
    `#watch?watch.a=${LONG}&watch.b=${LONG}`,
  ]) {
    story(
      `sees all of it on a telephone: long words (${hash.slice(0, 20)})`,
      hash,
      async (page) => {
        assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 360);
      },
      { viewport: { width: 360, height: 740 } },
    );
  }

  for (const colorScheme of ["light", "dark"]) {
    for (const [name, hash] of Object.entries(STATES)) {
      const width = ["work", "corrupted"].includes(name) ? 360 : 1280;
      story(
        `can read it: axe, ${colorScheme}, ${name}, ${width} pixels`,
        hash,
        async (page) => {
          await page.waitForTimeout(400); // the plots come last
          await page.evaluate(axe.source);
          const { violations, passes } = await page.evaluate(() => axe.run());
          assert.deepEqual(
            violations.map(({ id, nodes }) => [id, nodes.map(({ html, any }) => [html.slice(0, 160), any[0]?.message])]),
            [],
          );
          assert.ok(
            passes.some(({ id }) => id === "color-contrast"),
            "contrast was looked at",
          );
          await page.screenshot({ path: join(SHOTS, `${name}-${width}-${colorScheme}.png`), fullPage: true });
        },
        { colorScheme, viewport: { width, height: 900 } },
      );
    }
  }

  for (const name of ["size", "redlock", "bounced"]) {
    story(
      `sees all of it on a tablet: ${name}`,
      STATES[name],
      async (page) => {
        assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 768);
        await page.screenshot({ path: join(SHOTS, `${name}-768-dark.png`), fullPage: true });
      },
      { colorScheme: "dark", viewport: { width: 768, height: 1_024 } },
    );
  }

  story("finds the view and the story in the title", "#size", async (page) => {
    const titles = [await page.title()];
    for (const hash of ["#check", "#watch?watch.story=pause", "#watch?watch.story=ticket"]) {
      await page.evaluate((to) => (location.hash = to), hash);
      await settled(page);
      titles.push(await page.title());
    }
    assert.equal(new Set(titles).size, 4, titles.join());
    for (const title of titles) assert.match(title, /fencegate/);
  });

  story("says light or dark for themselves", "", async (page) => {
    const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await paper();
    await page.getByRole("button", { name: "Colours: auto" }).click();
    await page.getByRole("button", { name: "Colours: light" }).click();
    assert.notEqual(await paper(), light);
    await page.reload();
    await page.getByRole("button", { name: "Colours: dark" }).waitFor();
    assert.notEqual(await paper(), light);
  });

  for (const hash of ["", "#size?ttl=30s&holder=83333ppm&rtt=20ms&start=grant&work=2s", "#size?ttl=10s&rtt=3.3s&start=grant"]) {
    for (const width of [1280, 360]) {
      story(
        `no label of the picture is on top of another, ${width} pixels (${hash || "defaults"})`,
        hash,
        async (page) => {
          const overlaps = await page.evaluate(() => {
            const labels = [...document.querySelectorAll("svg.picture text")].map((t) => [
              t.textContent,
              t.getBoundingClientRect(),
            ]);
            const meet = (a, b) => a.left < b.right && b.left < a.right && a.top + 3 < b.bottom && b.top + 3 < a.bottom;
            return labels.flatMap(([a, box], i) =>
              labels
                .slice(i + 1)
                .filter(([, o]) => meet(box, o))
                .map(([b]) => [a, b]),
            );
          });
          assert.deepEqual(overlaps, []);
        },
        { viewport: { width, height: 900 } },
      );
    }
  }
});

describe("the page's surroundings", AT_ONCE, () => {
  it("weighs no more than 130 kB as it is sent, every file by itself; what comes with the last view is not among them", async () => {
    const files = (await readdir(DIST, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
    const worker = await readFile(new URL("sw.js", DIST), "utf8");
    const later = JSON.parse(worker.match(/const LATER = (.*);/)[1]).map((name) => name.split("/").at(-1));
    const weigh = async (some) => {
      const sizes = some.map(async ({ parentPath, name }) => gzipSync(await readFile(join(parentPath, name)), { level: 9 }).length);
      return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
    };
    assert.deepEqual(later.map((name) => name.replace(/-.{8}\./, ".")).sort(), [
      "fencegate_gate_bg.wasm",
      "firmware.uf2",
      "view.css",
      "view.js",
      "worker.js",
    ]);
    const [first, more] = await Promise.all([false, true].map((is) => weigh(files.filter(({ name }) => later.includes(name) === is))));
    console.log(`${first} bytes at first, ${more} with the last view`);
    assert.ok(first > 50_000 && first <= 130_000, `${first} bytes`);
    assert.ok(more > 50_000 && more <= 200_000, `${more} bytes`);
  });

  it("offline after the first load it opens again, whole", async (t) => {
    const { page, trouble, url, close } = await visit(t, DIST);
    await page.locator("#window_us").waitFor();
    await page.evaluate(() => navigator.serviceWorker.ready);
    await page.context().setOffline(true);
    await page.goto(`${url}index.html${STATES.corrupted}`);
    assert.match(await page.locator("#outcome").textContent(), /corrupted/);
    await page.goto(`${url}${STATES.corrupted}`);
    await page.reload();
    assert.match(await page.locator("#outcome").textContent(), /corrupted/);
    await page.getByRole("link", { name: "Size a lease" }).click();
    await field(page, "TTL").fill("20s");
    assert.match(await page.locator("#headline").textContent(), /19\.98/);
    assert.deepEqual(trouble, []);
    await close();
  });

  it("can be installed: its manifest, its icon and its service worker are there", async (t) => {
    const { page, url } = await visit(t, DIST);
    const manifest = await page.evaluate(async () => (await fetch(document.querySelector("link[rel=manifest]").href)).json());
    assert.equal(manifest.display, "standalone");
    for (const { src, sizes, type } of manifest.icons) {
      const answer = await page.request.get(url + src);
      assert.ok(answer.ok() && answer.headers()["content-type"] === type, src);
      if (type !== "image/png") continue;
      const { width, height } = await page.evaluate(async (of) => {
        const { width, height } = await createImageBitmap(await (await fetch(of)).blob());
        return { width, height };
      }, src);
      assert.equal(`${width}x${height}`, sizes);
    }
    assert.deepEqual(manifest.icons.filter(({ type }) => type === "image/png").map(({ sizes }) => sizes), ["192x192", "512x512"]);
    const touch = await page.locator("link[rel=apple-touch-icon]").getAttribute("href");
    assert.ok((await page.request.get(url + touch)).ok());
    assert.ok((await page.request.get(`${url}sw.js`)).ok());
  });

  it("has the icons that its own drawing makes", async () => {
    for (const [name, pixels] of Object.entries(ICONS))
      assert.ok(png(pixels).equals(await readFile(new URL(`../../web/public/${name}`, import.meta.url))), `${name}: run web/icons.mjs`);
  });

  it("a new build takes the old one's place whole, and never beside it", async (t) => {
    const folder = await mkdtemp(join(tmpdir(), "fencegate-build-"));
    t.after(() => rm(folder, { recursive: true }));
    await cp(DIST, folder, { recursive: true });
    const { page, trouble, url } = await visit(t, pathToFileURL(`${folder}/`));
    const title = (of) => of.locator("h1").textContent();
    const ready = () => page.evaluate(() => navigator.serviceWorker.ready.then(({ active }) => active.state));
    await ready();
    await page.waitForFunction(() => navigator.serviceWorker.controller);
    const second = await page.context().newPage();
    await second.goto(url);
    assert.match(await title(second), /How long may I rely/);

    // Another build: its script has another name and says something else, and the old one's is gone.
    const old = (await readdir(join(folder, "assets"))).find((name) => /^index-.*\.js$/.test(name));
    const fresh = "index-another.js";
    const script = await readFile(join(folder, "assets", old), "utf8");
    assert.ok(script.includes("How long may I rely"));
    await rename(join(folder, "assets", old), join(folder, "assets", fresh));
    await writeFile(join(folder, "assets", fresh), script.replace("How long may I rely", "How long may we rely"));
    for (const name of ["index.html", "sw.js"]) {
      const text = await readFile(join(folder, name), "utf8");
      await writeFile(join(folder, name), text.replaceAll(old, fresh).replace(/fencegate-\$\{"\w+"\}|fencegate-\w{16}/, "fencegate-another"));
    }

    // While two pages are open both stay with the old build, whatever is loaded anew.
    await page.reload();
    await page.evaluate(async () => {
      const registration = await navigator.serviceWorker.ready;
      await registration.update();
      while (!registration.waiting) await new Promise((done) => setTimeout(done, 50));
    });
    await page.reload();
    await page.locator("#window_us").waitFor();
    assert.deepEqual([await title(page), await title(second)], Array(2).fill("How long may I rely on my lease?"));

    // The last one is loaded anew, and has the new build, all of it; offline too.
    await second.close();
    await page.reload();
    await page.locator("h1", { hasText: "How long may we rely" }).waitFor();
    await page.locator("#window_us").waitFor();
    assert.deepEqual(await page.evaluate(() => caches.keys()), ["fencegate-another"]);
    await ready();
    await page.context().setOffline(true);
    await page.reload();
    await page.locator("#window_us").waitFor();
    assert.match(await title(page), /How long may we rely/);
    assert.deepEqual(trouble, []);
  });

  it("works on a sub-path", async (t) => {
    const { page, trouble, requests, url } = await visit(t, DIST, { base: "/some/where/" });
    await page.locator("#window_us").waitFor();
    await page.evaluate(() => navigator.serviceWorker.ready);
    assert.ok(
      requests.some((asked) => asked.endsWith(".wasm")),
      "the module was loaded",
    );
    assert.deepEqual(
      requests.filter((asked) => !asked.startsWith(url)),
      [],
    );
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
