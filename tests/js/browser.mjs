// Chromium as it is installed, and a page in it that keeps record of everything that goes wrong or leaves the machine.

import { chromium } from "playwright-core";

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export const launch = () =>
  chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS });

/** A fresh page; `trouble` collects errors, refused policies and failed requests, `requests` every address asked for. */
export async function open(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(5_000);
  const page = await context.newPage();
  const [trouble, requests] = [[], []];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) trouble.push(message.text());
  });
  page.on("pageerror", (error) => trouble.push(String(error)));
  page.on("request", (request) => requests.push(request.url()));
  page.on("response", (response) => {
    if (!response.ok()) trouble.push(`${response.status()} ${response.url()}`);
  });
  await page.goto(url);
  return { page, trouble, requests, close: () => context.close() };
}
