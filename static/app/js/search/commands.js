/** Searches messages and memory, filtered by folder, agent, time or speaker. */

import { get, query } from "../api.js";
import { changeUi } from "../state/store.js";

/** @typedef {{text: string, is_hit: boolean}} Span */
/**
 * @typedef {{text: string, excerpt: Span[], title: string|null, role: string|null, source: Record<string, any>,
 *   created_at: string}} Hit
 */
/** @typedef {{q: string, folder: string, agent: string, role: string, from: string, to: string}} Filters */

const LIMIT = 30;

/** @type {Filters} */
export const NO_FILTERS = { q: "", folder: "", agent: "", role: "", from: "", to: "" };

/** @param {Filters} filters @returns {Promise<Hit[]>} best match first */
export async function searchSaid({ q, folder, agent, role, from, to }) {
  return (await get(`/memory/search${query({ q, folder, agent, role, after: from, as_of: to, limit: LIMIT })}`)).items;
}

/** @param {string} [q] */
export const openSearch = (q = "") => changeUi({ dialog: { kind: "search", q } });
