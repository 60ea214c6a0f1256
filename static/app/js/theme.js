/** The theme: light, dark or the system's. A signed-in user has it on every device, other pages use this browser's. */

import { signal } from "@preact/signals";
import { boot } from "./boot.js";
import { errorText } from "./commands/conversations.js";
import { changeSettings, personal } from "./settings/store.js";
import { showToast } from "./state/store.js";
import { recall, remember } from "./storage.js";

/** @typedef {"system"|"light"|"dark"} Theme */

export const theme = signal(/** @type {Theme} */ (boot.settings?.theme ?? recall("theme") ?? "system"));

/**
 * Store the theme in this browser, so that `theme-boot.js` applies it to pages without a signed-in user.
 * @param {Theme} chosen
 */
function keepHere(chosen) {
  remember("theme", chosen === "system" ? null : chosen);
}

keepHere(theme.value);

/** @param {Theme} chosen */
function show(chosen) {
  theme.value = chosen;
  keepHere(chosen);
  if (chosen === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
}

/** Show a theme at once, and restore the previous one if it cannot be stored. @param {Theme} chosen */
export function chooseTheme(chosen) {
  show(chosen);
  changeSettings({ theme: chosen }).catch((error) => {
    if (theme.value === chosen) show(personal.value.theme);
    showToast(errorText(error), "bad");
  });
}
