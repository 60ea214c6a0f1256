/** The model's reasoning before its answer: one line that opens. */

import { html } from "../html.js";
import { t } from "../i18n.js";
import { Icon } from "./icons.js";
import { Markdown } from "./Markdown.js";

/** @param {{message: import("../state/types.js").ViewMessage}} props */
export function Reasoning({ message }) {
  const { thoughtForS, status, text, reasoning } = message;
  const isThinking = status === "streaming" && !text;
  const done = thoughtForS === null ? t("Thoughts") : t("Thought for {n} s", { n: thoughtForS });
  return html`<details class="fold-line reasoning">
    <summary><${Icon} name="right" size=${16} /><span class=${isThinking ? "shimmer" : ""}>${isThinking ? t("Thinking…") : done}</span></summary>
    <div class="fold-body"><${Markdown} text=${reasoning} isFinal=${!isThinking} /></div>
  </details>`;
}
