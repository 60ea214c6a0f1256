/** What was forgotten and when, and ways to forget more. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { errorText } from "../../commands/conversations.js";
import { learnAgain, listNotLearned, listReceipts, proposeForgetting } from "../../commands/forgetting.js";
import { loadDays } from "../../commands/memory.js";
import { formatMoment } from "../../format.js";
import { html } from "../../html.js";
import { plural, t } from "../../i18n.js";
import { askToForget } from "../ForgetDialog.js";
import { Icon } from "../icons.js";
import { MoreButton } from "../MoreButton.js";
import { ForgetProposal } from "../ForgetProposal.js";
import { ReceiptView } from "../Receipt.js";

/** @typedef {import("../../commands/forgetting.js").Receipt} Receipt */
/** @typedef {import("../../commands/forgetting.js").Proposal} Proposal */

/** @type {Record<string, string>} */
const WHAT = {
  entry: t("An entry"),
  message: t("A message"),
  conversation: t("A conversation"),
  day: t("A day"),
  everything: t("Everything"),
  chosen: t("What you chose"),
};

export function ForgottenView() {
  const receipts = useSignal(/** @type {Receipt[]|null} */ (null));
  const cursor = useSignal(/** @type {string|null} */ (null));
  const problem = useSignal("");
  const load = async (/** @type {string|null} */ from) => {
    try {
      const page = await listReceipts(from);
      receipts.value = from ? [...(receipts.value ?? []), ...page.items] : page.items;
      cursor.value = page.next_cursor;
    } catch (error) {
      problem.value = errorText(error);
    }
  };
  const reload = () => {
    load(null);
    loadDays();
  };
  useEffect(() => void load(null), []);
  const forgetAll = () =>
    askToForget({
      title: t("Forget everything?"),
      text: t("All your conversations and folders, memory and profile, instructions, prompts and files will be gone for good. Export them first if you may want them again. Your own agents, API tokens and webhooks are kept."),
      forgetTarget: { everything: true },
      onDone: reload,
    });
  return html`<article>
    <header class="view-head"><h2 class="day-title">${t("Forgetting")}</h2>
      <div class="view-tools"><button type="button" class="button is-small" onClick=${forgetAll}>${t("Forget everything…")}</button></div></header>
    <${WishForm} onDone=${reload} />
    ${problem.value && html`<p class="card is-bad" role="alert">${problem.value}</p>`}
    <h2 class="section-title">${t("Receipts")}</h2>
    ${receipts.value?.length === 0 && html`<p class="muted">${t("Nothing has been forgotten so far.")}</p>`}
    <ol class="receipts">${(receipts.value ?? []).map((receipt) => html`<li key=${receipt.id}><details class="receipt-row"><summary><${Icon} name="right" size=${16} />${WHAT[receipt.what] ?? receipt.what}<time class="muted" datetime=${receipt.at}>${formatMoment(receipt.at)}</time></summary><${ReceiptView} receipt=${receipt} isDated /></details></li>`)}</ol>
    ${cursor.value && html`<${MoreButton} className="button is-wide" label=${t("Earlier")} load=${() => load(cursor.value)} />`}
    <${NotLearnedList} key=${receipts.value?.[0]?.id ?? ""} />
  </article>`;
}

/** Render when something was forgotten and how many sentences are not learned again. Their content is not stored. */
function NotLearnedList() {
  const items = useSignal(/** @type {import("../../commands/forgetting.js").NotLearned[]} */ ([]));
  const problem = useSignal("");
  const load = () =>
    listNotLearned().then(
      (page) => void (items.value = page.items),
      (error) => void (problem.value = errorText(error)),
    );
  useEffect(() => void load(), []);
  const undo = (/** @type {string} */ id) => learnAgain(id).then(load, (error) => void (problem.value = errorText(error)));
  if (items.value.length === 0 && !problem.value) return null;
  return html`<h2 class="section-title">${t("Never learned again")}</h2>
    ${problem.value && html`<p class="card is-bad" role="alert">${problem.value}</p>`}
    <ul class="receipts">${items.value.map(
      (item) => html`<li key=${item.id} class="receipt-row not-learned"><span>${WHAT[item.kind] ?? item.kind}, <time datetime=${item.at}>${formatMoment(item.at)}</time>: ${plural(item.count, "{n} sentence", "{n} sentences")}</span>
        <button type="button" class="button is-small" onClick=${() => undo(item.id)}>${t("Allow learning it again")}</button></li>`,
    )}</ul>`;
}

/** @param {{onDone: () => void}} props */
function WishForm({ onDone }) {
  const proposal = useSignal(/** @type {Proposal|null} */ (null));
  const problem = useSignal("");
  const find = async (/** @type {any} */ event) => {
    event.preventDefault();
    const words = String(new FormData(event.target).get("words")).trim();
    if (!words) return;
    problem.value = "";
    try {
      proposal.value = await proposeForgetting(words);
    } catch (error) {
      problem.value = errorText(error);
    }
  };
  const found = proposal.value;
  return html`<form class="wish-form" onSubmit=${find}>
      <label class="field"><span>${t("What should be forgotten?")}</span><input name="words" maxlength="2000" autocomplete="off" placeholder=${t("that I live in Paris")} /></label>
      <button class="button">${t("Find it")}</button>
    </form>
    ${problem.value && html`<p class="form-error" role="alert">${problem.value}</p>`}
    <div role="status">${found && found.items.length === 0 && html`<p class="muted">${t("Nothing like that is remembered.")}</p>`}</div>
    ${found && found.items.length > 0 && html`<${ForgetProposal} key=${found.proposal_id} proposal=${found} onDone=${onDone} onCancel=${() => (proposal.value = null)} />`}`;
}
