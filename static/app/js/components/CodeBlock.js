/** Code with its language and a Copy button; coloured as it grows, without colouring every letter anew. */

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { copyText } from "../copy.js";
import { highlight, languageName, loadHighlighter } from "../highlight.js";
import { html, memo } from "../html.js";
import { t } from "../i18n.js";
import { Icon } from "./icons.js";

const COLOUR_EVERY_MS = 250;
const COPIED_MS = 1600;

export const CodeBlock = memo(Block);

/** @param {{code: string, language: string, isOpen?: boolean}} props */
function Block({ code, language, isOpen = false }) {
  const isReady = useSignal(false);
  const coloured = useRef({ chars: 0, html: /** @type {string|null} */ (null), at: 0 });
  useEffect(() => {
    loadHighlighter().then(() => (isReady.value = true));
  }, []);
  const done = coloured.current;
  const isDue = !isOpen || performance.now() - done.at > COLOUR_EVERY_MS;
  if (isReady.value && language && isDue && (done.chars !== code.length || done.html === null)) {
    coloured.current = { chars: code.length, html: highlight(code, language), at: performance.now() };
  }
  const { chars, html: markup } = coloured.current;
  return html`<div class="code">
    <div class="code-head">
      <span>${isReady.value ? languageName(language) : language || "text"}</span>
      <${CopyButton} text=${code} label=${t("Copy code")} isNamed />
    </div>
    <pre tabindex="0"><code>${
      markup === null ? code : html`<span dangerouslySetInnerHTML=${{ __html: markup }}></span>${code.slice(chars)}`
    }</code></pre>
  </div>`;
}

/** @param {{text: string, label: string, isNamed?: boolean}} props */
export function CopyButton({ text, label, isNamed = false }) {
  const isCopied = useSignal(false);
  const copy = async () => {
    await copyText(text);
    isCopied.value = true;
    setTimeout(() => (isCopied.value = false), COPIED_MS);
  };
  const name = isCopied.value ? t("Copied") : label;
  return html`<button type="button" class=${isNamed ? "copy-button" : "icon-button is-small"} aria-label=${name} title=${name}
    onClick=${copy}><${Icon} name=${isCopied.value ? "check" : "copy"} size=${16} />${isNamed && html`<span>${isCopied.value ? t("Copied") : t("Copy")}</span>`}</button>`;
}
