// The offline page goes as soon as the service answers again.
const PAUSE_MS = 3000;

async function look() {
  const answer = await fetch("/healthz", { cache: "no-store" }).catch(() => null);
  if (answer?.ok) location.reload();
}

setInterval(look, PAUSE_MS);
addEventListener("online", look);
