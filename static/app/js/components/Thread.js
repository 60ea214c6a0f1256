/** The list of messages: keeps to the bottom while the reader is there, and in place while older ones load. */

import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { loadOlder } from "../commands/conversations.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { Icon } from "./icons.js";
import { MessageList } from "./MessageList.js";

/** @typedef {import("../state/types.js").Thread} ThreadState */

const AT_BOTTOM_PX = 56;
const LOAD_OLDER_PX = 900;

/** @param {{thread: ThreadState}} props */
export function Thread({ thread }) {
  const scroller = useRef(/** @type {HTMLElement|null} */ (null));
  const content = useRef(/** @type {HTMLElement|null} */ (null));
  const isStuck = useRef(true);
  const isAway = useSignal(false);
  useStickToBottom(scroller, content, isStuck, isAway);
  useAnchor(scroller, thread);
  useEffect(() => {
    if (thread.pending.length) toBottom();
  }, [thread.pending.length]);

  useEffect(() => {
    // A page of tool calls may fill less than the screen, where there is nothing to scroll.
    const element = scroller.current;
    if (element && element.scrollHeight <= element.clientHeight) loadOlder(thread.id);
  }, [thread.ids.length, thread.olderCursor]);

  const toBottom = () => {
    isStuck.current = true;
    isAway.value = false;
    if (scroller.current) scroller.current.scrollTop = scroller.current.scrollHeight;
  };
  const onScroll = () => {
    const element = scroller.current;
    if (!element) return;
    isStuck.current = distanceToBottom(element) < AT_BOTTOM_PX;
    isAway.value = !isStuck.current;
    if (element.scrollTop < LOAD_OLDER_PX) loadOlder(thread.id);
  };
  return html`<div class="thread-frame">
    <div class="thread" ref=${scroller} onScroll=${onScroll} tabindex="-1">
      <div class="column messages" ref=${content} role="log" aria-live="off" aria-label=${t("Messages")}>
        ${thread.olderCursor && html`<div class="older" aria-hidden="true">${thread.isLoadingOlder && html`<span class="spinner"></span>`}</div>`}
        <${MessageList} thread=${thread} />
      </div>
    </div>
    <button type="button" class=${`to-bottom ${isAway.value ? "is-shown" : ""}`} aria-label=${t("To the newest message")}
      title=${t("To the newest message")} tabindex=${isAway.value ? 0 : -1} onClick=${toBottom}><${Icon} name="arrowDown" /></button>
  </div>`;
}

/** @param {HTMLElement} element */
const distanceToBottom = (element) => element.scrollHeight - element.scrollTop - element.clientHeight;

/**
 * @param {{current: HTMLElement|null}} scroller @param {{current: HTMLElement|null}} content
 * @param {{current: boolean}} isStuck @param {{value: boolean}} isAway
 */
function useStickToBottom(scroller, content, isStuck, isAway) {
  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element || !content.current) return undefined;
    element.scrollTop = element.scrollHeight;
    const observer = new ResizeObserver(() => {
      if (isStuck.current) element.scrollTop = element.scrollHeight;
      else isAway.value = distanceToBottom(element) >= AT_BOTTOM_PX;
    });
    observer.observe(content.current);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
}

/** Older messages arrive above: what the reader looks at stays where it is. */
function useAnchor(/** @type {{current: HTMLElement|null}} */ scroller, /** @type {ThreadState} */ thread) {
  const before = useRef({ first: "", height: 0, top: 0 });
  const element = scroller.current;
  const first = thread.ids[0] ?? "";
  if (element && before.current.first !== first)
    before.current = { ...before.current, height: element.scrollHeight, top: element.scrollTop };
  useLayoutEffect(() => {
    const { first: firstBefore, height, top } = before.current;
    const now = scroller.current;
    const isPrepended = firstBefore && firstBefore !== first && thread.ids.includes(firstBefore);
    if (now && isPrepended) now.scrollTop = top + (now.scrollHeight - height);
    before.current = { ...before.current, first };
  }, [first]);
}
