// Reload the offline page as soon as the server responds again.
const PAUSE_MS = 3000;

async function look() {
  const answer = await fetch("/healthz", { cache: "no-store" }).catch(() => null);
  if (answer?.ok) location.reload();
}

setInterval(look, PAUSE_MS);
addEventListener("online", look);
