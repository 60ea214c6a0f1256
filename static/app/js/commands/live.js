/** Connects the socket to the store: subscribes to the open conversation, and requests what is missing. */

import { goToSignIn } from "../api.js";
import { ChatSocket } from "../socket.js";
import { isAtNewest } from "../state/pages.js";
import { currentId, dispatch, state } from "../state/store.js";
import { unstoreDraft } from "../storage.js";
import { loadThread } from "./pages.js";

const ASK_AGAIN_MS = 2000;
const POLL_MS = 4000;

/** @type {ReturnType<typeof setInterval>|undefined} */
let pollTimer;

/** @type {ChatSocket|null} */
let socket = null;
/** @type {string|null} */
let watched = null;
/** @type {Map<string, number>} */
const askedAt = new Map();

/** @param {(isAgain: boolean) => unknown} onOpen called on each connection; `isAgain`: events may have been missed */
export function startLive(onOpen) {
  let isAgain = false;
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  socket = new ChatSocket(`${scheme}//${location.host}/ws/chat`, {
    onFrames: takeFrames,
    onState: changeConnection,
    onOpen: () => {
      watchAgain();
      onOpen(isAgain);
      isAgain = true;
    },
    onDoubt: askWhetherSignedIn,
  });
  socket.connect();
}

/** @param {any[]} frames */
function takeFrames(frames) {
  dispatch({ type: "events/received", events: frames });
  for (const { type, conversation_id: id } of frames) if (type === "conversation.deleted") unstoreDraft(id);
  healThread();
}

/** @param {string} connection */
function changeConnection(connection) {
  dispatch({ type: "connection/changed", connection });
  clearInterval(pollTimer);
  if (connection === "lost") pollTimer = setInterval(readWithoutSocket, POLL_MS);
}

/** Watch one conversation. News of the others reaches the sidebar without a subscription. @param {string|null} id */
export function watch(id) {
  if (watched && watched !== id) socket?.send({ type: "unsubscribe", conversation_id: watched });
  watched = id;
  watchAgain();
}

/** Subscribe from the last known event. The server sends all later ones, and the current text of a running answer. */
export function watchAgain() {
  const thread = watched ? state.value.threads[watched] : undefined;
  if (!thread || thread.status !== "ready") return;
  socket?.send({ type: "subscribe", conversation_id: thread.id, after_seq: thread.lastSeq });
}

/** Check the session. The server redirects a signed-out user, which the browser does not log as an error. */
async function askWhetherSignedIn() {
  try {
    const { type } = await fetch("/", { redirect: "manual" });
    if (type === "opaqueredirect") goToSignIn();
    else socket?.connectNow();
  } catch {
    return; // the socket keeps trying
  }
}

/** Read a running answer now and then if sockets do not get through. */
function readWithoutSocket() {
  const thread = state.value.threads[currentId.value ?? ""];
  if (!thread || !isAtNewest(thread)) return;
  if (thread.run || thread.pending.some((item) => item.messageId)) loadThread(thread.id);
}

/** @param {string} id */
export async function reloadThread(id) {
  if (await loadThread(id)) watchAgain();
}

/** @param {string} messageId @param {number} length */
function askForRest(messageId, length) {
  askedAt.set(messageId, Date.now());
  socket?.send({ type: "message.sync", message_id: messageId, length });
}

/** Request what the reducer found missing, at most once in ASK_AGAIN_MS. */
function healThread() {
  const thread = state.value.threads[currentId.value ?? ""];
  if (!thread) return;
  if (thread.isStale && mayAsk(`stale ${thread.id} ${state.value.conversations[thread.id]?.branch}`)) reloadThread(thread.id);
  if (thread.needsReplay && mayAsk(`replay ${thread.id}`)) watchAgain();
  for (const id of thread.ids) {
    const message = thread.messages[id];
    if (message.hasGap && mayAsk(id)) askForRest(id, message.chars);
  }
}

/** @param {string} what */
function mayAsk(what) {
  const now = Date.now();
  if (now - (askedAt.get(what) ?? 0) < ASK_AGAIN_MS) return false;
  askedAt.set(what, now);
  return true;
}
