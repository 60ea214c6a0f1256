/**
 * Memory that agents share with all their users, read-only. Users change and forget their own entries in their days.
 */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { errorText } from "../../commands/conversations.js";
import { readShared } from "../../commands/memory.js";
import { formatMoment } from "../../format.js";
import { html } from "../../html.js";
import { t } from "../../i18n.js";
import { sharedMemories } from "../../state/memory.js";
import { Markdown } from "../Markdown.js";
import { MoreButton } from "../MoreButton.js";

/** @typedef {import("../../commands/memory.js").SharedEntry} SharedEntry */

export function SharedView() {
  const chosen = useSignal("");
  const [first] = sharedMemories.value;
  const agentId = chosen.value || first?.agent_id;
  return html`<article>
    <header class="view-head"><h2 class="day-title">${t("Shared by agents")}</h2></header>
    <p class="muted view-note">${t("Every chat with these agents uses these memories. Who said something is not revealed.")}</p>
    ${
      sharedMemories.value.length > 1 &&
      html`<label class="field"><span>${t("Agent")}</span><select value=${agentId} onChange=${(/** @type {any} */ event) => (chosen.value = event.target.value)}>
        ${sharedMemories.value.map((one) => html`<option value=${one.agent_id}>${one.agent}</option>`)}</select></label>`
    }
    ${sharedMemories.value.length === 1 && html`<h3 class="section-title">${first?.agent}</h3>`}
    ${agentId ? html`<${Entries} key=${agentId} agentId=${agentId} />` : html`<p role="status">${t("No agent shares its memory.")}</p>`}
  </article>`;
}

/** @param {{agentId: string}} props */
function Entries({ agentId }) {
  const entries = useSignal(/** @type {SharedEntry[]|null} */ (null));
  const cursor = useSignal(/** @type {string|null} */ (null));
  const problem = useSignal("");
  const load = async (/** @type {string|null} */ from) => {
    problem.value = "";
    try {
      const page = await readShared(agentId, from);
      entries.value = [...(entries.value ?? []), ...page.items];
      cursor.value = page.next_cursor;
    } catch (error) {
      problem.value = errorText(error);
    }
  };
  useEffect(() => void load(null), []);
  const failed = problem.value && html`<p class="card is-bad" role="alert">${problem.value}</p>`;
  if (!entries.value) return failed || html`<div class="skeletons" role="status" aria-label=${t("Loading…")}><i></i><i></i><i></i></div>`;
  return html`
    ${entries.value.length === 0 && html`<p role="status">${t("Nothing is remembered there yet.")}</p>`}
    ${entries.value.map(
      (entry) => html`<section class="entry" key=${entry.id}>
        <div class="entry-head"><time datetime=${entry.created_at}>${formatMoment(entry.created_at)}</time>
          ${entry.is_mine && html`<a href=${`/memory?day=${entry.day}#e-${entry.id}`}>${t("Yours: change or forget it")}</a>`}</div>
        <${Markdown} text=${entry.text} />
      </section>`,
    )}
    ${failed}
    ${cursor.value && html`<${MoreButton} className="button is-wide" label=${t("Earlier")} load=${() => load(cursor.value)} />`}`;
}
