/** To the clipboard, also where the page is not served over HTTPS. @param {string} text @returns {Promise<boolean>} whether it is there */
export async function copyText(text) {
  if (!navigator.clipboard) return copySelected(text);
  return navigator.clipboard.writeText(text).then(
    () => true,
    () => false,
  );
}

/** The browser's older way, which takes what is selected in the focused field. @param {string} text */
function copySelected(text) {
  const before = /** @type {HTMLElement|null} */ (document.activeElement);
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "visually-hidden";
  // What is outside of an open dialog takes no focus; and without it, nothing is copied though the browser says so.
  ([...document.querySelectorAll("dialog[open]")].at(-1) ?? document.body).append(area);
  area.focus();
  area.select();
  const isCopied = document.activeElement === area && document.execCommand("copy");
  area.remove();
  before?.focus();
  return isCopied;
}
