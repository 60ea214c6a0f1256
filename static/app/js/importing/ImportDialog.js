/** Imports chats of other programs: upload, progress, and a report of what could not be read or was left out. */

import { useEffect, useRef } from "preact/hooks";
import { Dialog } from "../components/Dialog.js";
import { Icon } from "../components/icons.js";
import { exact } from "../format.js";
import { html } from "../html.js";
import { locale, plural, t, translateServerText } from "../i18n.js";
import { costs, discard, followImports, imports, problem, sendExport, sending, stopSending, tryAgain } from "./commands.js";

/** @typedef {import("./commands.js").Import} Import */

const listed = new Intl.ListFormat(locale);

export function ImportDialog() {
  const leaving = useRef(new AbortController());
  const follow = () => {
    leaving.current.abort();
    leaving.current = new AbortController();
    followImports(leaving.current.signal);
  };
  useEffect(() => {
    follow();
    return () => leaving.current.abort();
  }, []);
  const take = async (/** @type {File|undefined} */ file) => {
    if (!file || sending.value) return;
    const isOpen = leaving.current;
    await sendExport(file);
    // If the dialog was closed meanwhile, it reads everything again when it opens.
    if (isOpen === leaving.current && !isOpen.signal.aborted) follow();
  };
  const after = async (/** @type {Promise<boolean>} */ change) => (await change) && follow();
  const onDrop = (/** @type {DragEvent} */ event) => {
    event.preventDefault();
    take(event.dataTransfer?.files[0]);
  };
  return html`<${Dialog} title=${t("Import chats")}>
    <p>${t("The export of ChatGPT, Claude, Open WebUI, LibreChat or Palimpsest: the JSON file or the zip. Chats you already have are not imported twice, so a file may be sent again.")}</p>
    ${
      sending.value
        ? html`<${Sent} now=${sending.value} />`
        : html`<label class="drop-field" onDragOver=${(/** @type {Event} */ event) => event.preventDefault()} onDrop=${onDrop}>
          <${Icon} name="inbox" size=${24} /><span>${t("Choose a file, or drop it here")}</span>
          <input type="file" accept=".json,.zip,application/json,application/zip" onChange=${(/** @type {any} */ event) => take(event.target.files[0])} /></label>`
    }
    ${problem.value && html`<p class="form-error" role="alert">${problem.value}</p>`}
    ${imports.value && imports.value.length > 0 && html`<ul class="imports">${imports.value.map((one) => one.id !== sending.value?.id && html`<${Row} key=${one.id} one=${one} onChange=${after} />`)}</ul>`}
    <${Costs} />
  <//>`;
}

/** @param {{now: import("./commands.js").Sending}} props */
const Sent = ({ now }) => html`<div class="import-sending"><label>${t("Sending {name}", { name: now.name })}
  <progress max="1" value=${now.share}></progress></label>
  <button type="button" class="button" onClick=${stopSending}>${t("Stop")}</button>
  <small class="muted" role="status">${now.isBroken ? t("The connection is lost. The upload resumes when it is back.") : t("If the upload stops, choose the same file again to resume it.")}</small></div>`;

/** @param {{one: Import, onChange: (change: Promise<boolean>) => void}} props */
function Row({ one, onChange }) {
  const isGoingOn = one.state === "waiting" || one.state === "running";
  const counts = { chats: plural(one.conversations, "{n} chat", "{n} chats"), messages: plural(one.messages, "{n} message", "{n} messages") };
  return html`<li class="import">
    <strong>${one.file_name}</strong>
    ${isGoingOn && html`<label><span>${one.state === "waiting" ? t("Waiting to begin") : t("{chats}, {messages} so far", counts)}</span><progress max="1" value=${one.progress}></progress></label>
      <small class="muted">${t("The import continues if you close this page.")}</small>`}
    ${one.state === "uploading" && html`<label><span>${t("{percent} % has been uploaded. Choose the same file again to resume.", { percent: Math.floor((one.received_bytes / one.size_bytes) * 100) })}</span><progress max="1" value=${one.received_bytes / one.size_bytes}></progress></label>
      <p><button type="button" class="button" onClick=${() => onChange(discard(one))}>${t("Discard")}</button></p>`}
    ${one.state === "failed" && html`<p class="form-error">${translateServerText(one.error)}</p>`}
    ${one.can_try_again && html`<p><button type="button" class="button" onClick=${() => onChange(tryAgain(one))}>${t("Try again")}</button></p>`}
    ${one.state === "done" && html`<p>${t("{chats} with {messages} imported.", counts)}${one.known > 0 ? ` ${t("{n} were already here.", { n: exact(one.known) })}` : ""}</p>`}
    ${one.problem_count > 0 && html`<${Problems} one=${one} />`}
    ${Object.keys(one.left_out).length > 0 && html`<p class="muted">${t("Left out: {what}", { what: listed.format(Object.entries(one.left_out).map(([name, count]) => `${translateServerText(name)} (${exact(count)})`)) })}</p>`}
  </li>`;
}

/** @param {{one: Import}} props */
const Problems = ({ one: { problem_count: count, problems } }) =>
  html`<details><summary>${t("Could not be read: {n}", { n: exact(count) })}</summary>
    <ul>${problems.map(({ index, reason }) => html`<li>${t("Chat {n} of the file: {reason}", { n: exact(index + 1), reason: translateServerText(reason) })}</li>`)}</ul></details>`;

/** Render what continuing the imported chats would cost, as the import itself cost nothing. */
function Costs() {
  const held = costs.value;
  if (!held?.conversations) return null;
  const { tokens, embedding_tokens: embedded, model, cost } = held;
  const sentences = [
    t("Importing used no model and cost nothing. A chat is summarized only when you continue it; for all imported ones together a model would read about {tokens} tokens.", { tokens: exact(tokens) }),
    cost === null ? [] : t("At the price of {model} that is about {cost} $.", { model: model ?? "", cost }),
    embedded ? t("Indexing them by meaning reads about {tokens} tokens of the embedding model.", { tokens: exact(embedded) }) : t("Indexing them for search needs no model."),
  ];
  return html`<p class="muted">${sentences.flat().join(" ")}</p>`;
}
