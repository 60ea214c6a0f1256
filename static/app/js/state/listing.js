/** The sidebar: which conversations are known, and their order. Pure functions. */

/** @typedef {import("./types.js").State} State */
/** @typedef {import("./types.js").Conversation} Conversation */
/** @typedef {import("./types.js").AppEvent} AppEvent */

/** @param {State} state @param {AppEvent} event @returns {State} */
export function loadListing(state, event) {
  const { next_cursor: nextCursor } = event.page;
  const items = event.page.items.filter((/** @type {Conversation} */ { temporary }) => !temporary);
  const conversations = { ...state.conversations };
  for (const item of items) conversations[item.id] = { ...conversations[item.id], ...item };
  const before = event.isFirst ? usedSince(state, event.asked) : state.listing.ids;
  const ids = [...new Set([...before, ...items.map((/** @type {Conversation} */ item) => item.id)])];
  const listing = { ...state.listing, ids, nextCursor, isLoading: false, isLoaded: true, error: "" };
  return { ...state, conversations, listing };
}

/**
 * Return conversations that were created or used while the first page was loading.
 * @param {State} state @param {State["conversations"]} asked as they were at the request
 */
function usedSince({ listing, conversations }, asked) {
  if (listing.query || listing.showsArchived) return [];
  return listing.ids.filter((id) => {
    const { archived, folder, last_activity_at: at } = conversations[id];
    return !archived && !folder && at !== asked[id]?.last_activity_at;
  });
}

/** Update a conversation, and list it if it belongs to the list. @param {State} state @returns {State} */
export function putConversation(state, /** @type {Conversation} */ conversation) {
  const conversations = {
    ...state.conversations,
    [conversation.id]: { ...state.conversations[conversation.id], ...conversation },
  };
  const { listing } = state;
  const isElsewhere = conversation.temporary || (conversation.folder && !listing.showsArchived);
  const belongs = !listing.query && !isElsewhere && conversation.archived === listing.showsArchived;
  const isListed = listing.ids.includes(conversation.id);
  const moved = { ...state, conversations };
  if (belongs && !isListed) return { ...moved, listing: { ...listing, ids: [conversation.id, ...listing.ids] } };
  if (!belongs && isListed && !listing.query) return unlist(moved, conversation.id);
  return moved;
}

/** @param {State} state @param {string} id @returns {State} */
export function unlist(state, id) {
  return { ...state, listing: { ...state.listing, ids: state.listing.ids.filter((one) => one !== id) } };
}

/** @param {State} state @param {string} id @returns {State} */
export function forgetConversation(state, id) {
  const { [id]: _conversation, ...conversations } = state.conversations;
  const { [id]: _thread, ...threads } = state.threads;
  return { ...unlist(state, id), conversations, threads };
}

/** @param {State} state @param {AppEvent} event @returns {State} */
export function noteRun(state, event) {
  const conversation = state.conversations[event.conversation_id];
  if (!conversation) return state;
  // The end of an earlier answer may arrive late.
  if (event.type === "run.finished" && conversation.active_run && conversation.active_run.id !== event.run_id) return state;
  const active_run = event.type === "run.started" ? { id: event.run_id, message_id: event.message_id } : null;
  return { ...state, conversations: { ...state.conversations, [conversation.id]: { ...conversation, active_run } } };
}

/**
 * Update what waits for the user in a conversation. Fields missing from the event stay the same.
 * @param {State} state @param {AppEvent} event @returns {State}
 */
export function noteAttention(state, { conversation_id: id, unread, waiting_calls: waitingCalls }) {
  const known = state.conversations[id];
  if (!known) return state;
  const changed = { ...known, unread: unread ?? known.unread, waiting_calls: waitingCalls ?? known.waiting_calls };
  return { ...state, conversations: { ...state.conversations, [id]: changed } };
}

/**
 * Replace everything that waits for the user, listed or not. Conversations that are not included do not wait any more.
 * @param {State} state @param {AppEvent} event @returns {State}
 */
export function loadAttention(state, { items }) {
  const conversations = { ...state.conversations };
  for (const [id, known] of Object.entries(conversations))
    if (waits(known)) conversations[id] = { ...known, unread: false, waiting_calls: 0 };
  for (const item of items) conversations[item.id] = { ...conversations[item.id], ...item };
  return { ...state, conversations };
}

/** @param {Conversation} conversation @returns {boolean} whether there is something for the user to do or read */
export const waits = ({ unread, waiting_calls: calls, archived, temporary }) =>
  !archived && !temporary && (Boolean(calls) || Boolean(unread));
