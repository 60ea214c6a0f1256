/** Add forms and examples to the panel's YAML fields. Only the YAML is saved, so pages work without JavaScript. */

/** @typedef {{name: string, kind: "number"|"text"|"flag"|"choice", choices?: string[], default: string, what: string}} Part */
/** @typedef {{title: string, yaml: string}} Example */
/** Labels of the form, in the language of the page. @typedef {Record<"title"|"examples"|"unset"|"default"|"write", string>} Words */

/** @param {string} tag @param {Record<string, string>} [attributes] @param {...(Node|string)} children */
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** Return the value of a top-level field of the text, or "" if it is missing or begins on the next line. */
function readLine(/** @type {string} */ text, /** @type {string} */ name) {
  const found = text.match(new RegExp(`^${name}:[ ]*(.*)$`, "m"));
  return found ? found[1].trim().replace(/^(["'])(.*)\1$/, "$2") : "";
}

/** Return the text with this top-level value, or without the field's line if the value is empty. */
function writeLine(/** @type {string} */ text, /** @type {string} */ name, /** @type {string} */ value) {
  const rest = text.split("\n").filter((line) => !line.startsWith(`${name}:`) && line.trim());
  return [...rest, ...(value === "" ? [] : [`${name}: ${value}`])].join("\n");
}

/** Return the text as a YAML scalar, quoted unless it is one plain word. */
const quoted = (/** @type {string} */ text) => (/^[\w.-]+$/.test(text) ? text : JSON.stringify(text));

/** @param {Part} part @param {string} id @param {Words} words */
function control(part, id, words) {
  if (part.kind === "number" || part.kind === "text") {
    const type = part.kind === "number" ? { type: "number", step: "any" } : { type: "text" };
    return element("input", { id, ...type, placeholder: part.default });
  }
  const choices = part.kind === "flag" ? ["true", "false"] : (part.choices ?? []);
  const none = element("option", { value: "" }, part.default ? words.default.replace("{value}", part.default) : words.unset);
  return element("select", { id }, none, ...choices.map((choice) => element("option", { value: choice }, choice)));
}

/** Split a sentence into nodes, with the text between backticks as code. @param {string} text @returns {(Node|string)[]} */
const withCode = (text) => text.split("`").map((part, at) => (at % 2 ? element("code", {}, part) : part));

/** @param {Part} part @param {string} id @param {Element} input */
const labelled = (part, id, input) =>
  element("p", { class: "part" }, element("label", { for: id }, part.name), input, element("small", {}, ...withCode(part.what)));

/**
 * Build a control for each field of a mapping. Each control edits one line of the YAML.
 * @param {HTMLTextAreaElement} area @param {Part[]} parts @param {Words} words
 */
function lines(area, parts, words) {
  const controls = parts.map((part) => {
    const id = `${area.id}_${part.name}`;
    const input = /** @type {HTMLInputElement} */ (control(part, id, words));
    input.addEventListener("input", () => {
      const value = part.kind === "text" && input.value ? quoted(input.value) : input.value;
      area.value = writeLine(area.value, part.name, value);
    });
    return { part, id, input };
  });
  const follow = () => controls.forEach(({ part, input }) => (input.value = readLine(area.value, part.name)));
  area.addEventListener("change", follow);
  follow();
  return { shown: controls.map(({ part, id, input }) => labelled(part, id, input)), follow };
}

/** A line of block YAML: indent, key, value. The key may be quoted, because YAML reads a bare "on" as a boolean. */
const LINE = /^( *)(["']?)(\w+)\2:(?: +(.*))?$/;
/** The start of a value that continues on the next line: a block scalar or an unclosed quote. */
const UNFINISHED = /^[|>]|^(["'])(?!.*\1$)/;
const PAIR = /(\w+): *("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^,}]*)/g;

/** Return a one-line scalar without its quotes and escapes. */
function plain(/** @type {string} */ scalar) {
  if (scalar.startsWith('"')) return scalar.slice(1, -1).replace(/\\(.)/g, (_, sign) => ({ n: "\n", t: "\t" })[sign] ?? sign);
  return scalar.startsWith("'") ? scalar.slice(1, -1).replaceAll("''", "'") : scalar.trim();
}

/**
 * Return a hook's values by path, e.g. "condition.type", or null if the YAML is too complex for the form.
 * @param {string} text @returns {Record<string, string>|null}
 */
function readHook(text) {
  /** @type {Record<string, string>} */
  const found = {};
  let outer = "";
  for (const line of text.split("\n").filter((one) => one.trim())) {
    const [, indent, , key, value = ""] = LINE.exec(line) ?? [];
    if (!key || UNFINISHED.test(value) || Boolean(indent) !== Boolean(outer && indent)) return null;
    if (!indent) outer = value ? "" : key;
    const path = indent ? `${outer}.${key}` : key;
    if (value.startsWith("{")) for (const [, name, inner] of value.matchAll(PAIR)) found[`${path}.${name}`] = plain(inner);
    else if (value) found[path] = plain(value);
  }
  return found;
}

/** The field that holds the number of a condition, and below the one that holds the text of an action. */
const limitOf = (/** @type {string} */ condition) => ({ turn_count: "count", always: "" })[condition] ?? "threshold";
const textOf = (/** @type {string} */ action) => ({ log: "message", inject_message: "message", module_action: "action" })[action] ?? "";

/**
 * Return the fields of a mapping that the form does not show, as `, name: value`, if its type stays the same.
 * @param {Record<string, string>} found @param {string} path @param {string} type @param {string} shown
 */
const others = (found, path, type, shown) =>
  Object.entries(found)
    .filter(([name]) => found[`${path}.type`] === type && name.startsWith(`${path}.`) && ![`${path}.type`, `${path}.${shown}`].includes(name))
    .map(([name, value]) => `, ${name.slice(path.length + 1)}: ${quoted(value)}`)
    .join("");

/**
 * Build the form of one hook. It updates the YAML on each input, or, given `add`, when its button is pressed.
 * @param {HTMLTextAreaElement} area @param {Part[]} parts @param {Words} words @param {((yaml: string) => void)|null} add
 */
function builder(area, parts, words, add) {
  const inputs = new Map(parts.map((part) => [part, /** @type {HTMLInputElement} */ (control(part, `${area.id}_${part.name}`, words))]));
  const input = (/** @type {string} */ name) => /** @type {HTMLInputElement} */ ([...inputs].find(([part]) => part.name === name)?.[1]);
  const value = (/** @type {string} */ name) => input(name).value;
  const asYaml = (/** @type {Record<string, string>} */ found) => {
    const [condition, action] = [value("condition") || "always", value("action") || "log"];
    const [limit, said] = [limitOf(condition), textOf(action)];
    return [
      `id: ${quoted(value("id") || "my-hook")}`,
      `on: ${value("on") || "turn_end"}`,
      `condition: {type: ${condition}${limit && `, ${limit}: ${value("threshold") || 1}`}${others(found, "condition", condition, limit)}}`,
      `action: {type: ${action}${said && `, ${said}: ${quoted(value("text"))}`}${others(found, "action", action, said)}}`,
      ...(value("cooldown") ? [`cooldown: ${value("cooldown")}`] : []),
    ].join("\n");
  };
  const shown = [...inputs].map(([part, one]) => labelled(part, one.id, one));
  if (add) {
    const button = element("button", { type: "button", class: "button" }, words.write);
    button.addEventListener("click", () => add(asYaml({})));
    return { shown: [...shown, element("p", {}, button)], follow: () => {} };
  }
  const follow = () => {
    const found = readHook(area.value);
    for (const [part, one] of inputs) {
      one.disabled = !found;
      one.value = found?.[part.name] ?? "";
    }
    if (!found) return;
    for (const name of ["condition", "action"]) input(name).value = found[`${name}.type`] ?? "";
    input("threshold").value = found[`condition.${limitOf(value("condition"))}`] ?? "";
    input("text").value = found[`action.${textOf(value("action"))}`] ?? "";
  };
  for (const one of inputs.values()) one.addEventListener("input", () => (area.value = asYaml(readHook(area.value) ?? {})));
  area.addEventListener("change", follow);
  follow();
  return { shown, follow };
}

/** @param {HTMLTextAreaElement} area */
function extend(area) {
  const { parts, examples, shape, words } = /** @type {{parts: Part[], examples: Example[], shape: "fields"|"hook"|"hooks", words: Words}} */ (
    JSON.parse(area.dataset.yaml ?? "{}")
  );
  /** @type {{shown: Element[], follow: () => void}|undefined} */
  let form;
  const write = (/** @type {string} */ yaml) => {
    if (shape === "hook") area.value = yaml;
    else if (shape === "hooks") area.value = `${area.value.trim()}\n- ${yaml.replaceAll("\n", "\n  ")}`.trim();
    else for (const line of yaml.split("\n")) area.value = writeLine(area.value, line.split(":")[0], readLine(line, line.split(":")[0]));
    form?.follow();
  };
  const buttons = examples.map(({ title, yaml }) => {
    const button = element("button", { type: "button", class: "button", title: yaml }, title);
    button.addEventListener("click", () => write(yaml));
    return button;
  });
  form = shape === "fields" ? lines(area, parts, words) : builder(area, parts, words, shape === "hooks" ? write : null);
  const details = element(
    "details", { class: "yaml-form", ...(shape === "hook" ? { open: "" } : {}) },
    element("summary", {}, words.title),
    element("p", { class: "examples" }, words.examples, ...buttons),
    element("div", { class: "parts" }, ...form.shown),
  );
  (area.closest(".form-row") ?? area).append(details);
}

// Django loads widget scripts in the head, before the fields exist.
addEventListener("DOMContentLoaded", () => {
  for (const area of document.querySelectorAll("textarea[data-yaml]")) extend(/** @type {HTMLTextAreaElement} */ (area));
});
