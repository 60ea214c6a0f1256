/** Uploads exports of other programs in parts, and follows their imports. The server says how much of a file it has. */

import { signal } from "@preact/signals";
import { ApiError, get, post, query, remove, uploadBody } from "../api.js";
import { loadListing, errorText } from "../commands/conversations.js";
import { t } from "../i18n.js";

/** @typedef {{id: string, file_name: string, size_bytes: number, received_bytes: number, part_bytes: number,
 *   state: "uploading"|"waiting"|"running"|"done"|"failed", progress: number, source: string, conversations: number,
 *   messages: number, known: number,
 *   problem_count: number, problems: {index: number, reason: string}[], left_out: Record<string, number>, error:
 *   string, can_try_again: boolean}} Import */
/**
 * @typedef {{conversations: number, messages: number, tokens: number, model: string|null, cost: number|null,
 *   embedding_tokens: number}} Costs
 */

/** @typedef {{id: string, name: string, share: number, isBroken: boolean, abort: AbortController}} Sending */

const LOOK_AGAIN_MS = 1000;
const SEND_AGAIN_MS = 2000;

export const imports = signal(/** @type {Import[]|null} */ (null));
export const costs = signal(/** @type {Costs|null} */ (null));
/** The file being sent: how much the server has, and whether the connection is broken. */
export const sending = signal(/** @type {Sending|null} */ (null));
export const problem = signal("");

const isGoingOn = (/** @type {Import} */ { state }) => state === "waiting" || state === "running";

/** Imports that were done when the list of chats was last read; null until they are known. @type {Set<string>|null} */
let listed = null;

function noteDone() {
  const done = new Set((imports.value ?? []).filter((one) => !isGoingOn(one)).map(({ id }) => id));
  if (listed && [...done].some((id) => !listed?.has(id))) loadListing();
  listed = done;
}

/** Poll the imports until none is running. They go on without the page, too. @param {AbortSignal} until */
export async function followImports(until) {
  let isLost = false;
  while (!until.aborted) {
    try {
      imports.value = (await get("/imports")).items;
      if (isLost) problem.value = "";
      isLost = false;
      noteDone();
      if (!imports.value?.some(isGoingOn)) {
        costs.value = await get("/imports/cost");
        return;
      }
    } catch (error) {
      isLost = true;
      problem.value = errorText(error);
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
  }
}

/**
 * Upload an export, resuming an earlier upload of the same file.
 * @param {File} file @returns {Promise<boolean>} whether it was uploaded
 */
export async function sendExport(file) {
  const abort = new AbortController();
  sending.value = { id: "", name: file.name, share: 0, isBroken: false, abort };
  problem.value = "";
  try {
    let held = await post("/imports/uploads", { file_name: file.name, size_bytes: file.size, fingerprint: String(file.lastModified) });
    while (held.state === "uploading") held = await sendPart(file, held, abort);
    return true;
  } catch (error) {
    if (!abort.signal.aborted) problem.value = errorText(error);
    return false;
  } finally {
    if (sending.value?.abort === abort) sending.value = null;
  }
}

/**
 * Send the next part. If the connection breaks, poll until the server says how much it has.
 * @param {File} file @param {Import} held @param {AbortController} abort @returns {Promise<Import>}
 */
async function sendPart(file, held, abort) {
  const { id, size_bytes: size, received_bytes: offset } = held;
  const tell = (/** @type {number} */ bytes, isBroken = false) => {
    if (!abort.signal.aborted) sending.value = { id, name: file.name, share: bytes / size, isBroken, abort };
  };
  tell(offset);
  const part = await readPart(file, offset, held.part_bytes);
  try {
    const path = `/imports/${id}/parts${query({ offset })}`;
    return await uploadBody(path, part, (share) => tell(offset + share * part.size), abort.signal);
  } catch (error) {
    if (!isTemporary(error)) throw error;
    tell(offset, true);
  }
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, SEND_AGAIN_MS));
    abort.signal.throwIfAborted();
    try {
      return await get(`/imports/${id}`);
    } catch (error) {
      if (!isTemporary(error)) throw error;
    }
  }
}

/**
 * Read a part of a file. A file that was changed or moved meanwhile cannot be read.
 * @param {File} file @param {number} offset @param {number} bytes
 */
async function readPart(file, offset, bytes) {
  try {
    return new Blob([await file.slice(offset, offset + bytes).arrayBuffer()], { type: "application/octet-stream" });
  } catch {
    throw new ApiError(0, "unreadable", t("This file can no longer be read. Choose it again."));
  }
}

/**
 * Return whether a retry may succeed: no connection, a busy server, or a different part expected.
 * @param {unknown} error
 */
const isTemporary = (error) =>
  error instanceof ApiError && (error.status === 0 || error.status === 409 || error.status === 429 || (error.status >= 500 && error.status !== 507));

/** Stop sending. A later upload resumes after the parts that arrived. */
export function stopSending() {
  sending.value?.abort.abort();
  sending.value = null;
}

/** Retry a failed import. @param {Import} one */
export const tryAgain = (one) => change(() => post(`/imports/${one.id}/retry`));

/** Delete the uploaded part of a file. The user still has the file. @param {Import} one */
export const discard = (one) => change(() => remove(`/imports/${one.id}`));

/** @param {() => Promise<unknown>} request @returns {Promise<boolean>} */
async function change(request) {
  try {
    await request();
    return true;
  } catch (error) {
    problem.value = errorText(error);
    return false;
  }
}
