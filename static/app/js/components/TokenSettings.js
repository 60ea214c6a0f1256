/** API tokens: the list, a form for a new one, and its secret, shown once. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { sentenceOf } from "../commands/conversations.js";
import { createToken, deleteToken, listTokens } from "../commands/tokens.js";
import { formatDate } from "../format.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { CopyButton } from "./CodeBlock.js";
import { Icon } from "./icons.js";

/** @typedef {import("../commands/tokens.js").ApiToken} ApiToken */

const SCOPES = ["chat", "read", "memory"];

export function TokenSettings() {
  const tokens = useSignal(/** @type {ApiToken[]|null} */ (null));
  const secret = useSignal("");
  const error = useSignal("");
  const attempt = async (/** @type {() => Promise<unknown>} */ work) => {
    error.value = "";
    try {
      await work();
      tokens.value = await listTokens();
    } catch (problem) {
      error.value = sentenceOf(problem);
    }
  };
  useEffect(() => void attempt(async () => {}), []);
  const create = (/** @type {any} */ event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    attempt(async () => {
      secret.value = (
        await createToken(String(form.get("name")), /** @type {string[]} */ (form.getAll("scope")))
      ).token;
      event.target.reset();
    });
  };
  return html`<section class="setting is-stacked">
    <div><h3>${t("API tokens")}</h3><p>${t("For programs that talk to this server in your name.")}</p></div>
    ${error.value && html`<p class="form-error" role="alert">${error.value}</p>`}
    ${secret.value && html`<${Secret} token=${secret.value} />`}
    <ul class="tokens">${(tokens.value ?? []).map((token) => html`<${TokenRow} key=${token.id} token=${token} onDelete=${() => attempt(() => deleteToken(token.id))} />`)}</ul>
    ${tokens.value?.length === 0 && html`<p class="muted">${t("No tokens yet.")}</p>`}
    <form class="token-form" onSubmit=${create}>
      <label class="field"><span>${t("Name")}</span><input name="name" required maxlength="100" autocomplete="off" placeholder=${t("What it is for")} /></label>
      <fieldset class="scopes"><legend>${t("May")}</legend>
        ${SCOPES.map((scope) => html`<label><input type="checkbox" name="scope" value=${scope} defaultChecked=${true} />${scope}</label>`)}
      </fieldset>
      <button class="button is-primary">${t("Create token")}</button>
    </form>
  </section>`;
}

/** @param {{token: ApiToken, onDelete: () => void}} props */
function TokenRow({ token, onDelete }) {
  const used = token.last_used_at ? t("last used {date}", { date: formatDate(token.last_used_at) }) : t("never used");
  return html`<li class="token">
    <${Icon} name="key" size=${18} />
    <span class="token-text"><strong>${token.name}</strong><small>${token.prefix ? `${token.prefix}… · ` : ""}${token.scopes.join(", ")} · ${used}</small></span>
    <button type="button" class="icon-button is-small" aria-label=${t("Delete token {name}", { name: token.name })} title=${t("Delete")} onClick=${onDelete}><${Icon} name="trash" size=${18} /></button>
  </li>`;
}

/** @param {{token: string}} props */
function Secret({ token }) {
  return html`<div class="card" role="status">
    <${Icon} name="key" />
    <div class="card-body">
      <p>${t("Copy this token now. It is not shown again.")}</p>
      <p class="secret"><code>${token}</code><${CopyButton} text=${token} label=${t("Copy token")} isNamed /></p>
    </div>
  </div>`;
}
