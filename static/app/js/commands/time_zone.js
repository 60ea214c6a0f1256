/** Tells the server where this person's day begins: the daily memory files follow it. */

import { patch } from "../api.js";
import { boot } from "../boot.js";
import { recall, remember } from "../storage.js";

/** Several people may use one browser. */
const NAME = `time-zone.${boot.user?.id}`;

export async function reportTimeZone() {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (!zone || recall(NAME) === zone) return;
  try {
    await patch("/me", { time_zone: zone });
    remember(NAME, zone);
  } catch {
    // A zone this server does not know: its days begin in UTC.
    return;
  }
}
