/** The list of messages, and the button that leads to its end. */

import { useEffect } from "preact/hooks";
import { loadOlder } from "../commands/pages.js";
import { backToNewest, loadNewer } from "../commands/window.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { isAtNewest } from "../state/pages.js";
import { Icon } from "./icons.js";
import { MessageList } from "./MessageList.js";
import { distanceToBottom, useReadingPlace } from "./readingPlace.js";

/** @typedef {import("../state/types.js").Thread} ThreadState */

const LOAD_AHEAD_PX = 900;

/** @param {{thread: ThreadState}} props */
export function Thread({ thread }) {
  const { scroller, content, isAway, toBottom, noteScroll, releasePlace, noteClick } = useReadingPlace(thread);

  useEffect(() => {
    // A page of tool calls may be smaller than the screen, where no scrolling would load more.
    const element = scroller.current;
    if (!element || element.scrollHeight > element.clientHeight) return;
    loadOlder(thread.id);
    loadNewer(thread.id);
  }, [thread.ids.length, thread.olderCursor, thread.newerCursor]);

  const onScroll = () => {
    const element = scroller.current;
    if (!element) return;
    noteScroll();
    if (element.scrollTop < LOAD_AHEAD_PX) loadOlder(thread.id, true);
    if (distanceToBottom(element) < LOAD_AHEAD_PX) loadNewer(thread.id);
  };
  return html`<div class="thread-frame">
    <div class="thread" ref=${scroller} onScroll=${onScroll} onWheel=${releasePlace} onTouchMove=${releasePlace} onPointerDown=${releasePlace}
      onKeyDown=${releasePlace} onClick=${noteClick} tabindex="-1">
      <div class="column messages" ref=${content} role="log" aria-live="off" aria-label=${t("Messages")}>
        ${thread.olderCursor && html`<${MoreThere} isLoading=${thread.isLoadingOlder} />`}
        <${MessageList} thread=${thread} />
        ${thread.newerCursor && html`<${MoreThere} isLoading=${thread.isLoadingNewer} />`}
      </div>
    </div>
    ${isAtNewest(thread) ? html`<${ToBottom} isShown=${isAway.value} onClick=${toBottom} />` : html`<${ToNewest} id=${thread.id} />`}
  </div>`;
}

/** @param {{isLoading: boolean}} props */
const MoreThere = ({ isLoading }) => html`<div class="more-there" aria-hidden="true">${isLoading && html`<span class="spinner"></span>`}</div>`;

/** @param {{isShown: boolean, onClick: () => void}} props */
const ToBottom = ({ isShown, onClick }) => html`<button type="button" class=${`to-bottom ${isShown ? "is-shown" : ""}`} aria-label=${t("Jump to the newest message")}
  title=${t("Jump to the newest message")} tabindex=${isShown ? 0 : -1} onClick=${onClick}><${Icon} name="arrowDown" /></button>`;

/** @param {{id: string}} props */
const ToNewest = ({ id }) => html`<button type="button" class="to-bottom is-shown is-named"
  onClick=${() => backToNewest(id)}><${Icon} name="arrowDown" size=${16} />${t("Back to the newest")}</button>`;
