/** The menu of further actions on a message. */

import { branchHere, forkAt } from "../commands/branches.js";
import { askToForgetMessage, pinMessage } from "../commands/keeping.js";
import { regenerate } from "../commands/messages.js";
import { openRun } from "../commands/runs.js";
import { copyText } from "../copy.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { offeredModels, showToast } from "../state/store.js";
import { Icon } from "./icons.js";
import { Menu } from "./Menu.js";

/** @typedef {import("../state/types.js").ViewMessage} ViewMessage */

/** @param {{message: ViewMessage, isLast?: boolean, isRunning?: boolean}} props */
export function MessageMenu({ message, isLast = false, isRunning = false }) {
  const items = itemsOf(message, isRunning ? [] : anewItems(message, isLast));
  return html`<${Menu} label=${t("More")} className="icon-button is-small" align="start" items=${items}><${Icon} name="dots" size=${16} /><//>`;
}

/**
 * @param {ViewMessage} message @param {import("./Menu.js").MenuItem[]} anew @returns {import("./Menu.js").MenuItem[]}
 */
function itemsOf({ id, run, text, role, isPinned, isForgotten }, anew) {
  /** @type {import("./Menu.js").MenuItem[]} */
  const ofRun = run ? [{ label: t("How this answer was made"), icon: "chart", onSelect: () => openRun(run.id) }] : [];
  const pin = { label: isPinned ? t("Unpin") : t("Pin in context"), icon: "pin", onSelect: () => pinMessage(id, !isPinned) };
  const forget = { label: t("Forget…"), icon: "trash", isDanger: true, onSelect: () => askToForgetMessage(id) };
  const fork = { label: t("New chat from here"), icon: "branch", onSelect: () => forkAt(id) };
  const ofText = text && role === "assistant" ? [{ label: t("Copy as Markdown"), icon: "copy", onSelect: () => copyMarkdown(text) }] : [];
  return isForgotten ? ofRun : [...anew, pin, fork, ...ofText, ...ofRun, null, forget];
}

/** @param {string} text */
async function copyMarkdown(text) {
  const isCopied = await copyText(text);
  showToast(isCopied ? t("Copied") : t("Not copied"), isCopied ? "plain" : "bad");
}

const MOST_MODELS = 6;

/**
 * Return the actions that regenerate the answer with another model, or begin a branch after it.
 * @param {ViewMessage} message @param {boolean} isLast
 */
function anewItems({ id, role, model }, isLast) {
  if (role !== "assistant") return [];
  const others = offeredModels.value.filter(({ name }) => name !== model).slice(0, MOST_MODELS);
  const items = others.map(({ name }) => ({
    label: t("Regenerate with {model}", { model: name }),
    icon: "retry",
    onSelect: () => regenerate(id, name),
  }));
  if (isLast) return items;
  return [...items, { label: t("Branch from here"), icon: "branch", onSelect: () => branchHere(id) }];
}

export const PinMark = () =>
  html`<p class="outcome"><${Icon} name="pin" size=${14} />${t("Pinned: always in context")}</p>`;
