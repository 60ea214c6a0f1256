/** The only reducer: (state, event) → state. Pure: no clock, no network, no storage. */

import { contextUse } from "./context.js";
import { forgetConversation, loadAttention, loadListing, noteAttention, noteRun, putConversation } from "./listing.js";
import { appendPage, loadPage, prependPage } from "./pages.js";
import { applyEvent, dropNote, emptyThread } from "./thread.js";

/** @typedef {import("./types.js").State} State */
/** @typedef {import("./types.js").Thread} Thread */
/** @typedef {import("./types.js").AppEvent} AppEvent */

/** @returns {State} */
export function initialState() {
  return {
    connection: "connecting",
    models: [],
    modelsState: "loading",
    chosenModel: null,
    isTemporary: false,
    agents: [],
    chosenAgent: null,
    chosenMode: null,
    currentId: null,
    conversations: {},
    listing: {
      ids: [],
      nextCursor: null,
      isLoading: false,
      isLoaded: false,
      error: "",
      query: "",
      showsArchived: false,
    },
    threads: {},
    ui: { sidebar: true, panel: null, panelRun: null, dialog: null, image: null, toasts: [] },
  };
}

/**
 * Return whether the next toast replaces this one: only the last change of a thing can be undone.
 * @param {import("./types.js").Toast} shown @param {import("./types.js").Toast} next
 */
const isReplaced = (shown, next) => shown.action?.about !== undefined && shown.action.about === next.action?.about;

/** @type {Record<string, (state: State, event: AppEvent) => State>} */
const PAGE_EVENTS = {
  "events/received": (state, { events }) => events.reduce(reduceEvent, state),
  "connection/changed": (state, { connection }) => ({ ...state, connection }),
  "models/loaded": (state, { models }) => ({ ...state, models, modelsState: "ready" }),
  "models/failed": (state) => ({ ...state, modelsState: "failed" }),
  "model/chosen": (state, { model }) => ({ ...state, chosenModel: model }),
  "agents/loaded": (state, { agents }) => ({ ...state, agents }),
  "agent/chosen": (state, { agent }) => ({ ...state, chosenAgent: agent }),
  "temporary/chosen": (state, { isTemporary }) => ({ ...state, isTemporary }),
  "mode/chosen": (state, { mode }) => ({ ...state, chosenMode: mode }),
  "ui/changed": (state, { ui }) => ({ ...state, ui: { ...state.ui, ...ui } }),
  "toast/shown": (state, { toast }) => ({ ...state, ui: { ...state.ui, toasts: [...state.ui.toasts.filter((one) => !isReplaced(one, toast)), toast] } }),
  "toast/gone": (state, { id }) => ({
    ...state,
    ui: { ...state.ui, toasts: state.ui.toasts.filter((toast) => toast.id !== id) },
  }),
  "listing/loading": (state, { query, showsArchived }) => ({
    ...state,
    listing: { ...state.listing, query, showsArchived, isLoading: true },
  }),
  "listing/loaded": loadListing,
  "listing/failed": (state, { message }) => ({
    ...state,
    listing: { ...state.listing, isLoading: false, error: message },
  }),
  "attention/loaded": loadAttention,
  "conversation/put": (state, { conversation }) => putConversation(state, conversation),
  "conversation/forgotten": (state, { id }) => forgetConversation(state, id),
  "conversation/opened": openConversation,
  "thread/loaded": (state, event) =>
    putConversation(
      changeThread(state, event.conversation.id, (thread) => loadPage(thread, event)),
      event.conversation,
    ),
  "thread/failed": (state, { id, isMissing, message }) =>
    changeThread(state, id, (thread) => {
      // Keep the messages that are shown: only reading them again failed.
      if (thread.status === "ready" && !isMissing) return thread;
      return { ...thread, status: isMissing ? "missing" : "failed", error: message };
    }),
  "thread/reset": (state, { id }) => changeThread(state, id, (thread) => ({ ...thread, isStale: true })),
  "older/loading": (state, { id }) => changeThread(state, id, (thread) => ({ ...thread, isLoadingOlder: true })),
  "older/loaded": (state, { id, before, page, leavesNewest }) => changeThread(state, id, (thread) => prependPage(thread, before, page, leavesNewest)),
  "older/failed": (state, { id }) => changeThread(state, id, (thread) => ({ ...thread, isLoadingOlder: false })),
  "newer/loading": (state, { id }) => changeThread(state, id, (thread) => ({ ...thread, isLoadingNewer: true })),
  "newer/loaded": (state, { id, after, page, conversation }) =>
    changeThread(state, id, (thread) => appendPage(thread, after, page, conversation)),
  "newer/failed": (state, { id }) => changeThread(state, id, (thread) => ({ ...thread, isLoadingNewer: false })),
  "message/sought": (state, { id, messageId }) => changeThread(state, id, (thread) => ({ ...thread, scrollTarget: { messageId } })),
  "compactions/loaded": (state, { id, compactions }) =>
    changeThread(state, id, (thread) => ({ ...thread, compactions })),
  "context/loaded": (state, { id, context }) =>
    changeThread(state, id, (thread) => ({ ...thread, context: contextUse(context) })),
  "memory/undone": (state, { id, entryId }) => changeThread(state, id, (thread) => dropNote(thread, entryId)),
  "send/started": (state, { id, pending }) =>
    changeThread(state, id, (thread) => ({ ...thread, pending: [...thread.pending, pending] })),
  "send/acked": (state, { id, clientId, messageId }) =>
    changeThread(state, id, (thread) => ({ ...thread, pending: acknowledge(thread, clientId, messageId) })),
  "send/failed": (state, { id, clientId }) =>
    changeThread(state, id, (thread) => ({
      ...thread,
      pending: thread.pending.filter((item) => item.clientId !== clientId),
    })),
};

/** @param {State} state @param {AppEvent} event @returns {State} */
export function reduce(state, event) {
  const ours = PAGE_EVENTS[event.type];
  return ours ? ours(state, event) : reduceEvent(state, event);
}

/** @param {State} state @param {AppEvent} event @returns {State} */
function reduceEvent(state, event) {
  if (event.type === "reset") return reduce(state, { type: "thread/reset", id: event.conversation_id });
  const listed = noteInListing(state, event);
  return changeThread(listed, event.conversation_id, (thread) =>
    thread.status === "ready" ? applyEvent(thread, event) : thread,
  );
}

/** @param {State} state @param {AppEvent} event @returns {State} */
function noteInListing(state, event) {
  if (event.type === "conversation.updated") return putConversation(state, event.conversation);
  if (event.type === "conversation.deleted") return removeConversation(state, event.conversation_id);
  if (event.type === "conversation.attention") return noteAttention(state, event);
  if (event.type === "run.started" || event.type === "run.finished") return noteRun(state, event);
  return state;
}

/** @param {State} state @param {string} id @param {(thread: Thread) => Thread} change @returns {State} */
function changeThread(state, id, change) {
  const thread = state.threads[id];
  if (!thread) return state;
  const changed = change(thread);
  return changed === thread ? state : { ...state, threads: { ...state.threads, [id]: changed } };
}

/**
 * Remove a deleted conversation. If it is open, keep its thread, which says that it is gone.
 * @param {State} state @param {string} id @returns {State}
 */
function removeConversation(state, id) {
  const left = forgetConversation(state, id);
  return state.currentId === id ? { ...left, threads: state.threads } : left;
}

const KEPT_THREADS = 6;

/**
 * Open a conversation. Close the panel of a run, which belongs to the previous chat.
 * @param {State} before @param {AppEvent} event @returns {State}
 */
function openConversation(before, { id }) {
  const isLeft = before.ui.panel === "run" && id !== before.currentId;
  const state = isLeft ? { ...before, ui: { ...before.ui, panel: null } } : before;
  if (id === null) return { ...state, currentId: null };
  const { [id]: known = emptyThread(id), ...others } = state.threads;
  const kept = Object.entries(others).slice(-KEPT_THREADS + 1);
  return { ...state, currentId: id, threads: { ...Object.fromEntries(kept), [id]: { ...known, scrollTarget: null } } };
}

/** @param {Thread} thread @param {string} clientId @param {string} messageId */
function acknowledge(thread, clientId, messageId) {
  if (thread.messages[messageId]) return thread.pending.filter((item) => item.clientId !== clientId);
  return thread.pending.map((item) => (item.clientId === clientId ? { ...item, messageId } : item));
}
