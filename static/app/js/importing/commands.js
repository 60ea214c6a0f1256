/** Uploads exports of other programs, and follows their imports. */

import { signal } from "@preact/signals";
import { get, uploadFile } from "../api.js";
import { loadListing, sentenceOf } from "../commands/conversations.js";

/** @typedef {{id: string, file_name: string, state: "waiting"|"running"|"done"|"failed", progress: number, source: string, conversations: number,
 *   messages: number, known: number, problem_count: number, problems: {index: number, reason: string}[], left_out: Record<string, number>, error: string}} Import */
/** @typedef {{conversations: number, messages: number, tokens: number, model: string|null, cost: number|null, embedding_tokens: number}} Costs */

const LOOK_AGAIN_MS = 1000;

export const imports = signal(/** @type {Import[]|null} */ (null));
export const costs = signal(/** @type {Costs|null} */ (null));
/** The file on its way: how much of it the server has. */
export const sending = signal(/** @type {{name: string, share: number, abort: AbortController}|null} */ (null));
export const problem = signal("");

const isGoingOn = (/** @type {Import} */ { state }) => state === "waiting" || state === "running";

/** The imports that were done when the list of chats was read last; null until they are known. @type {Set<string>|null} */
let listed = null;

function noteDone() {
  const done = new Set((imports.value ?? []).filter((one) => !isGoingOn(one)).map(({ id }) => id));
  if (listed && [...done].some((id) => !listed?.has(id))) loadListing();
  listed = done;
}

/** Until nothing is going on; an import goes on without the page, too. @param {AbortSignal} until */
export async function followImports(until) {
  while (!until.aborted) {
    try {
      imports.value = (await get("/imports")).items;
      problem.value = "";
      noteDone();
      if (!imports.value?.some(isGoingOn)) {
        costs.value = await get("/imports/cost");
        return;
      }
    } catch (error) {
      problem.value = sentenceOf(error);
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
  }
}

/** @param {File} file @returns {Promise<boolean>} whether it arrived */
export async function sendExport(file) {
  const abort = new AbortController();
  sending.value = { name: file.name, share: 0, abort };
  problem.value = "";
  try {
    await uploadFile(file, (share) => (sending.value = { name: file.name, share, abort }), abort.signal, "/imports");
    return true;
  } catch (error) {
    if (!abort.signal.aborted) problem.value = sentenceOf(error);
    return false;
  } finally {
    sending.value = null;
  }
}

export function cancelSending() {
  sending.value?.abort.abort();
  sending.value = null;
}
