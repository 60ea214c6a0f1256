/** Text indexed as on the server, by Unicode code points, while JavaScript counts UTF-16 units. */

/** @param {string} text */
export function countChars(text) {
  let count = text.length;
  for (let i = 0; i < text.length; i += 1) {
    if (isHighSurrogate(text.charCodeAt(i)) && isLowSurrogate(text.charCodeAt(i + 1))) {
      count -= 1;
      i += 1;
    }
  }
  return count;
}

/** Return the index of code point number `chars`, in UTF-16 units. @param {string} text @param {number} chars */
function indexOfChar(text, chars) {
  let index = 0;
  for (let seen = 0; seen < chars && index < text.length; seen += 1) {
    const isPair = isHighSurrogate(text.charCodeAt(index)) && isLowSurrogate(text.charCodeAt(index + 1));
    index += isPair ? 2 : 1;
  }
  return index;
}

/** @param {string} text @param {number} chars */
export const takeChars = (text, chars) => text.slice(0, indexOfChar(text, chars));

/** @param {string} text @param {number} chars */
export const dropChars = (text, chars) => text.slice(indexOfChar(text, chars));

/** @param {number} unit */
const isHighSurrogate = (unit) => unit >= 0xd800 && unit <= 0xdbff;

/** @param {number} unit */
const isLowSurrogate = (unit) => unit >= 0xdc00 && unit <= 0xdfff;
