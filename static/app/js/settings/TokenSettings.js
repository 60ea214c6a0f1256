/** API tokens: the list, a form for a new one, and its secret, shown once. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ApiError } from "../api.js";
import { errorText } from "../commands/conversations.js";
import { createToken, deleteToken, listTokens } from "../commands/tokens.js";
import { formatDate } from "../format.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { AskFirst } from "../components/AskFirst.js";
import { CopyButton } from "../components/CodeBlock.js";
import { Icon } from "../components/icons.js";
import { useInPlace } from "../components/inPlace.js";

/** @typedef {import("../commands/tokens.js").ApiToken} ApiToken */

const SCOPES = ["chat", "read", "memory"];
const LIVES = /** @type {[string, string][]} */ ([
  ["90", t("for 90 days")],
  ["365", t("for a year")],
  ["", t("until it is deleted")],
]);
const DAY_MS = 86_400_000;

export function TokenSettings() {
  const tokens = useSignal(/** @type {ApiToken[]|null} */ (null));
  const secret = useSignal("");
  const error = useSignal("");
  const needsPassword = useSignal(false);
  const attempt = async (/** @type {() => Promise<unknown>} */ work) => {
    error.value = "";
    try {
      await work();
      tokens.value = await listTokens();
    } catch (problem) {
      needsPassword.value ||= problem instanceof ApiError && problem.code === "password_needed";
      error.value = errorText(problem);
    }
  };
  useEffect(() => void attempt(async () => {}), []);
  const isMaking = useSignal(false);
  const create = async (/** @type {any} */ event) => {
    event.preventDefault();
    if (isMaking.value) return;
    isMaking.value = true;
    const form = new FormData(event.target);
    await attempt(async () => {
      secret.value = (await createToken(readToken(form))).token;
      needsPassword.value = false;
      event.target.reset();
    });
    isMaking.value = false;
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
      <label class="field"><span>${t("Valid")}</span><select name="days">
        ${LIVES.map(([days, name]) => html`<option value=${days}>${name}</option>`)}
      </select></label>
      ${needsPassword.value && html`<label class="field"><span>${t("Your password")}</span><input name="password" type="password" required autocomplete="current-password" /></label>`}
      <button class="button is-primary" aria-disabled=${isMaking.value}>${t("Create token")}</button>
    </form>
  </section>`;
}

/** @param {FormData} form */
function readToken(form) {
  const days = Number(form.get("days"));
  const password = form.get("password");
  return {
    name: String(form.get("name")),
    scopes: /** @type {string[]} */ (form.getAll("scope")),
    ...(days ? { expires_at: new Date(Date.now() + days * DAY_MS).toISOString() } : {}),
    ...(password ? { password: String(password) } : {}),
  };
}

/** @param {{token: ApiToken, onDelete: () => void}} props */
function TokenRow({ token, onDelete }) {
  const ends = token.expires_at ? ` · ${t("valid until {date}", { date: formatDate(token.expires_at) })}` : "";
  const { isOpen: isAsked, opener, close } = useInPlace();
  const used = token.last_used_at ? t("last used {date}", { date: formatDate(token.last_used_at) }) : t("never used");
  if (isAsked.value)
    return html`<li><${AskFirst} text=${t("Programs with the token {name} will be refused at once. It cannot be undone.", { name: token.name })}
      action=${t("Delete token {name}", { name: token.name })} onConfirm=${onDelete} onCancel=${close} /></li>`;
  return html`<li class="token">
    <${Icon} name="key" size=${18} />
    <span class="token-text"><strong><bdi>${token.name}</bdi></strong><small>${token.prefix ? `${token.prefix}… · ` : ""}${token.scopes.join(", ")} · ${used}${ends}</small></span>
    <button type="button" ref=${opener} class="icon-button is-small" aria-label=${t("Delete token {name}", { name: token.name })} title=${t("Delete")} onClick=${() => (isAsked.value = true)}><${Icon} name="trash" size=${18} /></button>
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
