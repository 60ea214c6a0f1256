/** Parses settings that are typed after a command. */

/** @param {string} word parsed as JSON if it is valid; otherwise it is text */
export function readValue(word) {
  try {
    return JSON.parse(word);
  } catch {
    return word;
  }
}

/**
 * Parse settings for one compaction and, after them, what to keep: `keep_recent=4 strategy=structured the dates`.
 * Invalid values stay as they were typed, and the server says what is wrong with them.
 * @param {string} rest @returns {Record<string, unknown>}
 */
export function readOneOff(rest) {
  /** @type {Record<string, unknown>} */
  const wanted = {};
  const keep = rest.replace(/^(?:(?:keep_recent|summary_max_tokens|strategy)=\S*\s*)+/, (settings) => {
    for (const [name, value] of settings.trim().split(/\s+/).map((one) => one.split(/=(.*)/))) wanted[name] = readValue(value);
    return "";
  });
  return keep ? { ...wanted, keep } : wanted;
}
