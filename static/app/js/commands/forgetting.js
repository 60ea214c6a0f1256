/** Forgetting, directly or by choosing from a proposal. Each forgetting returns a receipt. */

import { get, post, query, remove } from "../api.js";

/**
 * @typedef {{id: string, what: string, removed: Record<string, number>, at: string}} Receipt
 * @typedef {{kind: "message"|"entry", id: string, preview: string, created_at: string, conversation_id: string|null,
 *   day?: string, role?: string}} ForgetItem
 * @typedef {{proposal_id: string, items: ForgetItem[], receipt?: Receipt|null}} Proposal
 * @typedef {Receipt & {proposal?: Proposal|null}} ForgetAnswer
 * @typedef {{entry_id: string}|{message_id: string}|{conversation_id: string}|{day: string}
 *   |{everything: true}} ForgetTarget
 */

/**
 * Forget the target. The answer may propose other places that say the same. Sentences forgotten for good are not
 * learned again, even if the user asks for it.
 * @param {ForgetTarget} forgetTarget @param {boolean} isForGood @returns {Promise<ForgetAnswer>}
 */
export const forget = (forgetTarget, isForGood) => post("/memory/forget", { ...forgetTarget, for_good: isForGood });

/** Propose what to forget. Nothing is forgotten yet. @param {string} words @returns {Promise<Proposal>} */
export const proposeForgetting = (words) => post("/memory/forget/propose", { query: words });

/** @param {string} id @returns {Promise<Proposal>} */
export const readProposal = (id) => get(`/memory/forget/proposals/${id}`);

/** @param {string} id @param {string[]} itemIds @param {boolean} isForGood @returns {Promise<ForgetAnswer>} */
export const confirmForgetting = (id, itemIds, isForGood) =>
  post("/memory/forget/confirm", { proposal_id: id, item_ids: itemIds, for_good: isForGood });

/**
 * List what is never learned again, newest first.
 * @typedef {{id: string, kind: string, count: number, for_good: boolean, at: string}} NotLearned
 * @returns {Promise<{items: NotLearned[], next_cursor: string|null}>}
 */
export const listNotLearned = () => get("/memory/not-learned");

/** Allow forgotten sentences to be learned again. @param {string} id @returns {Promise<void>} */
export const learnAgain = (id) => remove(`/memory/not-learned/${id}`);

/** @param {string|null} [cursor] @returns {Promise<{items: Receipt[], next_cursor: string|null}>} */
export const listReceipts = (cursor = null) => get(`/memory/receipts${query({ cursor })}`);
