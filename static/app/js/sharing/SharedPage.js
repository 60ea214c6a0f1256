/** A shared conversation, for anybody who has its link. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get, post, query } from "../api.js";
import { Markdown } from "../components/Markdown.js";
import { MoreButton } from "../components/MoreButton.js";
import { PlainText } from "../components/PlainText.js";
import { beginningOf, formatDate } from "../format.js";
import { html } from "../html.js";
import { t } from "../i18n.js";

/** @typedef {{type: "text", text: string}|{type: "image", url: string, width: number, height: number}} Part */
/** @typedef {{id: string, role: "user"|"assistant", content: string|Part[], status: string}} SharedMessage */
/** @typedef {{title: string, created_at: string, items: SharedMessage[], next_cursor: string|null}} SharedPart */

/** @param {{token: string, isSignedIn: boolean}} props */
export function SharedPage({ token, isSignedIn }) {
  const pages = useSignal(/** @type {SharedPart[]} */ ([]));
  const error = useSignal("");
  const load = async (/** @type {string|null} */ after) => {
    try {
      pages.value = [...pages.value, await get(`/shared/${token}${query({ after })}`)];
      error.value = "";
    } catch (problem) {
      error.value = problem instanceof Error ? problem.message : String(problem);
    }
  };
  useEffect(() => void load(null), []);
  const isCopying = useSignal(false);
  const copy = async () => {
    if (isCopying.value) return;
    isCopying.value = true;
    error.value = "";
    try {
      location.assign(`/c/${(await post(`/shared/${token}/copy`)).id}`);
    } catch (problem) {
      isCopying.value = false;
      error.value = problem instanceof Error ? problem.message : String(problem);
    }
  };
  const [first] = pages.value;
  const next = pages.value.at(-1)?.next_cursor ?? null;
  return html`<main class="column shared-page">
    ${
      first &&
      html`<header class="shared-head">
      <h1><bdi>${first.title || t("Shared conversation")}</bdi></h1>
      <p class="muted">${t("A copy made on {date}. It can be read, but not changed.", { date: formatDate(first.created_at) })}</p>
      ${isSignedIn && html`<button type="button" class="button" aria-disabled=${isCopying.value} onClick=${copy}>${t("Continue as my own copy")}</button>`}
    </header>`
    }
    ${error.value && html`<p class="form-error" role="alert">${error.value}</p>`}
    <div class="messages">${pages.value.flatMap((page) => page.items.map((message) => html`<${Said} key=${message.id} message=${message} />`))}</div>
    ${next && html`<${MoreButton} className="button" label=${t("Show more")} load=${() => load(next)} />`}
  </main>`;
}

/** @param {{message: SharedMessage}} props */
function Said({ message: { role, content } }) {
  /** @type {Part[]} */
  const parts = typeof content === "string" ? [{ type: "text", text: content }] : content;
  const text = parts.flatMap((part) => (part.type === "text" ? part.text : [])).join("\n");
  const images = parts.map((part) => part.type === "image" && html`<img src=${part.url} width=${part.width || undefined} height=${part.height || undefined} alt=${t("Attached image")} loading="lazy" />`);
  if (!text && !images.some(Boolean)) return html`<p class="outcome">${t("This message was forgotten.")}</p>`;
  if (role === "user")
    return html`<article class="message is-user" aria-label=${t("Question")}>
      <h2 class="visually-hidden">${t("Question: {beginning}", { beginning: beginningOf(text) })}</h2>${images}${text && html`<div dir="auto" class="bubble"><${PlainText} text=${text} /></div>`}</article>`;
  return html`<article class="message is-assistant" aria-label=${t("Assistant")}>${images}<${Markdown} text=${text} /></article>`;
}
