/** The reader's place: at the bottom, at a requested message, or elsewhere. It is kept while the list changes. */

import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { isAtNewest } from "../state/pages.js";

/** @typedef {import("../state/types.js").Thread} Thread */

const AT_BOTTOM_PX = 56;
/** The share of the screen beyond which a message is shown from its beginning. */
const TALL_SHARE = 0.8;
/** The place that is kept: the end of the list, a message by its id, or null for what the reader scrolled to. */
const BOTTOM = Symbol("bottom");

/** @param {HTMLElement} element */
export const distanceToBottom = (element) => element.scrollHeight - element.scrollTop - element.clientHeight;

/** @param {Thread} thread */
export function useReadingPlace(thread) {
  const scroller = useRef(/** @type {HTMLElement|null} */ (null));
  const content = useRef(/** @type {HTMLElement|null} */ (null));
  const held = useRef(/** @type {typeof BOTTOM|string|null} */ (BOTTOM));
  const isAway = useSignal(false);
  const latest = useRef(thread);
  latest.current = thread;

  const look = (/** @type {HTMLElement} */ element) => {
    isAway.value = distanceToBottom(element) >= AT_BOTTOM_PX;
    // The reader leaves a requested message, not a list that grows around it.
    if (typeof held.current !== "string") held.current = !isAway.value && isAtNewest(latest.current) ? BOTTOM : null;
  };
  const settle = () => {
    const element = scroller.current;
    if (!element) return;
    if (held.current === BOTTOM) element.scrollTop = element.scrollHeight;
    else if (held.current !== null) bringIntoView(element, held.current);
    look(element);
  };
  const hold = (/** @type {typeof BOTTOM|string} */ place) => {
    held.current = place;
    settle();
  };

  useLayoutEffect(() => {
    if (!scroller.current || !content.current) return undefined;
    settle();
    const observer = new ResizeObserver(settle);
    observer.observe(content.current);
    observer.observe(scroller.current);
    return () => observer.disconnect();
  }, []);
  useAnchor(scroller, thread);
  useLayoutEffect(() => {
    if (!thread.scrollTarget) return;
    hold(thread.scrollTarget.messageId ?? BOTTOM);
    if (thread.scrollTarget.messageId) pointOut(thread.scrollTarget.messageId);
  }, [thread.scrollTarget]);
  useEffect(() => {
    if (thread.pending.length && isAtNewest(thread)) hold(BOTTOM);
  }, [thread.pending.length]);

  return {
    scroller,
    content,
    isAway,
    toBottom: () => hold(BOTTOM),
    noteScroll: () => scroller.current && look(scroller.current),
    releasePlace() {
      if (typeof held.current === "string") held.current = null;
    },
    /** Keep an element in place that is being opened, so that the list grows below it. */
    noteClick(/** @type {MouseEvent} */ { target }) {
      if (target instanceof Element && target.closest("summary, [aria-expanded]")) held.current = null;
    },
  };
}

/** @param {HTMLElement} scroller @param {string} messageId */
function bringIntoView(scroller, messageId) {
  const message = document.getElementById(`m-${messageId}`);
  const isTall = message !== null && message.offsetHeight > scroller.clientHeight * TALL_SHARE;
  message?.scrollIntoView({ block: isTall ? "start" : "center" });
}

/** Highlight and focus a message, so that the reader can go on from there by keyboard. @param {string} messageId */
function pointOut(messageId) {
  for (const before of document.querySelectorAll(".message.is-found")) before.classList.remove("is-found");
  const message = document.getElementById(`m-${messageId}`);
  if (!message) return;
  // Reading this property restarts the highlight if it was shown before.
  void message.offsetWidth;
  message.classList.add("is-found");
  message.tabIndex = -1;
  message.focus({ preventScroll: true });
}

/** Keep what the reader looks at in place when older messages arrive above it. */
function useAnchor(/** @type {{current: HTMLElement|null}} */ scroller, /** @type {Thread} */ thread) {
  const before = useRef({ first: "", top: 0 });
  const first = thread.ids[0] ?? "";
  // Measure a message, not the height of the list: the newest messages may be dropped at the same time.
  const topOf = (/** @type {string} */ id) => document.getElementById(`m-${id}`)?.getBoundingClientRect().top ?? 0;
  if (before.current.first && before.current.first !== first) before.current = { ...before.current, top: topOf(before.current.first) };
  useLayoutEffect(() => {
    const { first: firstBefore, top } = before.current;
    const now = scroller.current;
    const isPrepended = firstBefore && firstBefore !== first && thread.ids.includes(firstBefore);
    if (now && isPrepended) now.scrollTop += topOf(firstBefore) - top;
    before.current = { ...before.current, first };
  }, [first]);
}
