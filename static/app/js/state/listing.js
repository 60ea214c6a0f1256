/** The sidebar: which conversations are known and in which order. Pure. */

/** @typedef {import("./types.js").State} State */
/** @typedef {import("./types.js").Conversation} Conversation */
/** @typedef {import("./types.js").Happening} Happening */

/** @param {State} state @param {Happening} happening @returns {State} */
export function loadListing(state, happening) {
  const { next_cursor: nextCursor } = happening.page;
  const items = happening.page.items.filter((/** @type {Conversation} */ { temporary }) => !temporary);
  const conversations = { ...state.conversations };
  for (const item of items) conversations[item.id] = { ...conversations[item.id], ...item };
  const before = happening.isFirst ? usedSince(state, happening.asked) : state.listing.ids;
  const ids = [...new Set([...before, ...items.map((/** @type {Conversation} */ item) => item.id)])];
  const listing = { ...state.listing, ids, nextCursor, isLoading: false, isLoaded: true, error: "" };
  return { ...state, conversations, listing };
}

/** What began, or was used, while the first page was on its way. @param {State} state @param {State["conversations"]} asked as they were before */
function usedSince({ listing, conversations }, asked) {
  if (listing.query || listing.showsArchived) return [];
  return listing.ids.filter((id) => {
    const { archived, folder, last_activity_at: at } = conversations[id];
    return !archived && !folder && at !== asked[id]?.last_activity_at;
  });
}

/** What is known of a conversation changes; one that was not listed yet joins. @param {State} state @returns {State} */
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

/** @param {State} state @param {Happening} event @returns {State} */
export function noteRun(state, event) {
  const conversation = state.conversations[event.conversation_id];
  if (!conversation) return state;
  // The end of an earlier answer may come late.
  if (event.type === "run.finished" && conversation.active_run && conversation.active_run.id !== event.run_id) return state;
  const active_run = event.type === "run.started" ? { id: event.run_id, message_id: event.message_id } : null;
  return { ...state, conversations: { ...state.conversations, [conversation.id]: { ...conversation, active_run } } };
}

/** What waits for the user there; what the event does not name is as before. @param {State} state @param {Happening} event @returns {State} */
export function noteAttention(state, { conversation_id: id, unread, waiting_calls: waitingCalls }) {
  const known = state.conversations[id];
  if (!known) return state;
  const changed = { ...known, unread: unread ?? known.unread, waiting_calls: waitingCalls ?? known.waiting_calls };
  return { ...state, conversations: { ...state.conversations, [id]: changed } };
}

/** All that waits for the user, listed or not; what is not among it does not wait any more. @param {State} state @param {Happening} happening @returns {State} */
export function loadAttention(state, { items }) {
  const conversations = { ...state.conversations };
  for (const [id, known] of Object.entries(conversations))
    if (waits(known)) conversations[id] = { ...known, unread: false, waiting_calls: 0 };
  for (const item of items) conversations[item.id] = { ...conversations[item.id], ...item };
  return { ...state, conversations };
}

/** @param {Conversation} conversation @returns {boolean} whether its user has something to do or to read there */
export const waits = ({ unread, waiting_calls: calls, archived, temporary }) =>
  !archived && !temporary && (Boolean(calls) || Boolean(unread));
