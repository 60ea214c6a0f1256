/** Earlier messages that were recalled for this question, each with a link to its place. */

import { quoted } from "../format.js";
import { html } from "../html.js";
import { plural, t } from "../i18n.js";
import { addressOfSource, isShared } from "../state/address.js";
import { currentId } from "../state/store.js";
import { Icon } from "./icons.js";

/** @typedef {import("../state/types.js").RecalledItem} RecalledItem */

/** @param {{items: RecalledItem[], count: number}} props the best items, and how many there were */
export function Recalled({ items, count }) {
  const text = plural(count, "Recalled {n} earlier message", "Recalled {n} earlier messages");
  return html`<details class="fold-line recalled">
    <summary><${Icon} name="clock" size=${16} />${text}</summary>
    <ul class="fold-body">
      ${items.length < count && html`<li class="muted">${t("The best {n} of them:", { n: items.length })}</li>`}
      ${items.map((item) => html`<${Item} item=${item} />`)}
    </ul>
  </details>`;
}

/** @param {{item: RecalledItem}} props */
function Item({ item: { source, preview } }) {
  const { who, words } = quoted(preview);
  if (isShared(source)) return html`<li>${words} <span class="muted">${t("from the memory this agent shares")}</span></li>`;
  return html`<li>${who && html`<span class="recalled-who">${who}</span>`}<a href=${addressOfSource(source, currentId.value)}>${words}</a></li>`;
}
