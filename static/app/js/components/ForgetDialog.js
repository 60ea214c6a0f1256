/** Asks before forgetting, and then shows the receipt and what says the same elsewhere. */

import { useSignal } from "@preact/signals";
import { errorText } from "../commands/conversations.js";
import { forget } from "../commands/forgetting.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { changeUi } from "../state/store.js";
import { closeDialog, Dialog } from "./Dialog.js";
import { Forgotten } from "./ForgetProposal.js";
import { ForGood } from "./ForGood.js";

/** @typedef {import("../commands/forgetting.js").ForgetTarget} ForgetTarget */

/** @param {{title: string, text: string, forgetTarget: ForgetTarget, onDone: () => void}} question */
export const askToForget = (question) => changeUi({ dialog: { kind: "forget", ...question } });

/** @param {{title: string, text: string, forgetTarget: ForgetTarget, onDone: () => void}} props */
export function ForgetDialog({ title, text, forgetTarget, onDone }) {
  const done = useSignal(/** @type {Awaited<ReturnType<typeof forget>>|null} */ (null));
  const isForGood = useSignal(false);
  const problem = useSignal("");
  const isBusy = useSignal(false);
  const confirm = async () => {
    isBusy.value = true;
    problem.value = "";
    try {
      done.value = await forget(forgetTarget, isForGood.value);
      onDone();
    } catch (error) {
      problem.value = errorText(error);
    }
    isBusy.value = false;
  };
  if (done.value) return html`<${Done} answer=${done.value} isForGood=${isForGood.value} onDone=${onDone} />`;
  return html`<${Dialog} title=${title} className="is-small">
    <p>${text}</p>
    <${ForGood} choice=${isForGood} />
    ${problem.value && html`<p class="form-error" role="alert">${problem.value}</p>`}
    <div class="dialog-actions">
      <button type="button" class="button" onClick=${closeDialog}>${t("Cancel")}</button>
      <button type="button" class="button is-danger" disabled=${isBusy.value} onClick=${confirm}>${isBusy.value ? t("Forgetting…") : t("Forget")}</button>
    </div>
  <//>`;
}

/** @param {{answer: Awaited<ReturnType<typeof forget>>, isForGood: boolean, onDone: () => void}} props */
function Done({ answer, isForGood, onDone }) {
  return html`<${Dialog} title=${t("It is forgotten")} className="is-small">
    <${Forgotten} answer=${answer} isForGood=${isForGood} onDone=${onDone} />
    <div class="dialog-actions"><button type="button" class="button" onClick=${closeDialog}>${t("Close")}</button></div>
  <//>`;
}
