/** A tool call that waits for approval, and the time that is left. */

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { boot } from "../boot.js";
import { decideCall } from "../commands/tools.js";
import { prettyJson, revealHidden } from "../format.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { Icon } from "./icons.js";

const TICK_MS = 1000;

/** @param {{tool: import("../state/types.js").ToolCall, runId: string}} props */
export function ConsentCard({ tool, runId }) {
  const isBusy = useSignal(false);
  const decide = async (/** @type {boolean} */ isApproved) => {
    isBusy.value = true;
    await decideCall(runId, tool.callId, isApproved);
    isBusy.value = false;
    document.getElementById("composer")?.focus();
  };
  const card = useRef(/** @type {HTMLElement|null} */ (null));
  useEffect(() => {
    // Focus the card, not a button: a key that was meant for the composer must not approve anything.
    if (!document.querySelector("dialog[open]")) card.current?.focus();
  }, []);
  return html`<section ref=${card} tabindex="-1" class="card consent" role="alertdialog" aria-label=${t("Approval of {name}", { name: tool.name })}>
    <${Icon} name="warning" />
    <div class="card-body">
      <p>${tool.hookId ? t("May the hook {id} call", { id: tool.hookId }) : t("May the assistant call")} <strong>${tool.name}</strong>? <${TimeLeft} since=${tool.askedAt} /></p>
      <pre class="consent-input" tabindex="0">${revealHidden(prettyJson(tool.arguments))}</pre>
      <div class="card-actions">
        <button type="button" class="button is-small is-primary" disabled=${isBusy.value} onClick=${() => decide(true)}>${t("Approve")}</button>
        <button type="button" class="button is-small" disabled=${isBusy.value} onClick=${() => decide(false)}>${t("Deny")}</button>
      </div>
    </div>
  </section>`;
}

/** @param {{since: string|null}} props */
function TimeLeft({ since }) {
  const now = useSignal(Date.now());
  useEffect(() => {
    const timer = setInterval(() => (now.value = Date.now()), TICK_MS);
    return () => clearInterval(timer);
  }, []);
  const limit = boot.limits.consent_timeout_s;
  if (!since || !limit) return null;
  const left = Math.max(0, Math.round(limit - (now.value - Date.parse(since)) / 1000));
  const clock = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`;
  return html`<span class="muted" role="timer" aria-live="off">${t("{clock} left", { clock })}</span>`;
}
