/** Checks the first bytes of a file. */

/** Images, PDF, ZIP files (also of Office), and UTF-16 texts. */
const STARTS = ["\x89PNG", "\xff\xd8\xff", "GIF8", "RIFF", "%PDF-", "PK\x03\x04", "\xff\xfe", "\xfe\xff"];

/**
 * Return whether the server may be able to read the file. Other files with control characters are not text.
 * @param {Uint8Array} start
 */
export function isReadable(start) {
  const begins = String.fromCharCode(...start);
  return STARTS.some((bytes) => begins.startsWith(bytes)) || !/[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]/.test(begins);
}
