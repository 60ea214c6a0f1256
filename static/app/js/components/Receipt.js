/** The receipt of a forgetting: how much of each kind was removed, never its content. */

import { exact, formatMoment } from "../format.js";
import { html } from "../html.js";
import { t } from "../i18n.js";

/** @type {Record<string, string>} */
const KINDS = {
  messages: t("Messages"),
  messages_redacted: t("Messages that repeated it"),
  entries: t("Memory entries"),
  entries_redacted: t("Entries that repeated it"),
  summaries: t("Summaries"),
  summaries_redacted: t("Summaries that repeated it"),
  profile_lines: t("Lines of the profile"),
  events: t("Events"),
  requests: t("Requests as sent to models"),
  offloaded: t("Stored results of tools"),
  files: t("Files"),
  conversations: t("Conversations"),
  tombstones: t("Marks that keep it from being learned again"),
};

/**
 * @param {{receipt: import("../commands/forgetting.js").Receipt, isDated?: boolean}} props
 *   `isDated`: the time is already shown above it
 */
export function ReceiptView({ receipt: { removed, at }, isDated = false }) {
  const rows = Object.entries(removed);
  return html`<div class="receipt">
    ${!isDated && html`<p class="muted"><time datetime=${at}>${formatMoment(at)}</time></p>`}
    <dl class="parts">${rows.map(([kind, count]) => html`<div class="part"><dt>${KINDS[kind] ?? kind}</dt><dd>${exact(count)}</dd></div>`)}</dl>
    ${rows.length === 0 && html`<p>${t("There was nothing left to remove.")}</p>`}
  </div>`;
}
