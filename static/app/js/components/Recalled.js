/** Older messages that came back for this question, each a link to its place. */

import { html } from "../html.js";
import { t } from "../i18n.js";
import { addressOfSource, isShared } from "../state/address.js";
import { currentId } from "../state/store.js";
import { Icon } from "./icons.js";

/** @param {{items: import("../state/types.js").RecalledItem[], count: number}} props the best of them, and how many there were */
export function Recalled({ items, count }) {
  const text = count === 1 ? t("Recalled 1 earlier message") : t("Recalled {n} earlier messages", { n: count });
  return html`<details class="fold-line recalled">
    <summary><${Icon} name="clock" size=${16} />${text}</summary>
    <ul class="fold-body">
      ${items.length < count && html`<li class="muted">${t("The best {n} of them:", { n: items.length })}</li>`}
      ${items.map((item) => html`<li>${isShared(item.source) ? html`${item.preview} <span class="muted">${t("from the memory this agent shares")}</span>` : html`<a href=${addressOfSource(item.source, currentId.value)}>${item.preview}</a>`}</li>`)}
    </ul>
  </details>`;
}
