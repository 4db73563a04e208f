// Offline: everything that the page consists of is kept at the first visit, and answered from there, always from one
// build. What is built fills in the version and the files. A new build is fetched whole beside the old one, and takes
// over where no page of the old one is open any more: when the last of them is closed, or loaded anew.

const CACHE = `fencegate-${"VERSION"}`;
const FILES = ["FILES"];
// What a view brings along that not everybody opens: it is kept once that has been open. Its files' names follow from what
// is in them, so that none of another build can be among them.
const LATER = ["LATER"];

addEventListener("install", (event) => {
  // Past the browser's own cache: what it has of an address may be another build's.
  const fresh = FILES.map((file) => new Request(file, { cache: "reload" }));
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(fresh)));
});

addEventListener("activate", (event) => {
  const old = (name) => name.startsWith("fencegate-") && name !== CACHE;
  const clear = caches.keys().then((names) => Promise.all(names.filter(old).map((name) => caches.delete(name))));
  event.waitUntil(clear.then(() => clients.claim()));
});

addEventListener("message", (event) => {
  if (event.data === "take over") skipWaiting();
  // Without a network, or with a newer build at the server, it stays as it was.
  if (event.data === "keep the gate") event.waitUntil(keep().catch(() => undefined));
});

async function keep() {
  const cache = await caches.open(CACHE);
  if (LATER.length && !(await cache.match(LATER.at(-1)))) await cache.addAll(LATER);
}

async function answer(request) {
  if (request.mode === "navigate" && registration.waiting && (await clients.matchAll()).length < 2) {
    registration.waiting.postMessage("take over");
    // An empty page, without an icon to ask for, that is loaded anew at once: then the new build answers.
    return new Response('<link rel="icon" href="data:,">', { headers: { "content-type": "text/html", refresh: "0" } });
  }
  // The page is kept under its folder, and asked for by its file's name too.
  const cache = await caches.open(CACHE);
  const kept = await cache.match(request.url.replace(/\/index\.html(?=[?#]|$)/, "/"), { ignoreSearch: true });
  return kept ?? fetch(request);
}

addEventListener("fetch", (event) => {
  if (event.request.method !== "GET" || new URL(event.request.url).origin !== location.origin) return;
  event.respondWith(answer(event.request));
});
