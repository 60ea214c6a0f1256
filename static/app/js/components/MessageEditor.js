/** A form that edits a question or an answer in its place. */

import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { saveAnswer, sendEdited } from "../commands/branches.js";
import { editQueued } from "../commands/queue.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { editedTexts, stopEditing } from "../state/draft.js";

/** @param {{message: import("../state/types.js").ViewMessage, isQueued?: boolean}} props */
export function MessageEditor({ message, isQueued = false }) {
  const area = useRef(/** @type {HTMLTextAreaElement|null} */ (null));
  const text = useSignal(editedTexts.get(message.id) ?? message.text);
  const isSending = useSignal(false);
  const isAnswer = message.role === "assistant";
  useLayoutEffect(() => {
    area.current?.focus();
    area.current?.setSelectionRange(text.value.length, text.value.length);
    return () => document.getElementById("composer")?.focus();
  }, []);
  const write = (/** @type {any} */ event) => {
    text.value = event.target.value;
    editedTexts.set(message.id, text.value);
  };
  const close = () => stopEditing(message.id);
  const save = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (isSending.value || !text.value.trim()) return;
    isSending.value = true;
    await (isQueued ? editQueued : isAnswer ? saveAnswer : sendEdited)(message, text.value);
    isSending.value = false;
  };
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    if (event.isComposing) return;
    if (event.key === "Escape") {
      event.preventDefault();
      close();
    }
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) save(event);
  };
  return html`<form class="message-editor" onSubmit=${save} onKeyDown=${onKeyDown} aria-label=${t("Edit message")}>
    <textarea ref=${area} dir="auto" rows=${isAnswer ? 12 : 3} aria-label=${t("Message")} value=${text.value} onInput=${write}></textarea>
    <div class="dialog-actions">
      <button type="button" class="button" onClick=${close}>${t("Cancel")}</button>
      <button class="button is-primary" disabled=${isSending.value || !text.value.trim()}>${isQueued || isAnswer ? t("Save") : t("Save & rerun")}</button>
    </div>
  </form>`;
}
