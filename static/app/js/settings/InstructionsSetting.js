/** The user's instructions for every answer. */

import { useSignal } from "@preact/signals";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { personal } from "./store.js";

const MAX_CHARS = 8000;

/** @param {{change: (change: Partial<import("./store.js").Settings>) => Promise<boolean>}} props */
export function InstructionsSetting({ change }) {
  const saved = useSignal(false);
  const save = async (/** @type {any} */ event) => {
    event.preventDefault();
    saved.value = await change({ instructions: String(new FormData(event.target).get("instructions")) });
  };
  return html`<form class="setting is-stacked" onSubmit=${save} onInput=${() => (saved.value = false)}>
    <div><h3 id="setting-instructions">${t("Custom instructions")}</h3><p>${t("Given to the model in each of your chats, except where the memory is shared.")}</p></div>
    <div class="field"><textarea name="instructions" dir="auto" rows="4" maxlength=${MAX_CHARS} aria-labelledby="setting-instructions"
      placeholder=${t("Answer briefly. I write Python, and I am new to statistics.")} defaultValue=${personal.value.instructions}></textarea></div>
    <div class="dialog-actions"><span class="setting-saved muted" role="status">${saved.value && t("Saved.")}</span>
      <button class="button">${t("Save instructions")}</button></div>
  </form>`;
}
