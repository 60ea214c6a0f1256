/** Keyboard shortcuts of the whole page. Ctrl+R and Ctrl+N keep their meaning in the browser. */

import { stopRun } from "./commands/messages.js";
import { goTo } from "./commands/navigation.js";
import { closeTopmost } from "./commands/slash.js";
import { t } from "./i18n.js";
import { changeUi, currentThread, ui } from "./state/store.js";

const isMac = /Mac|iPhone|iPad/.test(navigator.platform);
const CTRL = isMac ? "⌘" : "Ctrl";

export const SHORTCUTS = [
  { keys: [CTRL, "K"], name: t("Search chats, messages and actions") },
  { keys: [CTRL, "Shift", "O"], name: t("New chat") },
  { keys: [CTRL, "Shift", "S"], name: t("Open or close the sidebar") },
  { keys: [CTRL, "P"], name: t("Print the whole chat") },
  { keys: [CTRL, "/"], name: t("Keyboard shortcuts") },
  { keys: ["Shift", "Esc"], name: t("Go to the message box") },
  { keys: ["Esc"], name: t("Stop the answer, or close") },
  { keys: ["↑"], name: t("Edit the last message, in an empty box") },
  { keys: ["Enter"], name: t("Send") },
  { keys: ["Shift", "Enter"], name: t("New line") },
];

const focusOn = (/** @type {string} */ id) => document.getElementById(id)?.focus();

/** @type {Record<string, () => void>} */
const WITH_CTRL = {
  k: () => changeUi({ dialog: ui.value.dialog?.kind === "palette" ? null : { kind: "palette" } }),
  "/": () => changeUi({ dialog: { kind: "shortcuts" } }),
  "shift o": () => goTo(null),
  "shift s": () => changeUi({ sidebar: !ui.value.sidebar }),
};

/** @param {KeyboardEvent} event */
function onKeyDown(event) {
  if (event.defaultPrevented || event.isComposing) return;
  if (event.key === "Escape") return onEscape(event);
  if (!(event.ctrlKey || event.metaKey) || event.altKey) return;
  const key = event.key.toLowerCase();
  // On many keyboards "/" needs Shift.
  const action = WITH_CTRL[event.shiftKey && key !== "/" ? `shift ${key}` : key];
  if (!action) return;
  event.preventDefault();
  action();
}

/** Return whether Escape is for another text field, which it clears or leaves. @param {EventTarget|null} target */
const isTypingElsewhere = (target) =>
  (target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement) && target.id !== "composer" && target.type !== "checkbox" && target.value !== "";

/** Close the topmost open element, or stop the answer if nothing is open. @param {KeyboardEvent} event */
function onEscape(event) {
  if (event.shiftKey) return focusOn("composer");
  const isOverlayOpen = ui.value.dialog || ui.value.image || document.querySelector(".menu:popover-open");
  if (isOverlayOpen || isTypingElsewhere(event.target) || closeTopmost()) return;
  if (ui.value.panel) changeUi({ panel: null });
  else if (matchMedia("(max-width: 860px)").matches && ui.value.sidebar) changeUi({ sidebar: false });
  else if (currentThread.value?.run) stopRun();
}

export function startKeyboard() {
  addEventListener("keydown", onKeyDown);
}
