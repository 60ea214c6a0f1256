/** Prints a whole conversation, including messages that the page has not loaded. */

import { render } from "preact";
import { fileUrl, get, query } from "../api.js";
import { errorText } from "../commands/conversations.js";
import { Markdown } from "../components/Markdown.js";
import { PlainText } from "../components/PlainText.js";
import { formatMoment } from "../format.js";
import { loadHighlighter } from "../highlight.js";
import { html } from "../html.js";
import { plural, t } from "../i18n.js";
import { viewMessage } from "../state/messages.js";
import { showToast } from "../state/store.js";
import { belongsToAnswer } from "../state/tools.js";

/** @typedef {import("../state/types.js").ViewMessage} ViewMessage */

const PAGE = 200;
/** Diagrams that are not drawn by then stay blank. */
const DRAWN_WITHIN_MS = 30_000;

/** @param {{id: string, title: string}} conversation */
export async function printConversation({ id, title }) {
  showToast(t("Preparing the whole chat for printing…"));
  try {
    const [messages] = await Promise.all([readAll(id), loadHighlighter()]);
    const sheet = document.createElement("div");
    sheet.className = "print-sheet prose-page";
    document.body.append(sheet);
    render(html`<${Sheet} title=${title} messages=${messages} />`, sheet);
    // Formulas, highlighting, images and diagrams are drawn after the first rendering.
    await new Promise((resolve) => setTimeout(resolve));
    for (const frame of sheet.querySelectorAll("iframe")) frame.loading = "eager";
    await drawDiagrams(sheet);
    await Promise.allSettled([...sheet.querySelectorAll("img")].map((image) => image.decode()));
    addEventListener("afterprint", () => removeSheet(sheet), { once: true });
    print();
  } catch (error) {
    showToast(errorText(error), "bad");
  }
}

/**
 * @param {HTMLElement} sheet
 * @returns {Promise<void>} resolves when all are drawn, or with a toast after DRAWN_WITHIN_MS
 */
const drawDiagrams = (sheet) =>
  new Promise((resolve) => {
    const countOpen = () => sheet.querySelectorAll(".diagram[aria-busy=true]").length;
    const end = () => {
      clearTimeout(late);
      observer.disconnect();
      resolve();
    };
    const late = setTimeout(() => {
      const left = countOpen();
      showToast(plural(left, "{n} diagram was not drawn in time and stays blank.", "{n} diagrams were not drawn in time and stay blank."), "bad");
      end();
    }, DRAWN_WITHIN_MS);
    const look = () => countOpen() || end();
    const observer = new MutationObserver(look);
    observer.observe(sheet, { subtree: true, childList: true, attributes: true });
    const count = countOpen();
    if (count) showToast(plural(count, "Drawing {n} diagram first, for half a minute at most…", "Drawing {n} diagrams first, for half a minute at most…"));
    look();
  });

/** @param {HTMLElement} sheet */
function removeSheet(sheet) {
  render(null, sheet);
  sheet.remove();
}

/** Read all messages, oldest first. @param {string} id @returns {Promise<ViewMessage[]>} */
async function readAll(id) {
  /** @type {any[][]} */
  const pages = [];
  let before = null;
  do {
    const page = await get(`/conversations/${id}/messages${query({ before, limit: PAGE })}`);
    pages.unshift(page.items);
    before = page.next_cursor;
  } while (before);
  return pages.flat().filter((raw) => !belongsToAnswer(raw)).map((raw) => viewMessage(raw));
}

/** @param {{title: string, messages: ViewMessage[]}} props */
function Sheet({ title, messages }) {
  return html`<h1><bdi>${title}</bdi></h1>${messages.map((message) => html`<${Printed} key=${message.id} message=${message} />`)}`;
}

/** @param {{message: ViewMessage}} props */
function Printed({ message: { role, text, images, files, model, createdAt } }) {
  if (!text && !images.length && !files.length) return null;
  const who = role === "user" ? t("You") : model || t("Assistant");
  return html`<article class=${`printed is-${role}`}>
    <h2>${who} <small>${formatMoment(createdAt)}</small></h2>
    ${images.map((image) => html`<img src=${fileUrl(image.file_id)} alt="" />`)}
    ${files.map((file) => html`<p><bdi>${file.name}</bdi></p>`)}
    ${role === "user" ? html`<p class="printed-text" dir="auto"><${PlainText} text=${text} /></p>` : html`<${Markdown} text=${text} />`}
  </article>`;
}
