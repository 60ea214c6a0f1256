/** The divider below messages that a summary replaces in the context. The originals stay above it, and inside it. */

import { useSignal } from "@preact/signals";
import { editSummary, readCompactions, undoCompaction } from "../commands/context.js";
import { loadOlder } from "../commands/pages.js";
import { exact, formatCost, formatTokens } from "../format.js";
import { html, memo } from "../html.js";
import { plural, t, translateServerText } from "../i18n.js";
import { currentThread } from "../state/store.js";
import { CopyButton } from "./CodeBlock.js";
import { Icon } from "./icons.js";
import { useLoaded, Waiting } from "./loading.js";
import { Markdown } from "./Markdown.js";

/** @typedef {import("../state/types.js").Compaction} Compaction */

export const CompactDivider = memo(Divider);

/** @param {Compaction} compaction */
function sentenceFor({ strategy, is_extract: isExtract, message_count: n }) {
  if (strategy === "cleared") return plural(n, "Context cleared: {n} earlier message is kept, but no longer in context.", "Context cleared: {n} earlier messages are kept, but no longer in context.");
  const count = String(n); // unformatted, so that the sentence is the same as in the event
  if (strategy === "waiting") return t("Earlier context ({n} messages) is not summarized yet; an extract is used instead.", { n: count });
  if (strategy === "truncate") return t("Earlier context ({n} messages) was left out without a summary.", { n: count });
  return isExtract ? t("Earlier context ({n} messages) was shortened to key sentences, word for word.", { n: count }) : t("Earlier context ({n} messages) was summarized by AI.", { n: count });
}

/** @param {{compaction: Compaction}} props */
function Divider({ compaction }) {
  const isOpen = useSignal(false);
  if (compaction.status === "running") {
    return html`<div class="divider is-running" role="status"><span class="divider-text shimmer">${t("Summarizing earlier messages…")}</span></div>`;
  }
  const text = html`<span class="divider-sentence">${sentenceFor(compaction)}</span>`;
  if (compaction.status === "waiting") return html`<div class="divider" role="note"><span class="divider-text">${text}</span></div>`;
  return html`<section class="divider-box">
    <button type="button" class="divider" aria-expanded=${isOpen.value} onClick=${() => (isOpen.value = !isOpen.value)}>
      <span class="divider-text">${text}<${Icon} name="down" size=${16} /></span>
    </button>
    ${isOpen.value && html`<${Details} compaction=${compaction} />`}
  </section>`;
}

/** Return the model that wrote the summary, and its cost, if they are known. @param {Compaction} compaction */
function madeBy({ usage }) {
  const known = [usage?.model, usage?.cost && formatCost(usage.cost)].filter(Boolean);
  return known.map((fact) => html` · <bdi>${fact}</bdi>`);
}

/** @param {{compaction: Compaction}} props */
function Details({ compaction }) {
  const tab = useSignal("summary");
  const isEditing = useSignal(false);
  const tabButton = (/** @type {string} */ name, /** @type {string} */ label) => html`<button type="button" role="tab"
    id=${`tab-${name}-${compaction.id}`} aria-selected=${tab.value === name} onClick=${() => (tab.value = name)}>${label}</button>`;
  const tokens = t("{before} → {after} tokens", {
    before: formatTokens(compaction.tokens_before),
    after: formatTokens(compaction.tokens_after),
  });
  const exactly = `${exact(compaction.tokens_before)} → ${exact(compaction.tokens_after)}`;
  return html`<div class="divider-details">
    <div class="divider-bar">
      <div role="tablist" class="tabs">
        ${tabButton("summary", t("Summary"))}${tabButton("originals", t("Original messages"))}
      </div>
      <span class="divider-tokens"><span title=${exactly}>${tokens}</span>${madeBy(compaction)}</span>
      ${compaction.summary && html`<${CopyButton} text=${compaction.summary} label=${t("Copy summary")} />`}
      <button type="button" class="button is-small" onClick=${() => (isEditing.value = !isEditing.value)} disabled=${compaction.summary === null}>${t("Edit summary")}</button>
      <button type="button" class="button is-small" onClick=${() => undoCompaction(compaction)}>${t("Undo")}</button>
    </div>
    <div role="tabpanel" aria-labelledby=${`tab-${tab.value}-${compaction.id}`} class="divider-panel" tabindex="0">
      ${isEditing.value && compaction.summary !== null ? html`<${Editor} compaction=${compaction} close=${() => (isEditing.value = false)} />` : tab.value === "summary" ? html`<${Summary} compaction=${compaction} />` : html`<${Originals} compaction=${compaction} />`}
    </div>
  </div>`;
}

/** @param {{compaction: Compaction, close: () => void}} props */
function Editor({ compaction, close }) {
  const words = useSignal(compaction.summary ?? "");
  const save = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (await editSummary(compaction, words.value)) close();
  };
  return html`<form class="summary-editor" onSubmit=${save}>
    <textarea rows="8" aria-label=${t("Summary")} value=${words.value} onInput=${(/** @type {any} */ event) => (words.value = event.target.value)}></textarea>
    <div class="card-actions">
      <button type="submit" class="button is-small is-primary" disabled=${!words.value.trim()}>${t("Save")}</button>
      <button type="button" class="button is-small" onClick=${close}>${t("Cancel")}</button>
    </div>
  </form>`;
}

/** @param {{compaction: Compaction}} props */
function Summary({ compaction: { summary, fallback_reason: reason } }) {
  if (summary === null) return currentThread.value && html`<${MissingSummary} threadId=${currentThread.value.id} />`;
  return summary
    ? html`${reason && html`<p class="panel-note">${t("No model wrote this. It is an extract of the sentences that carry facts: {reason}.", { reason: translateServerText(reason) })}</p>`}
      <${Markdown} text=${summary} />`
    : html`<p>${t("There is no summary; older messages were left out.")}</p>`;
}

/** Load the summary, and show progress until it is in the store. @param {{threadId: string}} props */
function MissingSummary({ threadId }) {
  const { problem, again } = useLoaded(() => readCompactions(threadId), threadId);
  return html`<${Waiting} problem=${problem} again=${again} />`;
}

/** @param {{compaction: Compaction}} props */
function Originals({ compaction }) {
  const thread = currentThread.value;
  if (!thread) return null;
  const first = compaction.first_position ?? 0;
  const covered = thread.ids
    .map((id) => thread.messages[id])
    .filter(({ position, text }) => position >= first && position <= compaction.last_position && text);
  const firstLoaded = thread.messages[thread.ids[0]]?.position ?? 0;
  const hasMore = thread.olderCursor !== null && firstLoaded > first;
  return html`
    ${
      hasMore &&
      html`<button type="button" class="button is-wide" disabled=${thread.isLoadingOlder}
      onClick=${() => loadOlder(thread.id)}>${t("Load earlier messages")}</button>`
    }
    <ol class="originals">
      ${covered.map(
        ({ id, role, text }) => html`<li key=${id}>
        <a href=${`#m-${id}`} class="original-role">${role === "user" ? t("You") : t("Assistant")}</a>
        <p>${text.length > 600 ? `${text.slice(0, 600)}…` : text}</p>
      </li>`,
      )}
    </ol>`;
}
