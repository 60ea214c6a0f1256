/** Entries of the palette: chats by title, messages by content, and actions of the page. */

import { get, query } from "../api.js";
import { boot } from "../boot.js";
import { formatMoment, plainText } from "../format.js";
import { t } from "../i18n.js";
import { openSearch } from "../search/commands.js";
import { addressOfSource } from "../state/address.js";
import { changeUi, conversations, currentId, listing, ui } from "../state/store.js";
import { goTo, goToMessage } from "./navigation.js";

/** @typedef {import("../state/palette.js").Choice} Choice */

const CHATS = 6;
const MESSAGES = 8;
const PREVIEW_CHARS = 140;

/** @returns {Choice[]} */
export function actions() {
  const leave = (/** @type {string} */ address) => () => location.assign(address);
  const open = (/** @type {string} */ kind) => () => changeUi({ dialog: { kind } });
  /** @type {[string, string, () => void][]} */
  const listed = [
    [t("New chat"), "compose", () => goTo(null)],
    [t("Search messages, with filters"), "search", () => openSearch()],
    [t("Memory"), "memory", leave("/memory")],
    [t("Settings"), "settings", open("settings")],
    [t("Your agents"), "spark", open("agents")],
    [t("Keyboard shortcuts"), "keyboard", open("shortcuts")],
    [t("Open or close the sidebar"), "sidebar", () => changeUi({ sidebar: !ui.value.sidebar })],
  ];
  if (currentId.value !== null) listed.push([t("What the model sees"), "fold", () => changeUi({ panel: "context" })]);
  if (boot.admin_url) listed.push([t("Admin"), "admin", leave(boot.admin_url)]);
  return listed.map(([label, icon, onChoose]) => ({ id: `action-${icon}`, group: "Actions", label, icon, onChoose }));
}

/** @returns {Choice[]} */
export const recentChats = () => listing.value.ids.slice(0, CHATS).map((id) => chatChoice(conversations.value[id]));

/** @param {string} q @returns {Promise<Choice[]>} */
export async function find(q) {
  const [chats, messages] = await Promise.all([
    get(`/conversations${query({ q, limit: CHATS })}`),
    get(`/memory/search${query({ q, limit: MESSAGES })}`),
  ]);
  return [...chats.items.map(chatChoice), ...messages.items.map(messageChoice)];
}

/** @param {import("../state/types.js").Conversation} conversation @returns {Choice} */
const chatChoice = ({ id, title }) => ({
  id: `chat-${id}`,
  group: "Chats",
  label: title || t("New chat"),
  icon: "compose",
  onChoose: () => goTo(id),
});

/** @param {import("../search/commands.js").Hit} hit @param {number} n @returns {Choice} */
function messageChoice({ text, excerpt, title, source, created_at: at }, n) {
  const { conversation_id: chat, message_id: message } = source;
  const onChoose = () => (chat && message ? goToMessage(chat, message) : location.assign(addressOfSource(source)));
  return {
    id: `message-${n}`,
    group: "Messages",
    label: plainText(text).slice(0, PREVIEW_CHARS),
    excerpt,
    icon: source.kind === "entry" ? "memory" : "search",
    note: [title, formatMoment(at)].filter(Boolean).join(" · "),
    onChoose,
  };
}
