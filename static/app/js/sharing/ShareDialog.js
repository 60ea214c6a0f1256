/** Creates, shows and revokes the link to a read-only snapshot of a conversation. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get, post, remove } from "../api.js";
import { errorText } from "../commands/conversations.js";
import { AskFirst } from "../components/AskFirst.js";
import { CopyButton } from "../components/CodeBlock.js";
import { closeDialog, Dialog } from "../components/Dialog.js";
import { useInPlace } from "../components/inPlace.js";
import { formatDate } from "../format.js";
import { html } from "../html.js";
import { t } from "../i18n.js";

/** @typedef {{url: string, token: string, created_at: string, expires_at: string|null}} Share */

const DAY_MS = 86_400_000;
const AS_IT_IS = "as it is";
const DURATIONS = [
  ["", t("No end")],
  ["1", t("One day")],
  ["7", t("A week")],
  ["30", t("30 days")],
];

/** @param {{conversation: import("../state/types.js").Conversation}} props */
export function ShareDialog({ conversation }) {
  const address = `/conversations/${conversation.id}/share`;
  const share = useSignal(/** @type {Share|null|undefined} */ (undefined));
  const error = useSignal("");
  const { isOpen: isAsked, opener, close } = useInPlace();
  const attempt = async (/** @type {() => Promise<Share|null>} */ work) => {
    error.value = "";
    try {
      share.value = await work();
    } catch (problem) {
      error.value = errorText(problem);
    }
  };
  useEffect(() => void attempt(() => get(address)), []);
  const make = (/** @type {any} */ event) => {
    event.preventDefault();
    const chosen = new FormData(event.target).get("days");
    const days = Number(chosen);
    const expiresAt = chosen === AS_IT_IS ? share.value?.expires_at : days ? new Date(Date.now() + days * DAY_MS).toISOString() : null;
    attempt(() => post(address, { expires_at: expiresAt }));
  };
  const revoke = () => {
    isAsked.value = false;
    attempt(() => remove(address));
  };
  return html`<${Dialog} title=${t("Share this conversation")} className="is-small">
    <p>${t("Anyone with the link can read what was said up to now. It never shows memory, tools, or other versions.")}</p>
    ${error.value && html`<p class="form-error" role="alert">${error.value}</p>`}
    ${share.value && html`<${Link} share=${share.value} />`}
    ${
      share.value !== undefined &&
      (isAsked.value ? html`<${AskFirst} text=${t("The link will stop working. A new link has a different address.")}
        action=${t("Revoke link")} onConfirm=${revoke} onCancel=${close} />` : html`<form key=${share.value?.expires_at} onSubmit=${make}>
      <label class="field"><span>${t("The link ends after")}</span>
        <select name="days">${endsLater(share.value) && html`<option value=${AS_IT_IS}>${t("Unchanged")}</option>`}${DURATIONS.map(([days, name]) => html`<option value=${days}>${name}</option>`)}</select></label>
      <div class="dialog-actions">
        ${share.value && html`<button type="button" ref=${opener} class="button is-danger" onClick=${() => (isAsked.value = true)}>${t("Revoke link")}</button>`}
        <button type="button" class="button" onClick=${closeDialog}>${t("Close")}</button>
        <button class="button is-primary">${share.value ? t("Update") : t("Create link")}</button>
      </div>
    </form>`)
    }
  <//>`;
}

/** Return whether the link has an end, which an update then keeps by default. @param {Share|null|undefined} share */
const endsLater = (share) => Boolean(share?.expires_at && new Date(share.expires_at) > new Date());

/** @param {{share: Share}} props */
function Link({ share }) {
  const url = new URL(share.url, location.href).href;
  const until = share.expires_at ? t("until {date}", { date: formatDate(share.expires_at) }) : t("until you revoke it");
  return html`<div class="share-link">
    <p><a href=${share.url} target="_blank" rel="noopener">${url}</a></p>
    <p class="muted">${t("Shows the conversation as of {date}, {until}.", { date: formatDate(share.created_at), until })}</p>
    <${CopyButton} text=${url} label=${t("Copy link")} isNamed />
  </div>`;
}
