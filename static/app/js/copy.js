/**
 * Copy a text to the clipboard, even if the page is not served over HTTPS.
 * @param {string} text @returns {Promise<boolean>} whether it worked
 */
export async function copyText(text) {
  if (!navigator.clipboard) return copySelected(text);
  return navigator.clipboard.writeText(text).then(
    () => true,
    () => false,
  );
}

/** Copy with the older browser API, which takes the selection of the focused field. @param {string} text */
function copySelected(text) {
  const before = /** @type {HTMLElement|null} */ (document.activeElement);
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "visually-hidden";
  // A field outside an open dialog cannot take the focus, and without focus execCommand copies nothing but returns
  // true.
  ([...document.querySelectorAll("dialog[open]")].at(-1) ?? document.body).append(area);
  area.focus();
  area.select();
  const isCopied = document.activeElement === area && document.execCommand("copy");
  area.remove();
  before?.focus();
  return isCopied;
}
