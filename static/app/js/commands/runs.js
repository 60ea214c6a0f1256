/** Details of a run: its steps with their times, and its requests as they were sent. */

import { get } from "../api.js";
import { changeUi } from "../state/store.js";

/**
 * @typedef {{input_tokens: number, output_tokens: number, cached_tokens: number, exact: boolean}} StepUsage
 * @typedef {{call_id: string, name: string, state: string, requested_at: string, started_at: string|null,
 *   finished_at: string|null, duration_ms: number|null, preview: string, arguments: string,
 *   hook_id: string|null}} TracedCall
 * @typedef {{n: number, purpose: string, plan_step: string|null, title: string|null, round: number|null, model: string,
 *   started_at: string, first_token_ms: number|null, duration_ms: number, usage: StepUsage, request: {n: number}|null,
 *   tools: TracedCall[]}} Iteration
 * @typedef {{iterations: Iteration[], hooks: FiredHook[]}} Trace
 * @typedef {{hook_id: string, action: string, level: string|null, text: string, at: string,
 *   tool: TracedCall|null}} FiredHook
 * @typedef {{n: number, purpose: string, model: string, sha256: string, tokens: number,
 *   created_at: string}} SentRequest
 * @typedef {{source: string, state: string, role: string, tokens: number, content: any}} SentPiece
 * @typedef {SentRequest & {verified: boolean, body: Record<string, any>, pieces: SentPiece[]}} ShownRequest
 */

/** @param {string} runId @returns {Promise<Trace>} */
export const readTrace = (runId) => get(`/runs/${runId}/trace`);

/** @param {string} runId @returns {Promise<SentRequest[]>} in order */
export const listRequests = async (runId) => (await get(`/runs/${runId}/requests`)).items;

/** @param {string} runId @param {number} n @returns {Promise<ShownRequest>} */
export const readRequest = (runId, n) => get(`/runs/${runId}/requests/${n}`);

/** @param {string} runId */
export const openRun = (runId) => changeUi({ panel: "run", panelRun: runId });
