// Offline use: the files of the page are kept when the site is first visited, and served from there. The model's files
// are kept by files.js when they are first loaded. A new version replaces all files of the page at once.

const FILES = []; // written by the build, with VERSION
const VERSION = "";
const LARGE = []; // names of the model's files

// Other sites of this origin have caches too.
const OURS = `maskoban-page ${registration.scope} `;
const PAGE = OURS + VERSION;

self.addEventListener("install", (event) => {
  const keep = async () => {
    const cache = await caches.open(PAGE);
    await cache.addAll(FILES.map((file) => new Request(file, { cache: "no-cache" })));
  };
  event.waitUntil(keep());
});

self.addEventListener("activate", (event) => {
  const tidy = async () => {
    const old = (await caches.keys()).filter((name) => name.startsWith(OURS) && name !== PAGE);
    await Promise.all(old.map((name) => caches.delete(name)));
    const files = await caches.open("maskoban-files"), wanted = new Set(LARGE.map((file) => new URL(file, location).href));
    for (const request of await files.keys())
      if (request.url.startsWith(registration.scope) && !wanted.has(request.url)) await files.delete(request);
    await self.clients.claim();
  };
  event.waitUntil(tidy());
});

self.addEventListener("fetch", (event) => {
  if (event.request.method !== "GET" || new URL(event.request.url).origin !== location.origin) return;
  // A link may hold a board behind ? or #; the page is the same.
  const options = { ignoreSearch: event.request.mode === "navigate" };
  event.respondWith(caches.match(event.request, options).then((kept) => kept ?? fetch(event.request)));
});
