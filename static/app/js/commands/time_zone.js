/** Tells the server where this person's day begins: the daily memory files follow it. */

import { patch } from "../api.js";
import { recall, remember } from "../storage.js";

export async function reportTimeZone() {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (!zone || recall("time-zone") === zone) return;
  try {
    await patch("/me", { time_zone: zone });
    remember("time-zone", zone);
  } catch {
    // A zone this server does not know: its days begin in UTC.
    return;
  }
}
