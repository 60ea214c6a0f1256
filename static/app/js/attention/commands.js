/**
 * Conversations that wait for the user: marks those shown in this tab as read, and notifies while the tab is hidden.
 */

import { effect } from "@preact/signals";
import { get, post, query } from "../api.js";
import { goTo } from "../commands/navigation.js";
import { t } from "../i18n.js";
import { isAtNewest } from "../state/pages.js";
import { conversations, currentConversation, currentThread, dispatch, state } from "../state/store.js";
import { hasMoreWaiting, isInView, mayNotify, waiting, wasAway } from "./store.js";

/** @typedef {import("../state/types.js").Conversation} Conversation */

const MOST = 100;
const ICON = document.querySelector("link[rel=icon]")?.getAttribute("href") ?? "";
/** Delay of a notification, in which another device of the user may show the conversation. */
const TOLD_AFTER_MS = 1500;

export function startAttention() {
  document.addEventListener("visibilitychange", noteView);
  effect(() => {
    const conversation = currentConversation.value;
    const thread = currentThread.value;
    const isShown = isInView.value && thread?.status === "ready" && !thread.run && isAtNewest(thread);
    if (isShown && conversation?.unread) queueMicrotask(() => markRead(conversation.id));
  });
  effect(() => {
    const now = waiting.value;
    if (!isInView.value && mayNotify.value) queueMicrotask(() => now.forEach(notifySoon));
    if (isInView.value) told.clear();
  });
}

function noteView() {
  isInView.value = !document.hidden;
  if (document.hidden && Object.values(conversations.value).some((one) => one.active_run)) wasAway.value = true;
}

/**
 * Load what waits for the user, including unlisted chats, and what other devices read while this page was disconnected.
 */
export async function loadAttention() {
  const page = await get(`/conversations${query({ attention: true, limit: MOST })}`).catch(() => null);
  if (!page) return;
  hasMoreWaiting.value = page.next_cursor !== null;
  dispatch({ type: "attention/loaded", items: page.items });
}

/** @param {string} id */
function markRead(id) {
  const { unread, message_count } = state.value.conversations[id] ?? {};
  if (!unread) return;
  dispatch({ type: "conversation.attention", conversation_id: id, unread: false });
  // If the request fails, the next page that shows the conversation sends it again.
  post(`/conversations/${id}/read`, { message_count }).catch(() => {});
}

/** Keys of the notifications since the tab was last visible. @type {Set<string>} */
const told = new Set();

/** @param {Conversation} conversation */
function notifySoon({ id, waiting_calls: calls, message_count: count }) {
  const key = `${id} ${calls ? "call" : count}`;
  if (told.has(key)) return;
  told.add(key);
  setTimeout(() => {
    const conversation = waiting.value.find((one) => one.id === id);
    if (conversation && !isInView.value) notify(conversation);
  }, TOLD_AFTER_MS);
}

/** @param {Conversation} conversation */
function notify({ id, title, waiting_calls: calls }) {
  const body = calls ? t("The assistant asks for your approval.") : t("The answer is ready.");
  try {
    // With this `tag`, several tabs show one notification per conversation.
    const notification = new Notification(title || t("New chat"), { body, tag: id, icon: ICON });
    notification.onclick = () => {
      window.focus();
      goTo(id);
      notification.close();
    };
  } catch {
    return; // phones allow notifications only in service workers
  }
}
