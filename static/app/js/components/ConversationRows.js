/** The rows of many conversations. Rows far from the window are replaced by an empty space of the same height. */

import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { html } from "../html.js";
import { ConversationRow } from "./ConversationRow.js";

/** @typedef {import("../state/types.js").Conversation} Conversation */

const ROWS = 50;
const MARGIN = "100%";

/** @param {{items: Conversation[]}} props */
export function ConversationRows({ items }) {
  const starts = Array.from({ length: Math.ceil(items.length / ROWS) }, (_, at) => at * ROWS);
  return starts.map((start) => html`<${Stretch} key=${start} items=${items.slice(start, start + ROWS)} />`);
}

/** @param {{items: Conversation[]}} props */
function Stretch({ items }) {
  const list = useRef(/** @type {HTMLElement|null} */ (null));
  /** The height of a row once the rows are far away; 0 while they are drawn. */
  const rowPx = useSignal(0);
  useLayoutEffect(() => {
    const element = /** @type {HTMLElement} */ (list.current);
    const look = (/** @type {IntersectionObserverEntry[]} */ entries) => {
      const isFar = !entries.at(-1)?.isIntersecting && !element.contains(document.activeElement);
      if (!isFar) rowPx.value = 0;
      else if (element.children.length) rowPx.value = element.offsetHeight / element.children.length;
    };
    const observer = new IntersectionObserver(look, { root: element.closest(".sidebar-list"), rootMargin: MARGIN });
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const isFar = rowPx.value > 0;
  return html`<ul ref=${list} aria-hidden=${isFar} style=${{ blockSize: isFar ? `${rowPx.value * items.length}px` : null }}>
    ${!isFar && items.map((item) => html`<${ConversationRow} key=${item.id} conversation=${item} />`)}
  </ul>`;
}
