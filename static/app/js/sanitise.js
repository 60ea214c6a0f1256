/**
 * The only place where a string becomes HTML. What a model, a user or a file says passes here, comes out
 * without scripts, styles, forms and remote content, and as a TrustedHTML of the policy "dompurify".
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
  // A task list's boxes show; they are no form.
  if (node.tagName === "INPUT" && node.getAttribute("type") !== "checkbox") node.remove();
});

/** @param {string} html @returns {string} a TrustedHTML where the browser knows them; a sink takes either */
export function sanitise(html) {
  const clean = DOMPurify.sanitize(html, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ATTRIBUTES,
    // Whatever may hold an address is checked against SAFE_ADDRESS; these hold none.
    ADD_URI_SAFE_ATTR: ["align", "checked", "disabled", "start", "tabindex", "type"],
    ALLOW_DATA_ATTR: true,
    ALLOW_ARIA_ATTR: true,
    ALLOWED_URI_REGEXP: SAFE_ADDRESS,
    RETURN_TRUSTED_TYPE: true,
  });
  return /** @type {string} */ (/** @type {unknown} */ (clean));
}
