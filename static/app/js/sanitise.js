/**
 * The only place where a string becomes HTML. Removes scripts, styles, forms and remote content from the text of
 * models, users and files, and returns a TrustedHTML of the policy "dompurify".
 */

import DOMPurify from "dompurify";

const TAGS = [
  "a",
  "blockquote",
  "br",
  "button",
  "code",
  "del",
  "div",
  "em",
  "h1",
  "h2",
  "h3",
  "h4",
  "h5",
  "h6",
  "hr",
  "input",
  "li",
  "ol",
  "p",
  "pre",
  "span",
  "strong",
  "sub",
  "sup",
  "table",
  "tbody",
  "td",
  "th",
  "thead",
  "tr",
  "ul",
];
const ATTRIBUTES = ["href", "title", "class", "start", "align", "type", "checked", "disabled", "tabindex", "role"];
const SAFE_ADDRESS = /^(?:https?:|mailto:)/i;

DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName === "A") {
    node.setAttribute("target", "_blank");
    node.setAttribute("rel", "noopener noreferrer nofollow");
  }
  // Keep the checkboxes of task lists, and remove all other inputs.
  if (node.tagName === "INPUT" && node.getAttribute("type") !== "checkbox") node.remove();
});

/** @param {string} html @returns {string} a TrustedHTML if the browser supports it; DOM sinks accept both */
export function sanitise(html) {
  const clean = DOMPurify.sanitize(html, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ATTRIBUTES,
    // Attributes that may hold an address are checked against SAFE_ADDRESS. These attributes hold none.
    ADD_URI_SAFE_ATTR: ["align", "checked", "disabled", "start", "tabindex", "type"],
    ALLOW_DATA_ATTR: true,
    ALLOW_ARIA_ATTR: true,
    ALLOWED_URI_REGEXP: SAFE_ADDRESS,
    RETURN_TRUSTED_TYPE: true,
  });
  return /** @type {string} */ (/** @type {unknown} */ (clean));
}
