/** Images and files into the composer: by button, paste and drop. What a file is, the server says by its content. */

import { boot } from "../boot.js";
import { fileUrl, uploadFile } from "../api.js";
import { formatBytes } from "../format.js";
import { t } from "../i18n.js";
import { addUploads, changeUpload } from "../state/draft.js";
import { currentId, showToast } from "../state/store.js";
import { sentenceOf } from "./conversations.js";

export const ACCEPTED = "image/png,image/jpeg,image/gif,image/webp,text/*,application/pdf,.pdf,.csv,.tsv,.md,.json,.log";

let count = 0;

/** @param {Iterable<File>} files */
export function addFiles(files) {
  for (const file of files) addFile(file);
}

/** @param {File} file */
function addFile(file) {
  const refusal = refusalOf(file);
  if (refusal) return showToast(refusal, "bad");
  count += 1;
  const upload = {
    key: `upload-${count}`,
    chat: currentId.value,
    name: file.name || t("Pasted image"),
    preview: file.type.startsWith("image/") ? URL.createObjectURL(file) : "",
    share: 0,
    error: "",
    attached: null,
    abort: new AbortController(),
  };
  addUploads(upload);
  send(upload, file);
}

/** @param {File} file */
function refusalOf(file) {
  const most = boot.limits.max_upload_bytes;
  return file.size > most ? t("{name} is larger than {most}.", { name: file.name, most: formatBytes(most) }) : "";
}

/** @param {import("../state/draft.js").Upload} upload @param {File} file */
async function send(upload, file) {
  try {
    const stored = await uploadFile(file, (share) => changeUpload(upload.key, { share }), upload.abort.signal);
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
    changeUpload(upload.key, { error: sentenceOf(error) });
  }
}
