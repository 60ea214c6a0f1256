// Show the offline page if the network fails. No other page of the service is ever cached.
const CACHE = "offline-{{ version }}";
const [PAGE, ...PARTS] = {{ files }};

async function keepPage() {
  const cache = await caches.open(CACHE);
  // Fetch without cookies, so that the stored page belongs to no user.
  await cache.addAll([PAGE, ...PARTS].map((address) => new Request(address, { credentials: "omit" })));
}

async function dropOlder() {
  const names = await caches.keys();
  await Promise.all(names.filter((name) => name.startsWith("offline-") && name !== CACHE).map((name) => caches.delete(name)));
}

const kept = async (address) => (await caches.match(address, { ignoreVary: true })) ?? Response.error();

addEventListener("install", (event) => {
  // Replace an older worker at once, because no page depends on the version that runs.
  skipWaiting();
  event.waitUntil(keepPage());
});

addEventListener("activate", (event) => event.waitUntil(dropOlder()));

addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (origin !== location.origin || request.method !== "GET" || pathname.startsWith("/api/")) return;
  const address = request.destination === "document" ? PAGE : PARTS.find((part) => part === pathname);
  if (address) event.respondWith(fetch(request).catch(() => kept(address)));
});
