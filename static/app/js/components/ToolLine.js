/** One tool call: a line that opens to what went in and what came out. */

import { html } from "../html.js";
import { t } from "../i18n.js";
import { Icon } from "./icons.js";

/** @param {{tool: import("../state/types.js").ToolCall}} props */
export function ToolLine({ tool }) {
  const isRunning = tool.state === "running" || tool.state === "started";
  const isBad = tool.state === "failed" || tool.state === "interrupted";
  return html`<details class="fold-line tool">
    <summary>
      <${Icon} name=${isBad ? "warning" : "wrench"} size=${16} />
      <span class=${isRunning ? "shimmer" : ""}>${tool.name}</span>
      ${isBad && html`<span class="outcome">${t(tool.state)}</span>`}
    </summary>
    <div class="fold-body">
      <p class="fold-label">${t("Input")}</p><pre tabindex="0">${tool.arguments}</pre>
      ${tool.preview && html`<p class="fold-label">${t("Output")}</p><pre tabindex="0">${tool.preview}</pre>`}
    </div>
  </details>`;
}
