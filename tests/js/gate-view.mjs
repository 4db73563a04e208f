// What a visitor sees and presses in the page's view of a gate.

export const button = (page, name) => page.getByRole("button", { name, exact: true });
export const press = (page, name) => button(page, name).click({ timeout: 20_000 });
export const told = (page, words) => page.locator("#told", { hasText: words }).waitFor({ timeout: 30_000 });
export const lit = (page, n, yes) => page.locator(`#pin-${n}${yes ? ".lit" : ":not(.lit)"}`).waitFor({ timeout: 10_000 });
export const frames = (page) => page.locator("#frames").innerText();
/** What a holder does. */
export const holder = (page, name, words) =>
  page.locator(`.holder.w${name === "A" ? 0 : 1}`, { hasText: words }).waitFor({ timeout: 20_000 });
export const fence = (page, words) => page.locator("#fence", { hasText: words }).waitFor({ timeout: 20_000 });

/** Before the board is there: keeps its worker as `window.pico`, and what it says as `window.heard`, newest last. */
export const overhear = (page) =>
  page.evaluate(() => {
    window.heard = [];
    const Plain = Worker;
    window.Worker = class extends Plain {
      constructor(...what) {
        super(...what);
        window.pico = this;
        this.addEventListener("message", ({ data }) => window.heard.push(data));
      }
    };
  });

/** The worker says something, as the page hears it. */
export const says = (page, data) =>
  page.evaluate((data) => void window.pico.dispatchEvent(new MessageEvent("message", { data })), data);

/**
 * Stops the clock that the holders and their lock service go by, until `window.startClock` lets it go on from there: nothing
 * runs out meanwhile, however slow the machine is. Timers fire as ever, so who drives goes on with it.
 */
export const stopClock = (page) =>
  page.evaluate(() => {
    const real = () => Performance.prototype.now.call(performance);
    const now = performance.now();
    performance.now = () => now;
    window.startClock = () => {
      const lost = real() - now;
      performance.now = () => real() - lost;
    };
  });
