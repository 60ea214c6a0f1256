/** Deletes the user's account, after asking for the password. */

import { useSignal } from "@preact/signals";
import { remove } from "../api.js";
import { errorText } from "../commands/conversations.js";
import { leave } from "../commands/session.js";
import { html } from "../html.js";
import { t } from "../i18n.js";

export function DeleteAccount() {
  const isAsked = useSignal(false);
  const problem = useSignal("");
  const isBusy = useSignal(false);
  const confirm = async (/** @type {any} */ event) => {
    event.preventDefault();
    problem.value = "";
    isBusy.value = true;
    try {
      await remove("/me", { password: String(new FormData(event.target).get("password")) });
      leave();
    } catch (error) {
      problem.value = errorText(error);
      isBusy.value = false;
    }
  };
  if (!isAsked.value)
    return html`<button type="button" class="button is-danger" onClick=${() => (isAsked.value = true)}>${t("Delete account…")}</button>`;
  return html`<form onSubmit=${confirm}>
    <p>${t("All conversations, memory, files, tokens and usage of this account will be gone for good. It cannot be undone.")}</p>
    ${problem.value && html`<p class="form-error" role="alert">${problem.value}</p>`}
    <label class="field"><span>${t("Your password")}</span><input name="password" type="password" required autofocus autocomplete="current-password" /></label>
    <div class="dialog-actions">
      <button type="button" class="button" onClick=${() => (isAsked.value = false)}>${t("Cancel")}</button>
      <button class="button is-danger" disabled=${isBusy.value}>${t("Delete my account")}</button>
    </div>
  </form>`;
}
