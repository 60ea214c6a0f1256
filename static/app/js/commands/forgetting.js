/** Forgetting for good: at once, or what is proposed and chosen from. Each time there is a receipt. */

import { get, post, query, remove } from "../api.js";

/**
 * @typedef {{id: string, what: string, removed: Record<string, number>, at: string}} Receipt
 * @typedef {{kind: "message"|"entry", id: string, preview: string, created_at: string, conversation_id: string|null,
 *   day?: string, role?: string}} ForgetItem
 * @typedef {{proposal_id: string, items: ForgetItem[], receipt?: Receipt|null}} Proposal
 * @typedef {Receipt & {proposal?: Proposal|null}} ForgetAnswer
 * @typedef {{entry_id: string}|{message_id: string}|{conversation_id: string}|{day: string}|{everything: true}} Wish
 */

/**
 * With what says it again elsewhere, where anything does. What goes for good is not even remembered when it is asked for.
 * @param {Wish} wish @param {boolean} isForGood @returns {Promise<ForgetAnswer>}
 */
export const forget = (wish, isForGood) => post("/memory/forget", { ...wish, for_good: isForGood });

/** Nothing is forgotten yet. @param {string} words @returns {Promise<Proposal>} */
export const proposeForgetting = (words) => post("/memory/forget/propose", { query: words });

/** @param {string} id @returns {Promise<Proposal>} */
export const readProposal = (id) => get(`/memory/forget/proposals/${id}`);

/** @param {string} id @param {string[]} itemIds @param {boolean} isForGood @returns {Promise<ForgetAnswer>} */
export const confirmForgetting = (id, itemIds, isForGood) =>
  post("/memory/forget/confirm", { proposal_id: id, item_ids: itemIds, for_good: isForGood });

/**
 * What is never learned again, newest first.
 * @typedef {{id: string, kind: string, count: number, for_good: boolean, at: string}} NotLearned
 * @returns {Promise<{items: NotLearned[], next_cursor: string|null}>}
 */
export const listNotLearned = () => get("/memory/not-learned");

/** It may be learned again. @param {string} id @returns {Promise<void>} */
export const learnAgain = (id) => remove(`/memory/not-learned/${id}`);

/** @param {string|null} [cursor] @returns {Promise<{items: Receipt[], next_cursor: string|null}>} */
export const listReceipts = (cursor = null) => get(`/memory/receipts${query({ cursor })}`);
