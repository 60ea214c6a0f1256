/** What the first bytes of a file say of it. */

/** Images, PDF, zip files, which those of Office are, and texts in UTF-16. */
const STARTS = ["\x89PNG", "\xff\xd8\xff", "GIF8", "RIFF", "%PDF-", "PK\x03\x04", "\xff\xfe", "\xfe\xff"];

/** Whether the server may be able to read it: anything else with control characters is no text. @param {Uint8Array} start */
export function isReadable(start) {
  const begins = String.fromCharCode(...start);
  return STARTS.some((bytes) => begins.startsWith(bytes)) || !/[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]/.test(begins);
}
