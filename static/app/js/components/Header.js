/** The bar above the conversation: the model, the agent, and what else can be seen or done. */

import { boot } from "../boot.js";
import { changeConversation } from "../commands/conversations.js";
import { goTo } from "../commands/navigation.js";
import { describeEnd, formatTokens } from "../format.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { changeUi, currentAgent, currentConversation, currentId, currentModel, dispatch, offeredModels, state, ui } from "../state/store.js";
import { toggleContext } from "./ContextRing.js";
import { rowActions } from "./ConversationRow.js";
import { Icon } from "./icons.js";
import { Menu } from "./Menu.js";

export function Header() {
  const conversation = currentConversation.value;
  return html`<header class="header">
    ${!ui.value.sidebar && html`<${ClosedSidebarButtons} />`}
    ${conversation && html`<h1 class="visually-hidden">${conversation.title || t("New chat")}</h1>`}
    <${ModelPicker} />
    <${AgentPicker} />
    <span class="spacer"></span>
    ${!conversation && html`<${TemporaryButton} />`}
    ${conversation && html`<${ShareButton} conversation=${conversation} /><${ContextButton} />`}
    <a class="icon-button" href="/memory" aria-label=${t("Memory")} title=${t("Memory")}><${Icon} name="memory" /></a>
    ${
      conversation &&
      html`<${Menu} label=${t("Conversation")} items=${conversationActions(conversation)}
      heading=${html`<${Info} conversation=${conversation} />`}><${Icon} name="dots" /><//>`
    }
  </header>`;
}

/** Render the switch for a temporary chat, which is not remembered and knows nothing of other chats. */
function TemporaryButton() {
  const isOn = state.value.isTemporary;
  const toggle = () => dispatch({ type: "temporary/chosen", isTemporary: !isOn });
  return html`<button type="button" class=${`icon-button ${isOn ? "is-on" : ""}`} aria-pressed=${isOn} aria-label=${t("Temporary chat")}
    title=${isOn ? t("Temporary chat: on") : t("Temporary chat")} onClick=${toggle}><${Icon} name="clock" /></button>`;
}

/**
 * Render the Share button. Phones offer it only in the menu.
 * @param {{conversation: import("../state/types.js").Conversation}} props
 */
const ShareButton = ({ conversation }) => html`<button type="button" class="icon-button is-roomy" aria-label=${t("Share…")} title=${t("Share…")}
  onClick=${() => changeUi({ dialog: { kind: "share", conversation } })}><${Icon} name="export" /></button>`;

/** Render the Context button. Phones offer it only in the menu. */
const ContextButton = () => html`<button type="button" class="icon-button is-roomy" aria-label=${t("Context")} title=${t("Context")}
  aria-expanded=${ui.value.panel === "context"} onClick=${toggleContext}><${Icon} name="panel" /></button>`;

function ClosedSidebarButtons() {
  return html`
    <button type="button" class="icon-button" aria-label=${t("Open sidebar")} title=${t("Open sidebar")}
      aria-controls="sidebar" aria-expanded="false" onClick=${() => changeUi({ sidebar: true })}><${Icon} name="sidebar" /></button>
    <button type="button" class="icon-button" aria-label=${t("New chat")} title=${t("New chat")}
      onClick=${() => goTo(null)}><${Icon} name="compose" /></button>`;
}

/** @param {import("../state/types.js").Conversation} conversation */
function conversationActions(conversation) {
  const rename = () => changeUi({ dialog: { kind: "rename", conversation } });
  return [{ label: t("Context"), icon: "panel", onSelect: toggleContext }, null, ...rowActions(conversation, rename)];
}

/** @param {{conversation: import("../state/types.js").Conversation}} props */
function Info({ conversation }) {
  const { expires_at: expires, pinned } = conversation;
  return html`<div class="menu-info">
    <strong><bdi>${conversation.title || t("New chat")}</bdi></strong>
    ${expires && html`<p><${Icon} name="clock" size=${16} />${describeEnd(conversation, boot.trash_days)}</p>`}
    ${pinned && html`<p><${Icon} name="pin" size=${16} />${t("Pinned: kept until you delete it")}</p>`}
  </div>`;
}

function ModelPicker() {
  const model = currentModel.value;
  if (!model) return null;
  return html`<${Menu} label=${t("Models")} title=${t("Choose a model")}
    className="model-button" align="start" items=${modelItems()} isNamedByText>
    <span class="visually-hidden">${t("Model:")}</span>
    <span class="model-name">${model.name}</span>
    ${model.demo && html`<span class="badge">${t("Built in")}</span>`}
    <${Icon} name="down" size=${16} />
  <//>`;
}

/** @returns {import("./Menu.js").MenuItem[]} */
function modelItems() {
  /** @type {import("./Menu.js").MenuItem[]} */
  const items = offeredModels.value.map((model) => ({
    label: model.name,
    badge: model.demo ? t("Built in") : undefined,
    note: t("{context} context · {output} output", {
      context: formatTokens(model.context_size),
      output: formatTokens(model.max_output_tokens),
    }),
    isChecked: model.id === currentModel.value?.id,
    onSelect: () => chooseModel(model.name),
  }));
  const add = { label: t("Connect a model…"), href: `${boot.admin_url}chatapp/modelconfig/connect/` };
  return boot.admin_url ? [...items, null, add] : items;
}

/** @param {string} model */
function chooseModel(model) {
  if (currentId.value) changeConversation(currentId.value, { model });
  else dispatch({ type: "model/chosen", model });
}

/** Render the choice of agents, if there is more than one. */
function AgentPicker() {
  const agent = currentAgent.value;
  if (!agent || state.value.agents.length < 2) return null;
  return html`<${Menu} label=${t("Agents")} title=${t("Choose an agent")}
    className="model-button is-agent" align="start" items=${agentItems(agent)} isNamedByText>
    <span class="visually-hidden">${t("Agent:")}</span>
    <span class="model-name">${agent.name}</span>
    <${Icon} name="down" size=${16} />
  <//>`;
}

/** @param {import("../state/types.js").Agent} chosen @returns {import("./Menu.js").MenuItem[]} */
function agentItems(chosen) {
  const choices = state.value.agents.map((agent) => ({
    label: agent.name,
    note: agent.description || noteOfAgent(agent),
    isChecked: agent.id === chosen.id,
    onSelect: () => chooseAgent(agent),
  }));
  const own = { label: t("Your agents…"), onSelect: () => changeUi({ dialog: { kind: "agents" } }) };
  return [...choices, null, own];
}

/** @param {import("../state/types.js").Agent} agent */
function noteOfAgent({ mode, model }) {
  const way = mode === "plan" ? t("Plans first") : "";
  return [way, model].filter(Boolean).join(" · ");
}

/** @param {import("../state/types.js").Agent} agent */
function chooseAgent({ name, is_default: isDefault }) {
  const agent = isDefault ? null : name;
  if (currentId.value) changeConversation(currentId.value, { agent });
  else dispatch({ type: "agent/chosen", agent });
}
