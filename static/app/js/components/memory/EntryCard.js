/** One memory entry: its text, its origin, its history, and a way to forget it. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { errorText } from "../../commands/conversations.js";
import { editEntry, entryHistory, revertEntry } from "../../commands/memory.js";
import { formatMoment } from "../../format.js";
import { html } from "../../html.js";
import { t } from "../../i18n.js";
import { showToast } from "../../state/store.js";
import { Icon } from "../icons.js";
import { Markdown } from "../Markdown.js";
import { askToForget } from "../ForgetDialog.js";
import { TextEditor } from "./TextEditor.js";

/** @typedef {import("../../commands/memory.js").Entry} Entry */
/** @typedef {import("../../commands/memory.js").Revision} Revision */

/** @type {Record<string, string>} */
const AUTHORS = { user: t("You"), extraction: t("Written by AI"), operator: t("An operator") };

/** @param {{entry: Entry, onChanged: () => void, onForgotten: () => void}} props */
export function EntryCard({ entry, onChanged, onForgotten }) {
  const open = useSignal(/** @type {"edit"|"history"|null} */ (null));
  const toggle = (/** @type {"edit"|"history"} */ what) => (open.value = open.value === what ? null : what);
  const save = async (/** @type {string} */ text) => {
    await editEntry(entry, text);
    open.value = null;
    onChanged();
  };
  const forget = () =>
    askToForget({
      title: t("Forget this entry?"),
      text: t("It will be gone for good: from this day, the search, the profile and every summary that repeats it. It will not be learned again."),
      forgetTarget: { entry_id: entry.id },
      onDone: onForgotten,
    });
  return html`<section class="entry" id=${`e-${entry.id}`}>
    <div class="entry-head">
      <time datetime=${entry.created_at}>${formatMoment(entry.created_at)}</time>
      <${Origin} entry=${entry} />
      ${entry.shared_memory_of && html`<span class="badge is-quiet">${t("Shared by {agent}", { agent: entry.shared_memory_of })}</span>`}
      ${entry.author === "operator" && html`<span class="badge is-quiet">${t("Edited by an operator")}</span>`}
      ${entry.author === "user" && html`<span class="badge is-quiet">${entry.conversation_id ? t("Edited by you") : t("Written by you")}</span>`}
    </div>
    ${
      open.value === "edit"
        ? html`<${TextEditor} label=${t("Text of the entry")} text=${entry.text} action=${t("Save")} onSave=${save} onCancel=${() => (open.value = null)} />`
        : html`<${Markdown} text=${entry.text} />`
    }
    <div class="entry-tools">
      <button type="button" class="button is-small" aria-expanded=${open.value === "edit"} onClick=${() => toggle("edit")}><${Icon} name="rename" size=${16} />${t("Edit")}</button>
      <button type="button" class="button is-small" aria-expanded=${open.value === "history"} onClick=${() => toggle("history")}><${Icon} name="clock" size=${16} />${t("History")}</button>
      <button type="button" class="button is-small" onClick=${forget}><${Icon} name="trash" size=${16} />${t("Forget")}</button>
    </div>
    ${open.value === "history" && html`<${History} key=${entry.revision} entry=${entry} onChanged=${onChanged} />`}
  </section>`;
}

/** @param {{entry: Entry}} props */
function Origin({ entry: { conversation_id: conversation, first_message_id: first, author } }) {
  if (conversation)
    return html`<a href=${`/c/${conversation}${first ? `#m-${first}` : ""}`}><${Icon} name="link" size=${14} />${t("From this conversation")}</a>`;
  return author === "user" ? null : html`<span>${t("Its conversation no longer exists")}</span>`;
}

/** @param {{entry: Entry, onChanged: () => void}} props */
function History({ entry, onChanged }) {
  const revisions = useSignal(/** @type {Revision[]|null} */ (null));
  const problem = useSignal("");
  useEffect(() => {
    entryHistory(entry.id).then(
      (found) => (revisions.value = found),
      (error) => (problem.value = errorText(error)),
    );
  }, []);
  const restore = async (/** @type {number} */ revision) => {
    try {
      await revertEntry(entry.id, revision);
      onChanged();
    } catch (error) {
      showToast(errorText(error), "bad");
    }
  };
  if (problem.value) return html`<p class="form-error" role="alert">${problem.value}</p>`;
  if (!revisions.value) return html`<p class="shimmer" role="status">${t("Loading…")}</p>`;
  return html`<ol class="revisions">${revisions.value.map(
    (one) => html`<li class="revision" key=${one.revision}>
      <p class="entry-head"><time datetime=${one.written_at}>${formatMoment(one.written_at)}</time>
        <span>${AUTHORS[one.author] ?? one.author}</span>
        ${one.is_current ? html`<span class="badge is-quiet">${t("Now")}</span>` : html`<button type="button" class="link" onClick=${() => restore(one.revision)}>${t("Restore")}</button>`}</p>
      <p class="revision-text" dir="auto">${one.text}</p>
    </li>`,
  )}</ol>`;
}
