/** Commands of the composer. A text that begins with one goes to the service, not to the model. */

import { get, patch, post, query } from "../api.js";
import { exact, formatDate } from "../format.js";
import { plural, t } from "../i18n.js";
import { promptsFor, wantPrompts } from "../prompts/store.js";
import { addressOfSource } from "../state/address.js";
import { addToDraft, answerOfCommand, chosenCommand, draftText } from "../state/draft.js";
import { currentId, currentThread } from "../state/store.js";
import { readOneOff, readValue } from "../state/typed_settings.js";
import { readDraft } from "../storage.js";
import { loadCompactions } from "./context.js";
import { errorText } from "./conversations.js";
import { proposeForgetting } from "./forgetting.js";

/**
 * `links`: the addresses of the rows, in order. `isOutdated`: whether the answer is outdated and hidden.
 * @typedef {{title: string, rows?: [string, string][], links?: string[], text?: string,
 *   proposal?: import("./forgetting.js").Proposal, action?: {name: string, run: () => Promise<void>},
 *   isOutdated?: () => boolean}} CommandAnswer
 * @typedef {{name: string, usage: string, about: string, needsChat: boolean,
 *   run: (rest: string, id: string) => Promise<CommandAnswer>}} Command
 */

const PREVIEW_CHARS = 80;

/** If a name is a prefix of another, the longer one comes first. @type {Command[]} */
export const COMMANDS = [
  { name: "/context clear", usage: "", about: t("Start a new context; nothing is deleted, and recall may bring it back"), needsChat: true, run: clearContext },
  { name: "/context", usage: "", about: t("What fills the context"), needsChat: true, run: describeContext },
  { name: "/compact", usage: t("[keep_recent=4 strategy=structured] [what to keep]"), about: t("Summarize older messages now"), needsChat: true, run: compact },
  { name: "/config", usage: t("NAME VALUE"), about: t("A context setting of this chat"), needsChat: true, run: configure },
  { name: "/memory", usage: t("QUERY"), about: t("Search everything you said"), needsChat: false, run: searchMemory },
  { name: "/forget", usage: t("WHAT"), about: t("Find what was said about it, and forget what you choose"), needsChat: false, run: findToForget },
  { name: "/help", usage: "", about: t("These commands"), needsChat: false, run: help },
];

/** @type {symbol|null} */
let newest = null;

/** @param {string} text @returns {Command|undefined} */
export function commandIn(text) {
  const asked = text.trim().replace(/\s+/g, " ");
  return COMMANDS.find(({ name }) => asked === name || asked.startsWith(`${name} `));
}

/**
 * Return a word that looks like a command but is not one. A path such as /etc/hosts is text.
 * @param {string} text @returns {string|null}
 */
export const unknownCommandIn = (text) => /^\/[a-z]+(?=\s|$)/i.exec(text)?.[0] ?? null;

/**
 * Return the commands and prompts that the text could become. `text`: what a prompt puts into the box.
 * @param {string} text @returns {{name: string, usage: string, about: string, text?: string}[]}
 */
export function completions(text) {
  if (!text.startsWith("/") || text.includes("\n")) return [];
  wantPrompts();
  const typed = text.toLowerCase();
  const commands = COMMANDS.filter(({ name }) => name.startsWith(typed) && name !== typed.trimEnd());
  return [...commands, ...promptsFor(typed).map((one) => ({ name: `/${one.name}`, usage: "", about: one.about || one.text.slice(0, PREVIEW_CHARS), text: one.text }))];
}

/** Return the completions that the composer shows. */
export const offered = () => (chosenCommand.value < 0 ? [] : completions(draftText.value));

/** Close the topmost element above the composer. @returns {boolean} whether there was something to close */
export function closeTopmost() {
  const answer = answerOfCommand.value;
  if (offered().length) chosenCommand.value = -1;
  else if (answer && !answer.isOutdated?.()) answerOfCommand.value = null;
  else return false;
  return true;
}

/** @type {Record<string, string>} */
const ROLES = { user: t("user"), assistant: t("assistant"), system: t("system"), tool: t("tool") };
/** @type {Record<string, string>} */
const PARTS = {
  system: t("system"),
  profile: t("profile"),
  tools: t("tools"),
  summary: t("summary"),
  history: t("history"),
  recall: t("recall"),
  question: t("question"),
};

/**
 * Run a command. Its answer is dropped if a newer command was started or another chat was opened.
 * @param {Command} command @param {string} text
 */
export async function runCommand(command, text) {
  const asked = (newest = Symbol(command.name));
  const chat = currentId.value;
  const answer = await answerTo(command, text);
  if (asked === newest && currentId.value === chat) answerOfCommand.value = answer;
}

/** @param {Command} command @param {string} text @returns {Promise<CommandAnswer>} */
async function answerTo(command, text) {
  const id = currentId.value;
  if (command.needsChat && id === null) return { title: command.name, text: t("This chat has no messages yet.") };
  const rest = text.trim().replace(/\s+/g, " ").slice(command.name.length).trim();
  try {
    return await command.run(rest, id ?? "");
  } catch (error) {
    // Put the command back for a retry, but not below a new text, where it would not be a command.
    if (!(currentId.value === id ? draftText.value : readDraft(id))) addToDraft(id, text);
    return { title: command.name, text: errorText(error) };
  }
}

/** @param {string} _rest @param {string} id @returns {Promise<CommandAnswer>} */
async function describeContext(_rest, id) {
  const view = await post(`/conversations/${id}/context`);
  /** @type {Record<string, number>} */
  const roles = {};
  for (const { role } of view.messages) roles[role] = (roles[role] ?? 0) + 1;
  const set = Object.entries(view.policy).filter(([, field]) => /** @type {any} */ (field).from !== "default");
  return {
    title: t("{used} of {budget} tokens", { used: exact(view.total_tokens), budget: exact(view.limit_tokens) }),
    rows: [
      [t("Messages in context"), Object.entries(roles).map(([role, count]) => `${ROLES[role] ?? role} ${count}`).join(", ")],
      ...Object.entries(view.parts).map(([name, tokens]) => /** @type {[string, string]} */ ([PARTS[name] ?? name, exact(Number(tokens))])),
      [t("Summarized up to"), view.compaction ? t("message {n}", { n: view.compaction.last_position + 1 }) : t("nothing yet")],
      ...set.map(([name, field]) => {
        const { value, from } = /** @type {{value: unknown, from: string}} */ (field);
        return /** @type {[string, string]} */ ([name, `${JSON.stringify(value)} (${from})`]);
      }),
    ],
  };
}

/** @param {string} _rest @param {string} id @returns {Promise<CommandAnswer>} */
async function clearContext(_rest, id) {
  const cleared = await post(`/conversations/${id}/context/clear`);
  await loadCompactions(id);
  return {
    title: t("New context"),
    text: t("What was said up to now ({n}) is kept, but no longer in context; recall may bring it back. It can be undone at the divider.", {
      n: cleared.message_count,
    }),
  };
}

/** @param {string} rest @param {string} id @returns {Promise<CommandAnswer>} */
async function compact(rest, id) {
  const row = await post(`/conversations/${id}/compact`, readOneOff(rest));
  return { title: t("Summarizing"), text: plural(row.message_count, "{n} message is being summarized.", "{n} messages are being summarized."), isOutdated: () => isWritten(row.id) };
}

/** Return whether the compaction has ended. Its divider then shows the rest. @param {string} id */
const isWritten = (id) => currentThread.value?.compactions.some((one) => one.id === id && !["pending", "running"].includes(one.status)) ?? false;

/** @param {string} rest @param {string} id @returns {Promise<CommandAnswer>} */
async function configure(rest, id) {
  const [name, ...words] = rest.split(" ");
  const conversation = await get(`/conversations/${id}`);
  if (!words.length) {
    const own = Object.entries(conversation.context_policy);
    return { title: t("Settings of this chat"), rows: own.map(([key, value]) => [key, JSON.stringify(value)]), text: t("Change one with /config NAME VALUE.") };
  }
  const policy = { ...conversation.context_policy, [name]: readValue(words.join(" ")) };
  await patch(`/conversations/${id}`, { context_policy: policy });
  return { title: t("Settings of this chat"), rows: [[name, JSON.stringify(policy[name])]] };
}

/** @param {string} rest @returns {Promise<CommandAnswer>} */
async function searchMemory(rest) {
  if (!rest) return { title: t("Memory"), text: t("Say what to look for: /memory QUERY") };
  const { items } = await get(`/memory/search${query({ q: rest, limit: 5 })}`);
  if (!items.length) return { title: t("Memory"), text: t("Nothing was found.") };
  return {
    title: t("Memory"),
    rows: items.map((/** @type {any} */ item) => [formatDate(item.created_at), item.text.slice(0, 240)]),
    links: items.map((/** @type {any} */ item) => addressOfSource(item.source)),
  };
}

/** @param {string} rest @returns {Promise<CommandAnswer>} */
async function findToForget(rest) {
  if (!rest) return { title: t("Forget"), text: t("Say what to forget: /forget WHAT") };
  const proposal = await proposeForgetting(rest);
  if (!proposal.items.length) return { title: t("Forget"), text: t("Nothing like that is remembered.") };
  return { title: t("Forget"), proposal };
}

/** @returns {Promise<CommandAnswer>} */
async function help() {
  return { title: t("Commands"), rows: COMMANDS.map(({ name, usage, about }) => [`${name} ${usage}`.trim(), about]) };
}
