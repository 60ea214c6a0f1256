/** Reading, changing and searching the user's memory. */

import { get, patch, post, put, query } from "../api.js";
import { addressOfPlace, days, daysProblem, NO_SEARCH, olderDaysCursor, place, placeOf, sharedMemories } from "../state/memory.js";
import { monthOf } from "../state/calendar.js";
import { errorText } from "./conversations.js";

/**
 * @typedef {{id: string, day: string, text: string, author: "extraction"|"user"|"operator",
 *   shared_memory_of: string|null, state: "kept"|"proposed", revision: number, conversation_id: string|null,
 *   first_message_id: string|null, last_message_id: string|null, created_at: string}} Entry
 * @typedef {{revision: number, text: string, author: string, written_at: string, is_current: boolean}} Revision
 * @typedef {{id: string, day: string, text: string, is_mine: boolean, created_at: string}} SharedEntry
 * @typedef {{day: string, markdown: string, version: string, entries: Entry[]}} DayFile
 * @typedef {{text: string, source: Record<string, any>, score: number, created_at: string}} Found
 */

const SEARCH_LIMIT = 30;
const DAYS_PAGE = 100;

export function startMemory() {
  const follow = () => (place.value = placeOf(location.search));
  addEventListener("popstate", follow);
  follow();
  loadDays();
  loadSharedMemories();
}

/** @param {Partial<import("../state/memory.js").Place>} change */
export function goToPlace(change) {
  const wanted = { ...place.value, search: NO_SEARCH, ...change };
  const address = addressOfPlace(wanted);
  // Typing in the search field is one step in the history, not one per letter.
  if (wanted.search.q && place.value.search.q) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  place.value = wanted;
}

export async function loadDays() {
  try {
    const page = await get(`/memory/days${query({ limit: DAYS_PAGE })}`);
    days.value = page.items;
    olderDaysCursor.value = page.next_cursor;
    daysProblem.value = "";
  } catch (problem) {
    daysProblem.value = errorText(problem);
  }
}

/** Load older days until the calendar of that month is complete. @param {string} month */
export async function loadDaysOf(month) {
  while (olderDaysCursor.value && monthOf(days.value?.at(-1)?.day ?? "") >= month) {
    const page = await get(`/memory/days${query({ cursor: olderDaysCursor.value, limit: DAYS_PAGE })}`);
    days.value = [...(days.value ?? []), ...page.items];
    olderDaysCursor.value = page.next_cursor;
  }
}

/** Load the shared memories. If this fails, the page has one view less. */
const loadSharedMemories = () =>
  get("/memory/shared").then(
    (page) => (sharedMemories.value = page.items),
    () => {},
  );

/**
 * @param {string} agentId @param {string|null} cursor
 * @returns {Promise<{items: SharedEntry[], next_cursor: string|null}>} newest first
 */
export const readShared = (agentId, cursor) => get(`/memory/shared/${agentId}${query({ cursor })}`);

/**
 * Return the statistics of the last thirty days, without the days that have none.
 * @returns {Promise<import("../state/chart.js").DayStats[]>}
 */
export const readStats = async () => (await get("/memory/stats")).items;

/** @param {string} day @returns {Promise<DayFile>} */
export const readDay = (day) => get(`/memory/days/${encodeURIComponent(day)}`);

/** @param {DayFile} file as it was read @param {string} markdown @returns {Promise<DayFile>} */
export const writeDay = ({ day, version }, markdown) =>
  put(`/memory/days/${encodeURIComponent(day)}`, { markdown }, { "If-Match": `"${version}"` });

/** @param {string} text @param {string} [day] @returns {Promise<Entry>} */
export const addEntry = (text, day) => post("/memory/entries", day ? { text, day } : { text });

/** @param {Entry} entry @param {string} text @returns {Promise<Entry>} */
export const editEntry = ({ id, revision }, text) => patch(`/memory/entries/${id}`, { text, revision });

/** @param {string} id @returns {Promise<Revision[]>} newest first */
export const entryHistory = async (id) => (await get(`/memory/entries/${id}/history`)).items;

/** @param {string} id @param {number} revision @returns {Promise<Entry>} */
export const revertEntry = (id, revision) => post(`/memory/entries/${id}/revert`, { revision });

/**
 * Search up to the end of the last day, by what was known then.
 * @param {import("../state/memory.js").Search} search @returns {Promise<Found[]>}
 */
export async function searchMemory({ q, from, to, conversation }) {
  const found = await get(`/memory/search${query({ q, after: from, as_of: to, conversation_id: conversation, limit: SEARCH_LIMIT })}`);
  return found.items;
}
