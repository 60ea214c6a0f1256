/** Extracted entries that wait for approval. Until then, they are in no file, search, recall or profile. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { errorText } from "../../commands/conversations.js";
import { editEntry, loadDays } from "../../commands/memory.js";
import { decideEntry, loadMemorySettings, waitingEntries } from "../../commands/memory_settings.js";
import { formatMoment } from "../../format.js";
import { html } from "../../html.js";
import { t } from "../../i18n.js";
import { memorySettings } from "../../state/memory.js";
import { showToast } from "../../state/store.js";
import { Icon } from "../icons.js";
import { Waiting } from "../loading.js";
import { Markdown } from "../Markdown.js";
import { MoreButton } from "../MoreButton.js";
import { TextEditor } from "./TextEditor.js";

/** @typedef {import("../../commands/memory.js").Entry} Entry */

export function ReviewView() {
  const entries = useSignal(/** @type {Entry[]|null} */ (null));
  const cursor = useSignal(/** @type {string|null} */ (null));
  const problem = useSignal("");
  const load = async (/** @type {string|null} */ from) => {
    problem.value = "";
    try {
      const page = await waitingEntries(from);
      entries.value = from ? [...(entries.value ?? []), ...page.items] : page.items;
      cursor.value = page.next_cursor;
    } catch (error) {
      if (entries.value) showToast(errorText(error), "bad");
      else problem.value = errorText(error);
    }
  };
  useEffect(() => void load(null), []);
  const settle = async () => {
    await load(null);
    loadMemorySettings();
    loadDays();
  };
  const isOff = memorySettings.value && !memorySettings.value.review;
  return html`<article>
    <header class="view-head"><h2 class="day-title">${t("To review")}</h2></header>
    <p class="muted view-note">${isOff ? t("What is extracted is remembered at once. Turn on “Ask me first” to approve each entry.") : t("Nothing here is remembered before you approve it.")}</p>
    ${problem.value && html`<${Waiting} problem=${problem.value} again=${() => load(null)} />`}
    ${entries.value === null && !problem.value && html`<div class="skeletons" role="status" aria-label=${t("Loading…")}><i></i><i></i><i></i></div>`}
    ${entries.value?.length === 0 && html`<p role="status">${t("There is nothing to review.")}</p>`}
    ${(entries.value ?? []).map((entry) => html`<${Proposed} key=${`${entry.id} ${entry.revision}`} entry=${entry} onSettled=${settle} />`)}
    ${cursor.value && html`<${MoreButton} className="button is-wide" label=${t("Earlier")} load=${() => load(cursor.value)} />`}
  </article>`;
}

/** @param {{entry: Entry, onSettled: () => void}} props */
function Proposed({ entry, onSettled }) {
  const isEditing = useSignal(false);
  const isBusy = useSignal(false);
  const decide = async (/** @type {boolean} */ isApproved) => {
    isBusy.value = true;
    try {
      await decideEntry(entry.id, isApproved);
      onSettled();
    } catch (error) {
      showToast(errorText(error), "bad");
    }
    isBusy.value = false;
  };
  const save = async (/** @type {string} */ text) => {
    await editEntry(entry, text);
    isEditing.value = false;
    onSettled();
  };
  return html`<section class="entry">
    <div class="entry-head"><time datetime=${entry.created_at}>${formatMoment(entry.created_at)}</time>
      ${entry.conversation_id && html`<a href=${`/c/${entry.conversation_id}${entry.first_message_id ? `#m-${entry.first_message_id}` : ""}`}><${Icon} name="link" size=${14} />${t("From this conversation")}</a>`}</div>
    ${isEditing.value ? html`<${TextEditor} label=${t("Text of the entry")} text=${entry.text} action=${t("Save")} onSave=${save} onCancel=${() => (isEditing.value = false)} />` : html`<${Markdown} text=${entry.text} />`}
    <div class="entry-tools">
      <button type="button" class="button is-small is-primary" disabled=${isBusy.value} onClick=${() => decide(true)}>${t("Remember")}</button>
      <button type="button" class="button is-small" disabled=${isBusy.value} onClick=${() => decide(false)}>${t("Reject")}</button>
      <button type="button" class="button is-small" aria-expanded=${isEditing.value} onClick=${() => (isEditing.value = !isEditing.value)}>${t("Edit")}</button>
    </div>
  </section>`;
}
