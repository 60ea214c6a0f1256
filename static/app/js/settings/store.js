/** What a person has set for themselves: kept on the server, so that every device has it. */

import { signal } from "@preact/signals";
import { patch } from "../api.js";
import { boot } from "../boot.js";

/**
 * @typedef {{language: "en"|"zh-hans"|null, theme: "system"|"light"|"dark", text_size: "small"|"normal"|"large",
 *   text_width: "normal"|"wide", send_key: "enter"|"ctrl_enter", notifications: boolean, instructions: string}} Settings
 */

export const personal = signal(boot.settings);

/** Stores the change and applies it; a failure is thrown, and nothing has changed. @param {Partial<Settings>} change */
export async function changeSettings(change) {
  personal.value = await patch("/me/settings", change);
  const { text_size: size, text_width: width } = personal.value;
  Object.assign(document.documentElement.dataset, { textSize: size, textWidth: width });
  // Every sentence is read once, when the page starts.
  if ("language" in change) location.reload();
}
