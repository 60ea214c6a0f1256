/** State of the memory page: where the reader is, and which days have entries. */

import { signal } from "@preact/signals";

/**
 * @typedef {"days"|"shared"|"profile"|"review"|"chart"|"forgotten"} View
 * @typedef {{q: string, from: string, to: string, conversation: string}} Search
 * @typedef {{view: View, day: string|null, search: Search}} Place
 * @typedef {{day: string, entry_count: number}} Day
 * @typedef {{agent_id: string, agent: string, entry_count: number}} SharedMemory
 * @typedef {{paused: boolean, review: boolean, profile: boolean}} MemorySettings
 */

export const VIEWS = /** @type {const} */ (["days", "shared", "profile", "review", "chart", "forgotten"]);

/** @param {string} query of the address @returns {Place} */
export function placeOf(query) {
  const given = new URLSearchParams(query);
  const text = (/** @type {string} */ name) => given.get(name) ?? "";
  const view = VIEWS.find((one) => one === given.get("view")) ?? "days";
  const search = { q: text("q"), from: text("from"), to: text("to"), conversation: text("conversation") };
  return { view, day: given.get("day"), search };
}

/** @param {Place} place */
export function addressOfPlace({ view, day, search }) {
  const { q, from, to, conversation } = search;
  const named = q ? { q, from, to, conversation } : { view: view === "days" ? "" : view, day: day ?? "" };
  const given = Object.entries(named).filter(([, value]) => value);
  return given.length ? `/memory?${new URLSearchParams(given)}` : "/memory";
}

/** @type {Search} */
export const NO_SEARCH = { q: "", from: "", to: "", conversation: "" };

export const place = signal(/** @type {Place} */ ({ view: "days", day: null, search: NO_SEARCH }));
/** Newest first; null until they are loaded. */
export const days = signal(/** @type {Day[]|null} */ (null));
export const olderDaysCursor = signal(/** @type {string|null} */ (null));
export const daysProblem = signal("");
/** Null until they are loaded. */
export const memorySettings = signal(/** @type {MemorySettings|null} */ (null));
/** Agents with a shared memory. */
export const sharedMemories = signal(/** @type {SharedMemory[]} */ ([]));
/** Number of entries that wait for approval. */
export const waitingCount = signal(0);
