/** Markdown on the screen, block by block: a finished block is never drawn again. */

import { render } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { html, memo } from "../html.js";
import { t } from "../i18n.js";
import { parseBlocks } from "../markdown.js";
import { drawMath } from "../math.js";
import { sanitise } from "../sanitise.js";
import { CodeBlock } from "./CodeBlock.js";

/** @typedef {import("../markdown.js").Block} Block */

/** @param {{text: string, isFinal?: boolean}} props */
export function Markdown({ text, isFinal = true }) {
  const parsed = useRef(/** @type {import("../markdown.js").Parsed|undefined} */ (undefined));
  parsed.current = parseBlocks(text, parsed.current, isFinal);
  return html`<div class=${`prose ${isFinal ? "" : "is-growing"}`}>
    ${parsed.current.blocks.map((block) => html`<${BlockView} key=${block.key} block=${block} />`)}
  </div>`;
}

const BlockView = memo(function BlockView(/** @type {{block: Block}} */ { block }) {
  if (block.kind === "code") {
    return html`<${CodeBlock} code=${block.code} language=${block.language} isOpen=${block.isOpen} />`;
  }
  return block.kind === "math" ? html`<${Formula} tex=${block.code} />` : html`<${HtmlBlock} source=${block.html} />`;
});

const HtmlBlock = memo(function HtmlBlock(/** @type {{source: string}} */ { source }) {
  const element = useRef(/** @type {HTMLElement|null} */ (null));
  useLayoutEffect(() => {
    const root = element.current;
    if (!root) return undefined;
    root.innerHTML = sanitise(source);
    const islands = drawCode(root);
    nameRemoteImages(root);
    drawMath(root);
    return () => islands.forEach((island) => render(null, island));
  }, [source]);
  return source ? html`<div class="block" dir="auto" ref=${element} onClick=${openRemoteImage}></div>` : null;
});

const Formula = memo(function Formula(/** @type {{tex: string}} */ { tex }) {
  const element = useRef(/** @type {HTMLElement|null} */ (null));
  useLayoutEffect(() => {
    const root = element.current;
    if (!root) return;
    const formula = document.createElement("div");
    formula.className = "math";
    formula.dataset.display = "true";
    formula.textContent = tex;
    root.replaceChildren(formula);
    drawMath(root);
  }, [tex]);
  return html`<div class="block formula" tabindex="0" ref=${element}></div>`;
});

/** Code inside lists and quotes gets the same frame as code of its own. @param {HTMLElement} root */
function drawCode(root) {
  return [...root.querySelectorAll("pre[data-language]")].map((pre) => {
    const island = document.createElement("div");
    const { language = "" } = /** @type {HTMLElement} */ (pre).dataset;
    pre.replaceWith(island);
    render(html`<${CodeBlock} code=${pre.textContent ?? ""} language=${language} />`, island);
    return island;
  });
}

/** @param {HTMLElement} root */
function nameRemoteImages(root) {
  for (const button of /** @type {NodeListOf<HTMLElement>} */ (root.querySelectorAll("button.remote-image"))) {
    const host = hostOf(button.dataset.src ?? "");
    button.title = host ? t("Open the image at {host} in a new tab", { host }) : t("This image has no usable address");
    button.append(Object.assign(document.createElement("small"), { textContent: host ?? t("not available") }));
  }
}

/** @param {string} address */
function hostOf(address) {
  const url = URL.parse(address);
  return url && /^https?:$/.test(url.protocol) ? url.host : null;
}

/** A click is the reader's consent; the page itself never asks the image's server. @param {MouseEvent} event */
function openRemoteImage(event) {
  const button = /** @type {HTMLElement} */ (event.target).closest(".remote-image");
  const address = /** @type {HTMLElement|null} */ (button)?.dataset.src;
  if (address && hostOf(address)) window.open(address, "_blank", "noopener,noreferrer");
}
