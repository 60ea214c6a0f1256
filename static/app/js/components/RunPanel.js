/** The details of one run: its steps as a waterfall, and what was sent to the model in each. */

import { useSignal } from "@preact/signals";
import { listRequests, readRequest, readTrace } from "../commands/runs.js";
import { exact, formatSeconds, formatTokens } from "../format.js";
import { html } from "../html.js";
import { plural, t } from "../i18n.js";
import { drawTrace, nameCall, stateName } from "../state/trace.js";
import { Icon } from "./icons.js";
import { useLoaded, Waiting } from "./loading.js";
import { Panel } from "./Panel.js";
import { Piece } from "./Piece.js";

/** @typedef {import("../commands/runs.js").Trace} Trace */
/** @typedef {import("../commands/runs.js").SentRequest} SentRequest */
/** @typedef {import("../commands/runs.js").ShownRequest} ShownRequest */
/** @typedef {import("../state/trace.js").Row} Row */

/** @param {{runId: string}} props */
export function RunPanel({ runId }) {
  const tab = useSignal("trace");
  const tabButton = (/** @type {string} */ name, /** @type {string} */ label) => html`<button type="button" role="tab" id=${`run-tab-${name}`}
    aria-selected=${tab.value === name} aria-controls="run-panel" onClick=${() => (tab.value = name)}>${label}</button>`;
  return html`<${Panel} label=${t("How this answer was made")} title=${t("This answer")}>
    <div role="tablist" class="tabs">${tabButton("trace", t("Steps"))}${tabButton("requests", t("What the model saw"))}</div>
    <div role="tabpanel" id="run-panel" class="panel-body" tabindex="0" aria-labelledby=${`run-tab-${tab.value}`}>
      ${tab.value === "trace" ? html`<${TraceView} runId=${runId} />` : html`<${Requests} runId=${runId} />`}
    </div>
  <//>`;
}

/** @param {{runId: string}} props */
function TraceView({ runId }) {
  const { loaded: trace, problem, again } = useLoaded(() => readTrace(runId), runId);
  if (!trace) return html`<${Waiting} problem=${problem} again=${again} />`;
  if (!trace.iterations.length && !trace.hooks.length) return html`<p class="panel-note">${t("No model was used.")}</p>`;
  const { rows, totalMs } = drawTrace(trace);
  const models = trace.iterations.length;
  return html`
    <p class="panel-note">${plural(models, "{n} model call", "{n} model calls")} · ${formatSeconds(totalMs)}</p>
    <table class="waterfall">
      <thead><tr><th scope="col">${t("Step")}</th><th scope="col">${t("Time")}</th><th scope="col">${t("Tokens")}</th></tr></thead>
      <tbody>${rows.map((row) => html`<${TraceRow} key=${row.key} row=${row} totalMs=${totalMs} />`)}</tbody>
    </table>
    ${trace.hooks.length > 0 && html`<h3 class="panel-title">${t("Hooks")}</h3><ul class="panel-list">${trace.hooks.map((hook) => html`<${FiredHook} hook=${hook} />`)}</ul>`}`;
}

/** @param {{hook: import("../commands/runs.js").FiredHook}} props */
const FiredHook = ({ hook }) => html`<li><strong>${hook.hook_id}</strong>${hook.level && html` <small>${hook.level}</small>`} ${hook.text}
  ${hook.tool && html` <small>${hook.tool.name} · ${stateName(hook.tool.state)}</small>`}</li>`;

/** @param {{row: Row, totalMs: number}} props */
function TraceRow({ row, totalMs }) {
  const { kind, label, detail, startMs, durationMs, firstMs, state, usage } = row;
  const share = (/** @type {number} */ ms) => (1000 * ms) / totalMs;
  const tokens = usage && `${formatTokens(usage.input_tokens)} → ${formatTokens(usage.output_tokens)}`;
  const exactly = usage && t("{in} in, {cached} of them cached, {out} out", { in: exact(usage.input_tokens), cached: exact(usage.cached_tokens), out: exact(usage.output_tokens) });
  return html`<tr class=${`is-${kind} is-${state}`}>
    <th scope="row"><span>${label}</span>${detail && html`<small>${detail}</small>`}${kind === "tool" && state !== "done" && html`<small>${stateName(state)}</small>`}</th>
    <td><svg class="waterfall-bar" viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true">
        <rect class="bar-whole" x=${share(startMs)} y="1" width=${Math.max(6, share(durationMs))} height="8" />
        ${firstMs !== null && html`<rect class="bar-wait" x=${share(startMs)} y="1" width=${share(Math.min(firstMs, durationMs))} height="8" />`}
      </svg><small>${formatSeconds(durationMs)}${firstMs !== null ? ` · ${t("first word after {time}", { time: formatSeconds(firstMs) })}` : ""}</small></td>
    <td title=${exactly}>${tokens}</td>
  </tr>`;
}

/**
 * Render the requests. The trace says what they were for; without it they are named by their purpose.
 * @param {{runId: string}} props
 */
function Requests({ runId }) {
  const { loaded: requests, problem, again } = useLoaded(() => listRequests(runId), runId);
  const trace = useLoaded(() => readTrace(runId), runId);
  if (!requests) return html`<${Waiting} problem=${problem} again=${again} />`;
  if (!requests.length) return html`<p class="panel-note">${t("No request of this answer is kept.")}</p>`;
  const names = new Map(trace.loaded?.iterations.map((step) => [step.request?.n, nameCall(step)]));
  return html`${trace.problem && html`<${Waiting} problem=${trace.problem} again=${trace.again} />`}
    <ol class="requests">${requests.map(
      (request) => html`<${Request} key=${request.n} runId=${runId} request=${request} name=${names.get(request.n) ?? nameCall({ ...request, plan_step: null, title: null, round: null })} isOnly=${requests.length === 1} />`,
    )}</ol>`;
}

/** @param {{runId: string, request: SentRequest, name: string, isOnly: boolean}} props */
function Request({ runId, request, name, isOnly }) {
  const wasOpened = useSignal(isOnly);
  const open = (/** @type {any} */ event) => (wasOpened.value ||= event.target.open);
  return html`<li><details class="request" onToggle=${open} open=${isOnly}>
    <summary><${Icon} name="right" size=${16} /><span>${request.n}. ${name}</span><small>${request.model} · ${plural(request.tokens, "{n} token", "{n} tokens")}</small></summary>
    ${wasOpened.value && html`<${RequestBody} runId=${runId} n=${request.n} />`}
  </details></li>`;
}

/** @param {{runId: string, n: number}} props */
function RequestBody({ runId, n }) {
  const { loaded, problem, again } = useLoaded(() => readRequest(runId, n), `${runId}/${n}`);
  return loaded ? html`<${RequestView} request=${loaded} />` : html`<${Waiting} problem=${problem} again=${again} />`;
}

/** @param {{request: ShownRequest}} props */
function RequestView({ request }) {
  const proof = request.verified ? t("What was sent, byte for byte") : t("Parts of it have been deleted since");
  return html`<p class="panel-note" title=${request.sha256}><${Icon} name=${request.verified ? "check" : "warning"} size=${14} /> ${proof} · <code>${request.sha256.slice(0, 12)}</code></p>
    <ol class="pieces">${request.pieces.map((piece) => html`<${Piece} piece=${piece} />`)}</ol>
    <details class="card-details"><summary>${t("As JSON")}</summary><pre tabindex="0">${JSON.stringify(request.body, null, 2)}</pre></details>`;
}
