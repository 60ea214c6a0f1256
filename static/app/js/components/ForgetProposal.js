/** A proposal of what to forget. Only what the user chooses is forgotten. */

import { useSignal } from "@preact/signals";
import { ApiError } from "../api.js";
import { errorText } from "../commands/conversations.js";
import { confirmForgetting, readProposal } from "../commands/forgetting.js";
import { formatMoment, plainText } from "../format.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { ForGood } from "./ForGood.js";
import { Icon } from "./icons.js";
import { useLoaded, Waiting } from "./loading.js";
import { ReceiptView } from "./Receipt.js";

/** @typedef {import("../commands/forgetting.js").Proposal} Proposal */
/** @typedef {import("../commands/forgetting.js").ForgetItem} ForgetItem */
/** @typedef {import("../commands/forgetting.js").ForgetAnswer} ForgetAnswer */

/** Render a proposal in the chat, below the message that asked to forget. @param {{id: string}} props */
export function ForgetCard({ id }) {
  const isClosed = useSignal(false);
  /** Close the card if the proposal was deleted together with what it was about. @param {unknown} error */
  const closeIfGone = (error) => {
    if (!(error instanceof ApiError && error.status === 404)) throw error;
    isClosed.value = true;
    return null;
  };
  const { loaded: proposal, problem, again } = useLoaded(() => readProposal(id).catch(closeIfGone), id);
  const isEmpty = !proposal?.items.length && !proposal?.receipt;
  if (isClosed.value || (isEmpty && !problem)) return null;
  return html`<section class="card forget-card" aria-label=${t("Forget")}>
    <${Icon} name="trash" />
    <div class="card-body">
      ${proposal ? html`<${ForgetProposal} proposal=${proposal} isAsking onCancel=${() => (isClosed.value = true)} />` : html`<${Waiting} problem=${problem} again=${again} />`}</div>
  </section>`;
}

/**
 * @param {{proposal: Proposal, isAsking?: boolean, isForGood?: boolean, onDone?: () => void,
 *   onCancel?: () => void}} props
 */
export function ForgetProposal({ proposal, isAsking = false, isForGood = false, onDone, onCancel }) {
  const forGood = useSignal(isForGood);
  const chosen = useSignal(new Set(proposal.items.map((item) => item.id)));
  const answer = useSignal(/** @type {ForgetAnswer|null} */ (proposal.receipt ?? null));
  const problem = useSignal("");
  const isBusy = useSignal(false);
  if (answer.value)
    return html`${isAsking && html`<p role="status"><strong>${t("It is forgotten.")}</strong></p>`}
      <${Forgotten} answer=${answer.value} isForGood=${forGood.value} onDone=${onDone} />`;
  const toggle = (/** @type {string} */ id) => {
    const next = new Set(chosen.value);
    if (!next.delete(id)) next.add(id);
    chosen.value = next;
  };
  const confirm = async () => {
    isBusy.value = true;
    try {
      answer.value = await confirmForgetting(proposal.proposal_id, [...chosen.value], forGood.value);
      onDone?.();
    } catch (error) {
      problem.value = errorText(error);
    }
    isBusy.value = false;
  };
  return html`${isAsking && html`<p><strong>${t("Forget this?")}</strong> ${t("What you choose will be gone for good: here, in memory, and in every summary that repeats it.")}</p>`}
    <ul class="forget-items">${proposal.items.map((item) => html`<${Choice} key=${item.id} item=${item} isChosen=${chosen.value.has(item.id)} onToggle=${toggle} />`)}</ul>
    <${ForGood} choice=${forGood} />
    ${problem.value && html`<p class="form-error" role="alert">${problem.value}</p>`}
    <div class="card-actions">
      <button type="button" class="button is-small is-danger" disabled=${!chosen.value.size || isBusy.value} onClick=${confirm}>${t("Forget {n} chosen", { n: chosen.value.size })}</button>
      ${onCancel && html`<button type="button" class="button is-small" onClick=${onCancel}>${t("Keep all")}</button>`}
    </div>`;
}

/**
 * Render the receipt, and what says the same elsewhere.
 * @param {{answer: ForgetAnswer, isForGood: boolean, onDone?: () => void}} props
 */
export function Forgotten({ answer, isForGood, onDone }) {
  const hasMore = (answer.proposal?.items.length ?? 0) > 0;
  return html`<${ReceiptView} receipt=${answer} />
    ${hasMore && html`<p class="forget-again">${t("Other places that say the same:")}</p><${ForgetProposal} key=${answer.proposal?.proposal_id} proposal=${answer.proposal} isForGood=${isForGood} onDone=${onDone} />`}`;
}

/** @param {{item: ForgetItem, isChosen: boolean, onToggle: (id: string) => void}} props */
function Choice({ item, isChosen, onToggle }) {
  const kind = item.kind === "entry" ? t("Remembered") : item.role === "assistant" ? t("Assistant") : t("You");
  return html`<li><label class="forget-item"><input type="checkbox" checked=${isChosen} onChange=${() => onToggle(item.id)} />
    <span><span dir="auto">${plainText(item.preview)}</span><small>${kind} · ${formatMoment(item.created_at)}</small></span></label></li>`;
}
