/** Code with its language and a Copy button. Growing code is highlighted at intervals, not at every letter. */

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { copyText } from "../copy.js";
import { highlight, languageName, loadHighlighter } from "../highlight.js";
import { html, memo } from "../html.js";
import { t } from "../i18n.js";
import { cutCode } from "../pieces.js";
import { Icon } from "./icons.js";
import { EAGER_CHARS, useNear } from "./near.js";

const COLOUR_EVERY_MS = 250;
/** The share of time that highlighting growing code may take. */
const COLOUR_SHARE = 1 / 25;
const COPIED_MS = 1600;
/**
 * The limit of a piece's average line. With longer lines, hundreds of thousands of characters fit the window's height.
 */
const LONGEST_LINE_CHARS = 1_000;
/** About as many characters fit in a line of the page. */
const WRAPPED_CHARS = 80;

export const CodeBlock = memo(Block);

/** @param {{code: string, language: string, isOpen?: boolean}} props */
function Block({ code, language, isOpen = false }) {
  const isReady = useSignal(false);
  const cut = useRef({ code: "", ends: /** @type {number[]} */ ([]) });
  const isMany = useRef(code.length > EAGER_CHARS).current;
  useEffect(() => {
    loadHighlighter().then(() => (isReady.value = true));
  }, []);
  if (cut.current.code !== code) {
    const known = code.startsWith(cut.current.code) ? cut.current.ends : [];
    cut.current = { code, ends: cutCode(code, known) };
  }
  const { ends } = cut.current;
  const isChosen = useSignal(/** @type {boolean|null} */ (null));
  // Wrap lines that are cut into pieces: otherwise the text near the window would have no bound.
  const isWrapped = isChosen.value ?? ends.some((end) => end < code.length && code[end - 1] !== "\n");
  const isFolded = useSignal(false);
  const mayFold = !isOpen && (isFolded.value || isLong(code));
  return html`<div class=${`code ${isWrapped ? "is-wrapped" : ""} ${isFolded.value ? "is-folded" : ""}`}>
    <div class="code-head">
      <span>${isReady.value ? languageName(language) : language || "text"}</span>
      <span class="spacer"></span>
      <${CodeButton} icon="wrap" label=${t("Wrap lines")} isOn=${isWrapped} onClick=${() => (isChosen.value = !isWrapped)} />
      ${mayFold && html`<${CodeButton} icon="fold" label=${t("Fold code")} isOn=${isFolded.value} onClick=${() => (isFolded.value = !isFolded.value)} />`}
      ${!isOpen && html`<${CodeButton} icon="download" label=${t("Download code")} onClick=${() => saveText(code, `code.${extensionOf(language)}`)} />`}
      <${CopyButton} text=${code} label=${t("Copy code")} isNamed />
    </div>
    <pre tabindex="0"><code>${ends.map(
      (end, at) => html`<${CodePiece} key=${at} code=${code.slice(ends[at - 1] ?? 0, end)} language=${language}
        isReady=${isReady.value} isOpen=${isOpen && at === ends.length - 1} isLazy=${isMany} isWrapped=${isWrapped} />`,
    )}</code></pre>
  </div>`;
}

const FOLDABLE_LINES = 20;

/** Return whether folding the code saves anything. @param {string} code */
function isLong(code) {
  let at = -1;
  for (let line = 0; line < FOLDABLE_LINES; line += 1) {
    at = code.indexOf("\n", at + 1);
    if (at < 0) return false;
  }
  return true;
}

/** @param {{icon: string, label: string, isOn?: boolean, onClick: () => void}} props */
const CodeButton = ({ icon, label, isOn, onClick }) => html`<button type="button" class="icon-button is-small" aria-label=${label} title=${label}
  aria-pressed=${isOn} onClick=${onClick}><${Icon} name=${icon} size=${16} /></button>`;

/** @type {Record<string, string>} */
const EXTENSIONS = {
  bash: "sh", shell: "sh", sh: "sh", c: "c", cpp: "cpp", csharp: "cs", css: "css", csv: "csv", diff: "diff", go: "go", html: "html", java: "java",
  javascript: "js", js: "js", json: "json", jsx: "jsx", kotlin: "kt", latex: "tex", lua: "lua", markdown: "md", md: "md", php: "php", python: "py", py: "py",
  r: "r", ruby: "rb", rust: "rs", scala: "scala", sql: "sql", svg: "svg", swift: "swift", toml: "toml", ts: "ts", tsx: "tsx", typescript: "ts", xml: "xml", yaml: "yaml", yml: "yml",
};

/** @param {string} language */
const extensionOf = (language) => EXTENSIONS[language.toLowerCase()] ?? "txt";

/** @param {string} text @param {string} name */
function saveText(text, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href));
}

const CodePiece = memo(Piece);

/**
 * Render a piece of code, highlighted as it grows, but not at every letter. A part of an unwrapped long line stays
 * plain.
 * @param {{code: string, language: string, isReady: boolean, isOpen: boolean, isLazy: boolean,
 *   isWrapped: boolean}} props
 */
function Piece({ code, language, isReady, isOpen, isLazy, isWrapped }) {
  const element = useRef(/** @type {HTMLElement|null} */ (null));
  const isNear = useNear(element, isLazy);
  const coloured = useRef({ chars: 0, html: /** @type {string|null} */ (null), at: 0, tookMs: 0 });
  const { at, tookMs, chars: known, html: before } = coloured.current;
  const now = performance.now();
  const isReadable = isWrapped || countLines(code) > code.length / LONGEST_LINE_CHARS;
  const isDue = !isOpen || now - at > Math.max(COLOUR_EVERY_MS, tookMs / COLOUR_SHARE);
  if (isReady && language && isNear && isReadable && isDue && (known !== code.length || before === null)) {
    const markup = highlight(code, language);
    coloured.current = { chars: code.length, html: markup, at: now, tookMs: performance.now() - now };
  }
  const { chars, html: markup } = coloured.current;
  return html`<span class="code-piece" ref=${element} style=${{ containIntrinsicBlockSize: `auto ${countLines(code, isWrapped)}lh` }}>${
    markup === null ? code : html`<span dangerouslySetInnerHTML=${{ __html: markup }}></span>${code.slice(chars)}`
  }</span>`;
}

/** @param {string} code @param {boolean} [isWrapped] */
function countLines(code, isWrapped = false) {
  let count = 1;
  for (let at = code.indexOf("\n"); at >= 0 && at < code.length - 1; at = code.indexOf("\n", at + 1)) count += 1;
  return isWrapped ? Math.max(count, Math.ceil(code.length / WRAPPED_CHARS)) : count;
}

const COPIED = { name: t("Copied"), icon: "check" };
const NOT_COPIED = { name: t("Not copied"), icon: "warning" };

/** @param {{text: string, label: string, isNamed?: boolean}} props */
export function CopyButton({ text, label, isNamed = false }) {
  const outcome = useSignal(/** @type {typeof COPIED|null} */ (null));
  const copy = async () => {
    outcome.value = (await copyText(text)) ? COPIED : NOT_COPIED;
    setTimeout(() => (outcome.value = null), COPIED_MS);
  };
  const name = outcome.value?.name ?? label;
  return html`<button type="button" class=${isNamed ? "copy-button" : "icon-button is-small"} aria-label=${name} title=${name}
    onClick=${copy}><${Icon} name=${outcome.value?.icon ?? "copy"} size=${16} />${isNamed && html`<span>${outcome.value?.name ?? t("Copy")}</span>`}</button>`;
}
