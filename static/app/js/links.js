/** Links in a model's text: shows where each one leads, whatever its words say. */

/** @param {string} address @returns {URL|null} */
const parse = (address) => (URL.canParse(address) ? new URL(address) : null);

/** Decode a path. Return it unchanged if its encoding is invalid. @param {string} path */
function decoded(path) {
  try {
    return decodeURI(path);
  } catch {
    return path;
  }
}

/**
 * Return the host or mail address that a link leads to, or "" if its words already say so.
 * @param {string} href @param {string} words
 */
export function placeToShow(href, words) {
  const url = parse(href);
  if (!url) return "";
  const said = words.trim();
  if (url.protocol === "mailto:") {
    const address = decoded(url.pathname);
    return said === address ? "" : address;
  }
  // If the words are an address, compare its host. An address with a part before an @ can mislead, so show the host.
  const shown = parse(said) ?? (/^[^\s/?#]+\.[^\s]+$/.test(said) ? parse(`https://${said}`) : null);
  return shown?.host === url.host && !shown.username ? "" : url.host;
}

/** @param {HTMLElement} root */
export function nameLinks(root) {
  for (const link of /** @type {NodeListOf<HTMLAnchorElement>} */ (root.querySelectorAll("a[href]"))) {
    link.title = link.href;
    const place = placeToShow(link.href, link.textContent ?? "");
    if (place) link.append(Object.assign(document.createElement("small"), { className: "link-place", textContent: place }));
  }
}
