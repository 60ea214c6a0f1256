/** Adds files to the composer: by button, paste and drop. The server finds the type of a file by its content. */

import { boot } from "../boot.js";
import { ApiError, fileUrl, uploadFile } from "../api.js";
import { formatBytes } from "../format.js";
import { t } from "../i18n.js";
import { addUploads, changeUpload } from "../state/draft.js";
import { currentId } from "../state/store.js";
import { errorText } from "./conversations.js";
import { isReadable } from "./fileStart.js";

export const ACCEPTED = "image/png,image/jpeg,image/gif,image/webp,text/*,application/pdf,.pdf,.docx,.xlsx,.pptx,.csv,.tsv,.md,.json,.log";

let count = 0;

/** @param {Iterable<File>} files */
export async function addFiles(files) {
  const chat = currentId.value;
  for (const file of [...files]) addFile(file, chat, await refusalOf(file));
}

/** @param {File} file @param {string | null} chat @param {string} refusal */
function addFile(file, chat, refusal) {
  count += 1;
  const upload = {
    key: `upload-${count}`,
    chat,
    name: file.name || t("Pasted image"),
    preview: file.type.startsWith("image/") ? URL.createObjectURL(file) : "",
    share: 0,
    error: refusal,
    attached: null,
    abort: new AbortController(),
  };
  addUploads(upload);
  if (!refusal) send(upload, file);
}

/** Return why a file is refused without sending it, or "" if the server decides. @param {File} file */
async function refusalOf(file) {
  const most = boot.limits.max_upload_bytes;
  if (file.size > most) return t("It is larger than {most}.", { most: formatBytes(most) });
  // The browser cannot read a dropped folder, or a file that was moved.
  const start = await file.slice(0, 1024).arrayBuffer().catch(() => null);
  if (!start) return t("This file can no longer be read. Choose it again.");
  return isReadable(new Uint8Array(start)) ? "" : t("It is neither an image, nor a text, a CSV, a PDF or an Office file.");
}

/** The server accepts a few large files of one user at a time, so the others wait here. */
const AT_ONCE = 3;
const MOST_TRIES = 8;
const RETRY_AFTER_S = 5;
let sending = 0;
/** @type {(() => void)[]} */
const waiting = [];

/** @template Result @param {() => Promise<Result>} work @returns {Promise<Result>} */
async function inTurn(work) {
  if (sending >= AT_ONCE) await new Promise((/** @type {(value: void) => void} */ resolve) => waiting.push(resolve));
  else sending += 1;
  try {
    return await work();
  } finally {
    const next = waiting.shift();
    if (next) next();
    else sending -= 1;
  }
}

/**
 * Upload a file, and retry on 429, because other tabs and programs send files, too.
 * @param {import("../state/draft.js").Upload} upload @param {File} file
 */
async function sendUntilTaken(upload, file) {
  for (let tries = 1; ; tries += 1) {
    try {
      return await uploadFile(file, (share) => changeUpload(upload.key, { share }), upload.abort.signal);
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 429 || tries === MOST_TRIES) throw error;
      changeUpload(upload.key, { share: 0 });
      await new Promise((resolve) => setTimeout(resolve, 1000 * (error.retryAfterS || RETRY_AFTER_S)));
      upload.abort.signal.throwIfAborted();
    }
  }
}

/** @param {import("../state/draft.js").Upload} upload @param {File} file */
async function send(upload, file) {
  try {
    const stored = await inTurn(() => sendUntilTaken(upload, file));
    const attached = {
      id: stored.id,
      name: upload.name,
      url: fileUrl(stored.id),
      width: stored.width ?? 0,
      height: stored.height ?? 0,
      isImage: stored.mime_type.startsWith("image/"),
      sizeBytes: stored.size_bytes,
    };
    changeUpload(upload.key, { share: 1, attached });
  } catch (error) {
    changeUpload(upload.key, { error: errorText(error) });
  }
}
