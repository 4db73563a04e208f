// Offline: everything that the page consists of is kept at the first visit, and answered from there. What is built
// fills in the version and the files; a new build has a new version, and the old one's files go.

const CACHE = `fencegate-${"VERSION"}`;
const FILES = ["FILES"];

addEventListener("install", (event) => {
  event.waitUntil(
    caches
      .open(CACHE)
      .then((cache) => cache.addAll(FILES))
      .then(() => skipWaiting()),
  );
});

addEventListener("activate", (event) => {
  const old = (name) => name.startsWith("fencegate-") && name !== CACHE;
  const clear = caches.keys().then((names) => Promise.all(names.filter(old).map((name) => caches.delete(name))));
  event.waitUntil(clear.then(() => clients.claim()));
});

addEventListener("fetch", (event) => {
  if (event.request.method !== "GET" || new URL(event.request.url).origin !== location.origin) return;
  // The page is kept under its folder, and asked for by its file's name too.
  const kept = caches
    .open(CACHE)
    .then((cache) => cache.match(event.request.url.replace(/\/index\.html(?=[?#]|$)/, "/"), { ignoreSearch: true }));
  event.respondWith(kept.then((answer) => answer ?? fetch(event.request)));
});
