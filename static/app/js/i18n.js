/** Every sentence of the screen passes here, so that another language is one catalogue away. */

/** @type {Record<string, string>} */
let catalogue = {};

/** @param {Record<string, string>} sentences English to the language of the page. */
export function setCatalogue(sentences) {
  catalogue = sentences;
}

/** @param {string} sentence @param {Record<string, string|number>} [values] fill `{name}` */
export function t(sentence, values = {}) {
  const found = catalogue[sentence] ?? sentence;
  return found.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}
