/** A text editor in place. Errors from the server appear below it, and nothing typed is lost. */

import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { errorText } from "../../commands/conversations.js";
import { html } from "../../html.js";
import { t } from "../../i18n.js";

/**
 * Uses the `onSave` of the first rendering, which knows the version being edited, even if a newer one arrives
 * meanwhile.
 * @param {{label: string, text: string, action: string, isCode?: boolean, mayBeEmpty?: boolean,
 *   onSave: (text: string) => Promise<unknown>, onCancel: () => void}} props
 */
export function TextEditor({ label, text, action, isCode = false, mayBeEmpty = false, onSave, onCancel }) {
  const area = useRef(/** @type {HTMLTextAreaElement|null} */ (null));
  const words = useSignal(text);
  const saveText = useRef(onSave).current;
  const problem = useSignal("");
  const isBusy = useSignal(false);
  useLayoutEffect(() => area.current?.focus(), []);
  const save = async (/** @type {Event} */ event) => {
    event.preventDefault();
    isBusy.value = true;
    problem.value = "";
    try {
      await saveText(words.value);
    } catch (error) {
      problem.value = errorText(error);
    }
    isBusy.value = false;
  };
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    // In an input method, Escape closes the list of candidates.
    if (event.isComposing || event.key !== "Escape") return;
    event.preventDefault();
    onCancel();
  };
  const rows = Math.min(24, Math.max(4, words.value.split("\n").length + 1));
  return html`<form class="text-editor" onSubmit=${save}>
    <textarea ref=${area} class=${isCode ? "is-code" : ""} rows=${rows} dir="auto" aria-label=${label} value=${words.value}
      onInput=${(/** @type {any} */ event) => (words.value = event.target.value)} onKeyDown=${onKeyDown}></textarea>
    ${problem.value && html`<p class="form-error" role="alert">${problem.value}</p>`}
    <div class="card-actions">
      <button type="submit" class="button is-small is-primary" disabled=${isBusy.value || (!mayBeEmpty && !words.value.trim())}>${action}</button>
      <button type="button" class="button is-small" onClick=${onCancel}>${t("Cancel")}</button>
    </div>
  </form>`;
}
