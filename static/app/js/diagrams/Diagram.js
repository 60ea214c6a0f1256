/** A Mermaid block as a picture. A sandboxed frame draws it, because a model wrote the code. */

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { CodeBlock } from "../components/CodeBlock.js";
import { html } from "../html.js";
import { t } from "../i18n.js";

const FIRST_HEIGHT = 160;
const MOST_HEIGHT = 1600;
/** A longer diagram takes too long to draw and is shown as code. */
const MOST_CHARS = 50_000;

const darkScheme = matchMedia("(prefers-color-scheme: dark)");
/**
 * Return whether the diagram's place is dark, which on a sheet for printing differs from the page.
 * @param {Element} place
 */
function isDark(place) {
  const scheme = getComputedStyle(place).colorScheme;
  return scheme === "dark" || (scheme !== "light" && darkScheme.matches);
}

const PARTS = ["history", "summary", "system", "recall", "tools", "profile"];

/** Mermaid's base colours, from which it derives all others, by our variables. */
const COLOURS = {
  background: "--paper",
  textColor: "--ink",
  titleColor: "--ink",
  lineColor: "--ink-soft",
  primaryColor: "--accent-soft",
  primaryTextColor: "--ink",
  primaryBorderColor: "--accent",
  secondaryColor: "--amber-soft",
  secondaryTextColor: "--ink",
  secondaryBorderColor: "--amber",
  tertiaryColor: "--sunken",
  tertiaryTextColor: "--ink",
  tertiaryBorderColor: "--line-strong",
  edgeLabelBackground: "--sunken",
  noteBkgColor: "--amber-soft",
  noteTextColor: "--ink",
  noteBorderColor: "--amber",
  gridColor: "--line-strong",
  pieStrokeColor: "--paper",
  pieOuterStrokeColor: "--line-strong",
  pieSectionTextColor: "--paper",
  pieTitleTextColor: "--ink",
  pieLegendTextColor: "--ink",
  ...Object.fromEntries(PARTS.map((part, at) => [`pie${at + 1}`, `--part-${part}`])),
};

/**
 * Return the current colours of the variables, because a variable itself holds both themes.
 * @param {HTMLElement} element
 */
function colours(element) {
  const before = element.style.color;
  const found = Object.entries(COLOURS).map(([name, variable]) => {
    element.style.color = `var(${variable})`;
    return [name, getComputedStyle(element).color];
  });
  element.style.color = before;
  return { darkMode: isDark(element), pieOpacity: 1, ...Object.fromEntries(found) };
}

/** @param {string} code @param {string} language @param {boolean} [isOpen] the block may still grow */
export const isDiagram = (code, language, isOpen = false) => language.toLowerCase() === "mermaid" && !isOpen && code.length <= MOST_CHARS;

/** @param {{code: string}} props */
export function Diagram({ code }) {
  const frame = useRef(/** @type {HTMLIFrameElement|null} */ (null));
  /** 0 until the diagram is drawn. */
  const height = useSignal(0);
  /**
   * A data URL for printing, because browsers leave such frames blank. As an image, it runs no script and loads
   * nothing.
   */
  const picture = useSignal("");
  const isBroken = useSignal(false);
  const showsCode = useSignal(false);
  useEffect(() => {
    const send = () => {
      const place = frame.current?.parentElement;
      if (place) frame.current?.contentWindow?.postMessage({ code, isDark: isDark(place), colours: colours(place) }, "*");
    };
    const onMessage = (/** @type {MessageEvent} */ { source, data }) => {
      if (!frame.current || source !== frame.current.contentWindow) return;
      if (data.isReady) send();
      if (data.isBroken) isBroken.value = true;
      if (!Number.isFinite(data.height)) return;
      if (frame.current.closest(".print-sheet")) picture.value = `data:image/svg+xml,${encodeURIComponent(data.svg)}`;
      height.value = Math.min(Math.max(data.height, 1), MOST_HEIGHT);
    };
    const themed = new MutationObserver(send);
    themed.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    darkScheme.addEventListener("change", send);
    addEventListener("message", onMessage);
    return () => {
      themed.disconnect();
      darkScheme.removeEventListener("change", send);
      removeEventListener("message", onMessage);
    };
  }, [code]);
  if (isBroken.value) return html`<${CodeBlock} code=${code} language="mermaid" />`;
  if (picture.value) return html`<img class="diagram" src=${picture.value} alt=${t("Diagram")} style=${{ blockSize: `${height.value}px` }} />`;
  const toggle = () => (showsCode.value = !showsCode.value);
  return html`<figure class="diagram" aria-busy=${!height.value}>
    <iframe ref=${frame} src="/diagram" sandbox="allow-scripts" title=${t("Diagram")} scrolling="no" loading="lazy" style=${{ blockSize: `${height.value || FIRST_HEIGHT}px` }}></iframe>
    <button type="button" class="link" aria-expanded=${showsCode.value} onClick=${toggle}>${showsCode.value ? t("Hide the code") : t("Show the code")}</button>
    ${showsCode.value && html`<${CodeBlock} code=${code} language="mermaid" />`}
  </figure>`;
}
