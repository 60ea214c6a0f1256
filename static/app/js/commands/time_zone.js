/** Reports the user's time zone to the server, because the daily memory files begin at the user's midnight. */

import { patch } from "../api.js";
import { boot } from "../boot.js";
import { recall, remember } from "../storage.js";

/** Several users may share one browser. */
const NAME = `time-zone.${boot.user?.id}`;

export async function reportTimeZone() {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (!zone || recall(NAME) === zone) return;
  try {
    await patch("/me", { time_zone: zone });
    remember(NAME, zone);
  } catch {
    // If the server does not know the zone, days begin in UTC.
    return;
  }
}
