/** Links in what a model wrote: where each leads is shown, whatever its words say. */

/** @param {string} address @returns {URL|null} */
const parse = (address) => (URL.canParse(address) ? new URL(address) : null);

/** What is no encoding stays as it is written. @param {string} path */
function decoded(path) {
  try {
    return decodeURI(path);
  } catch {
    return path;
  }
}

/**
 * The place a link leads to, where its words do not say the same; else "".
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
  // An address in the words counts as it is read: its host, without what stands before an @.
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
