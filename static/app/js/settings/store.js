/** The user's settings, stored on the server, so that every device has them. */

import { signal } from "@preact/signals";
import { patch } from "../api.js";
import { boot } from "../boot.js";

/**
 * @typedef {{language: "en"|"zh-hans"|null, theme: "system"|"light"|"dark", text_size: "small"|"normal"|"large",
 *   text_width: "normal"|"wide", send_key: "enter"|"ctrl_enter", notifications: boolean,
 *   instructions: string}} Settings
 */

export const personal = signal(boot.settings);

/** Store a change and apply it. On failure, throw and change nothing. @param {Partial<Settings>} change */
export async function changeSettings(change) {
  personal.value = await patch("/me/settings", change);
  const { text_size: size, text_width: width } = personal.value;
  Object.assign(document.documentElement.dataset, { textSize: size, textWidth: width });
  // Reload, because every sentence is translated once, when the page starts.
  if ("language" in change) location.reload();
}
