/** The user's prompts, to create, change and delete, and the prompts that operators offer. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { patch, post, remove } from "../api.js";
import { errorText } from "../commands/conversations.js";
import { Dialog } from "../components/Dialog.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { loadPrompts, prompts, promptsWith } from "./store.js";

/** @typedef {import("./store.js").Prompt} Prompt */

const MANY = 8;

export function PromptsDialog() {
  const filter = useSignal("");
  const edited = useSignal(/** @type {Partial<Prompt>|null} */ (null));
  const deleted = useSignal(/** @type {Prompt|null} */ (null));
  const problem = useSignal("");
  useEffect(() => {
    loadPrompts().catch((error) => (problem.value = errorText(error)));
  }, []);
  const attempt = async (/** @type {() => Promise<unknown>} */ work) => {
    try {
      await work();
      await loadPrompts();
      problem.value = "";
      edited.value = null;
    } catch (error) {
      problem.value = errorText(error);
    }
  };
  const drop = (/** @type {Prompt} */ one) =>
    attempt(async () => {
      await remove(`/prompts/${one.id}`);
      deleted.value = one;
    });
  const bringBack = (/** @type {Prompt} */ { name, about, text }) =>
    attempt(async () => {
      await post("/prompts", { name, about, text });
      deleted.value = null;
    });
  const found = prompts.value.length > MANY ? promptsWith(filter.value) : prompts.value;
  return html`<${Dialog} title=${t("Prompts")}>
    <p>${t("Type / and the name of a prompt in the message box to put its text there.")}</p>
    ${problem.value && html`<p class="form-error" role="alert">${problem.value}</p>`}
    ${deleted.value && html`<p role="status">${t("Prompt deleted.")} <button type="button" class="link" onClick=${() => deleted.value && bringBack(deleted.value)}>${t("Undo")}</button></p>`}
    ${
      edited.value
        ? html`<${PromptForm} key=${edited.value.id ?? ""} prompt=${edited.value} save=${attempt} cancel=${() => (edited.value = null)} />`
        : html`${prompts.value.length > MANY && html`<label class="field"><span>${t("Find a prompt")}</span><input type="search" value=${filter.value} onInput=${(/** @type {any} */ event) => (filter.value = event.target.value)} autocomplete="off" /></label>`}
          <ul class="trash">${found.map((one) => html`<${Row} key=${one.id} prompt=${one} edit=${() => (edited.value = one)} drop=${() => drop(one)} />`)}</ul>
          <p class="muted" role="status">${!found.length && filter.value && t("Nothing was found.")}</p>
          <div class="dialog-actions"><button type="button" class="button is-primary" onClick=${() => (edited.value = {})}>${t("New prompt")}</button></div>`
    }
  <//>`;
}

/** @param {{prompt: Prompt, edit: () => void, drop: () => void}} props */
function Row({ prompt: { name, about, text, is_mine: isMine }, edit, drop }) {
  return html`<li class="trash-row"><span class="trash-text"><span><code>/${name}</code></span><small class="muted">${about || text}</small></span>
    ${
      isMine
        ? html`<button type="button" class="button" aria-label=${t("Edit {title}", { title: name })} onClick=${edit}>${t("Edit")}</button>
          <button type="button" class="button is-danger" aria-label=${t("Delete {title}", { title: name })} onClick=${drop}>${t("Delete")}</button>`
        : html`<small class="muted">${t("For everybody")}</small>`
    }</li>`;
}

/** @param {{prompt: Partial<Prompt>, save: (work: () => Promise<unknown>) => void, cancel: () => void}} props */
function PromptForm({ prompt, save, cancel }) {
  const submit = (/** @type {any} */ event) => {
    event.preventDefault();
    const fields = Object.fromEntries(new FormData(event.target));
    save(() => (prompt.id ? patch(`/prompts/${prompt.id}`, fields) : post("/prompts", fields)));
  };
  return html`<form onSubmit=${submit}>
    <label class="field"><span>${t("Name, typed after the slash")}</span>
      <input name="name" required maxlength="40" pattern="[a-z0-9][a-z0-9_\\-]*" title=${t("Small letters, digits, - and _")} autocapitalize="none" defaultValue=${prompt.name ?? ""} autofocus /></label>
    <label class="field"><span>${t("What it is for")}</span><input name="about" maxlength="150" defaultValue=${prompt.about ?? ""} /></label>
    <label class="field"><span>${t("Text")}</span><textarea name="text" required rows="8" maxlength="32000" defaultValue=${prompt.text ?? ""}></textarea></label>
    <div class="dialog-actions"><button type="button" class="button" onClick=${cancel}>${t("Cancel")}</button>
      <button class="button is-primary">${t("Save")}</button></div>
  </form>`;
}
