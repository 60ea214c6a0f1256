/** Settings as they are typed behind a command. */

/** @param {string} word a number, true, false or null as such; anything else is text */
export function readValue(word) {
  try {
    return JSON.parse(word);
  } catch {
    return word;
  }
}

/**
 * A policy for this compaction alone, in front of what to keep: `keep_recent=4 strategy=structured the dates`. A value
 * stays as it was typed where it is no number: the service says what is wrong with it.
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
