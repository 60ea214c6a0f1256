/** Reading memory: its days, one day's file, and the search over everything that was said. */

import { get, query } from "../api.js";

/**
 * @typedef {{day: string, entry_count: number}} Day
 * @typedef {{id: string, text: string, conversation_id: string|null, first_message_id: string|null,
 *   last_message_id: string|null, created_at: string}} Entry
 * @typedef {{day: string, markdown: string, entries: Entry[]}} DayFile
 * @typedef {{text: string, source: Record<string, any>, score: number, created_at: string}} Found
 */

const SEARCH_LIMIT = 30;

/** @param {string|null} cursor @returns {Promise<{items: Day[], next_cursor: string|null}>} */
export const listDays = (cursor) => get(`/memory/days${query({ cursor })}`);

/** @param {string} day @returns {Promise<DayFile>} */
export const readDay = (day) => get(`/memory/days/${encodeURIComponent(day)}`);

/** @param {string} q @returns {Promise<Found[]>} */
export const searchMemory = async (q) => (await get(`/memory/search${query({ q, limit: SEARCH_LIMIT })}`)).items;
