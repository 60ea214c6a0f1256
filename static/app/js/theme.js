/** Light, dark, or as the system has it. `theme-boot.js` applies it before the first paint. */

import { signal } from "@preact/signals";
import { recall, remember } from "./storage.js";

/** @typedef {"system"|"light"|"dark"} Theme */

export const theme = signal(/** @type {Theme} */ (recall("theme") ?? "system"));

/** @param {Theme} chosen */
export function chooseTheme(chosen) {
  theme.value = chosen;
  remember("theme", chosen === "system" ? null : chosen);
  if (chosen === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
}
