/** Markdown on the screen, block by block. A finished block is not drawn again, and a distant one not at all. */

import { useSignal } from "@preact/signals";
import { render } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { followFootnote, nameFootnotes } from "../footnotes.js";
import { Diagram, isDiagram } from "../diagrams/Diagram.js";
import { html, memo } from "../html.js";
import { t } from "../i18n.js";
import { nameLinks } from "../links.js";
import { htmlOf, readMarkdown } from "../markdown.js";
import { drawMath } from "../math.js";
import { sanitise } from "../sanitise.js";
import { CodeBlock } from "./CodeBlock.js";
import { AsWritten, Guard } from "./Guard.js";
import { EAGER_CHARS, useNear } from "./near.js";

/** @typedef {import("../markdown.js").Block} Block */
/** @typedef {import("../blocks.js").Section} Section */

/** The share of time that drawing the growing block may take. */
const DRAW_SHARE = 1 / 25;
const LINE_CHARS = 80;

/** @param {{text: string, isFinal?: boolean}} props */
export function Markdown({ text, isFinal = true }) {
  const reader = useRef(/** @type {import("../blocks.js").BlockReader|null} */ (null));
  reader.current ??= readMarkdown();
  const sections = reader.current.read(text, isFinal);
  return html`<div class=${`prose ${isFinal ? "" : "is-growing"}`}>
    ${sections.map((section) => html`<${SectionView} key=${section.key} section=${section} />`)}
  </div>`;
}

const SectionView = memo(function SectionView(/** @type {{section: Section}} */ { section }) {
  const element = useRef(/** @type {HTMLElement|null} */ (null));
  // Long code is lazy by itself, piece by piece.
  const isNear = useNear(element, section.isLazy && section.chars <= EAGER_CHARS);
  if (isNear)
    return html`<div class="section" ref=${element}>${section.blocks.map((block) => html`<${BlockView} key=${block.key} block=${block} />`)}</div>`;
  const text = section.blocks.map((block) => block.raw).join("");
  const lines = Math.ceil(text.length / LINE_CHARS);
  return html`<div class="section is-far" ref=${element} style=${{ containIntrinsicBlockSize: `auto ${lines}lh` }}>${text}</div>`;
});

const BlockView = memo(function BlockView(/** @type {{block: Block}} */ { block }) {
  const shown =
    block.kind === "code"
      ? codeView(block.code, block.language, block.isOpen)
      : html`<${HtmlBlock} block=${block} />`;
  return html`<${Guard} instead=${html`<${AsWritten} text=${block.raw} />`}>${shown}<//>`;
});

/** @param {string} code @param {string} language @param {boolean} [isOpen] */
const codeView = (code, language, isOpen = false) =>
  isDiagram(code, language, isOpen) ? html`<${Diagram} code=${code} />` : html`<${CodeBlock} code=${code} language=${language} isOpen=${isOpen} />`;

const HtmlBlock = memo(function HtmlBlock(/** @type {{block: Block}} */ { block }) {
  const element = useRef(/** @type {HTMLElement|null} */ (null));
  const failure = useSignal(/** @type {unknown} */ (null));
  // Blocks are drawn after rendering. Throw the error here, so that it reaches the guard around this block.
  if (failure.value) throw failure.value;
  const drawn = useRef({ islands: /** @type {Element[]} */ ([]), at: 0, tookMs: 0, raw: "", links: block.links });
  useLayoutEffect(() => {
    const { at, tookMs, raw, links } = drawn.current;
    if (raw === block.raw && links === block.links) return undefined;
    const restMs = block.isOpen ? at + tookMs / DRAW_SHARE - performance.now() : 0;
    const draw = () => {
      const root = /** @type {HTMLElement} */ (element.current);
      const startedAt = performance.now();
      dropIslands(drawn.current.islands);
      try {
        const islands = drawBlock(root, block);
        const tookMs = performance.now() - startedAt;
        drawn.current = { islands, at: startedAt, tookMs, raw: block.raw, links: block.links };
      } catch (error) {
        failure.value = error;
      }
    };
    if (restMs <= 0) return void draw();
    const timer = setTimeout(draw, restMs);
    return () => clearTimeout(timer);
  }, [block]);
  useLayoutEffect(() => () => dropIslands(drawn.current.islands), []);
  return html`<div class="block" dir="auto" ref=${element} onClick=${onClick}></div>`;
});

/** @param {HTMLElement} root @param {Block} block @returns {Element[]} elements in it with components of their own */
function drawBlock(root, block) {
  root.innerHTML = sanitise(htmlOf(block));
  const islands = drawCode(root);
  nameRemoteImages(root);
  nameLinks(root);
  nameFootnotes(root);
  drawMath(root);
  return islands;
}

/** @param {Element[]} islands */
const dropIslands = (islands) => islands.forEach((island) => render(null, island));

/** Render code inside lists and quotes with the same frame as other code. @param {HTMLElement} root */
function drawCode(root) {
  return [...root.querySelectorAll("pre[data-language]")].map((pre) => {
    const island = document.createElement("div");
    const { language = "" } = /** @type {HTMLElement} */ (pre).dataset;
    pre.replaceWith(island);
    render(codeView(pre.textContent ?? "", language), island);
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

/** @param {MouseEvent} event */
function onClick(event) {
  openRemoteImage(event);
  followFootnote(event);
}

/**
 * Open an image on a click, which is the reader's consent. The page itself never contacts the image's server.
 * @param {MouseEvent} event
 */
function openRemoteImage(event) {
  const button = /** @type {HTMLElement} */ (event.target).closest(".remote-image");
  const address = /** @type {HTMLElement|null} */ (button)?.dataset.src;
  if (address && hostOf(address)) window.open(address, "_blank", "noopener,noreferrer");
}
