/** Add forms and examples to the panel's YAML fields. Only the YAML is saved, so pages work without JavaScript. */

/**
 * @typedef {{name: string, kind: "number"|"text"|"flag"|"choice", choices?: string[], default: string,
 *   what: string}} Part
 * @typedef {{title: string, yaml: string}} Example
 * @typedef {Record<"title"|"examples"|"unset"|"default"|"write", string>} Words labels, in the page's language
 */

/** @param {string} tag @param {Record<string, string>} [attributes] @param {...(Node|string)} children */
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** The start of a value that is more than a scalar on one line: block, collection, tag, anchor, or unclosed quote. */
const COMPLEX = /^[|>[{!&*]|^(["'])(?!.*\1$)/;
/** A line with a top-level field: key and value. The key may be quoted. */
const FIELD = /^(["']?)(\w+)\1:(?: +(.*))?$/;
/** A line that does not continue the field above it. A list and a closing bracket need no indent. */
const NEXT_FIELD = /^[^\s#}\]-]/;

/** Return a one-line scalar without its quotes and escapes. */
function plain(/** @type {string} */ scalar) {
  if (scalar.startsWith('"')) return scalar.slice(1, -1).replace(/\\(.)/g, (_, sign) => ({ n: "\n", t: "\t" })[sign] ?? sign);
  return scalar.startsWith("'") ? scalar.slice(1, -1).replaceAll("''", "'") : scalar.trim();
}

/** Return a one-line value without the comment after it. */
const withoutComment = (/** @type {string} */ value) => (/^["'{]/.test(value) ? value : value.replace(/(^|\s)#.*$/, "")).trim();

/** Return where the lines of a top-level field start and end in the list of lines, or null if it is missing. */
function findField(/** @type {string[]} */ lines, /** @type {string} */ name) {
  const start = lines.findIndex((line) => FIELD.exec(line)?.[2] === name);
  if (start < 0) return null;
  const next = lines.findIndex((line, at) => at > start && NEXT_FIELD.test(line));
  let end = next < 0 ? lines.length : next;
  // Blank lines and comments before the next field belong to that one.
  while (end > start + 1 && /^(\s*|#.*)$/.test(lines[end - 1])) end -= 1;
  return { start, end };
}

/** Return the value of a top-level field as it is written, or "" if it is missing or not a scalar on one line. */
function readRaw(/** @type {string} */ text, /** @type {string} */ name) {
  const lines = text.split("\n");
  const field = findField(lines, name);
  if (!field || field.end > field.start + 1) return "";
  const raw = withoutComment(FIELD.exec(lines[field.start])?.[3] ?? "");
  return COMPLEX.test(raw) ? "" : raw;
}

/** Return the text with this top-level value, or without the field's lines if the value is empty. */
function writeField(/** @type {string} */ text, /** @type {string} */ name, /** @type {string} */ value) {
  const lines = text.split("\n");
  const field = findField(lines, name);
  if (field) lines.splice(field.start, field.end - field.start);
  while (lines.at(-1)?.trim() === "") lines.pop();
  return [...lines, ...(value === "" ? [] : [`${name}: ${value}`])].join("\n");
}

/** Words that YAML reads as a boolean or as null. */
const RESERVED = /^(true|false|yes|no|on|off|y|n|null)$/i;
/** One word that YAML does not read as a number or a date. */
const WORD = /^[A-Za-z_][\w.-]*$/;

/** Return the text as a YAML scalar, quoted unless YAML reads it as the same text without quotes. */
const quoted = (/** @type {string} */ text) => (WORD.test(text) && !RESERVED.test(text) ? text : JSON.stringify(text));

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

/**
 * Split a sentence into nodes, with the text between backticks as code.
 * @param {string} text @returns {(Node|string)[]}
 */
const withCode = (text) => text.split("`").map((part, at) => (at % 2 ? element("code", {}, part) : part));

/** @param {Part} part @param {string} id @param {Element} input */
const labelled = (part, id, input) =>
  element("p", { class: "part" }, element("label", { for: id }, part.name), input, element("small", {}, ...withCode(part.what)));

/**
 * Build a control for each field of a mapping. Each control replaces the field's lines in the YAML.
 * @param {HTMLTextAreaElement} area @param {Part[]} parts @param {Words} words
 */
function lines(area, parts, words) {
  const controls = parts.map((part) => {
    const id = `${area.id}_${part.name}`;
    const input = /** @type {HTMLInputElement} */ (control(part, id, words));
    input.addEventListener("input", () => {
      const isText = part.kind === "text" || part.kind === "choice";
      area.value = writeField(area.value, part.name, isText && input.value ? quoted(input.value) : input.value);
    });
    return { part, id, input };
  });
  const follow = () => controls.forEach(({ part, input }) => (input.value = plain(readRaw(area.value, part.name))));
  area.addEventListener("change", follow);
  follow();
  return { shown: controls.map(({ part, id, input }) => labelled(part, id, input)), follow };
}

/** A line of block YAML: indent, key, value. The key may be quoted, because YAML reads a bare "on" as a boolean. */
const LINE = /^( *)(["']?)(\w+)\2:(?: +(.*))?$/;
const QUOTED = /"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'/g;
const PAIR = new RegExp(`(["']?)(\\w+)\\1: *(${QUOTED.source}|[^,}]*)`, "g");
/** A mapping on one line without collections in it, when its quoted texts are left out. */
const FLAT = /^\{[^[\]{}]*\}$/;

/**
 * Return a hook's values by path, e.g. "condition.type", as they are written, or null if the YAML is too complex for
 * the form.
 * @param {string} text @returns {Record<string, string>|null}
 */
function readHook(text) {
  /** @type {Record<string, string>} */
  const found = {};
  let [outer, depth] = ["", ""];
  for (const line of text.split("\n").filter((one) => one.trim())) {
    const [, indent, , key, raw = ""] = LINE.exec(line) ?? [];
    const value = withoutComment(raw);
    const isMapping = !indent && FLAT.test(value.replace(QUOTED, ""));
    if (!key || (!isMapping && COMPLEX.test(value))) return null;
    // Deeper mappings are not shown.
    if (indent && (!outer || !value || indent !== (depth || indent))) return null;
    depth = indent;
    if (!indent) outer = value ? "" : key;
    const path = indent ? `${outer}.${key}` : key;
    if (isMapping) for (const [, , name, inner] of value.matchAll(PAIR)) found[`${path}.${name}`] = inner.trim();
    else if (value) found[path] = value;
  }
  return found;
}

/** Return the name of the field with the number of a condition. */
const limitOf = (/** @type {string} */ condition) => ({ turn_count: "count", always: "" })[condition] ?? "threshold";

/** Return the name of the field with the text of an action. */
const textOf = (/** @type {string} */ action) => ({ log: "message", inject_message: "message", module_action: "action" })[action] ?? "";

/** Return a value as it is written, quoted if it would not be one value inside a mapping on one line. */
const inFlow = (/** @type {string} */ raw) => (/^["']/.test(raw) || !/[,[\]{}]/.test(raw) ? raw : JSON.stringify(raw));

/**
 * Return the fields of a mapping that the form does not show, as `, name: value`, if its type stays the same.
 * @param {Record<string, string>} found @param {string} path @param {string} type @param {string} shown
 */
const others = (found, path, type, shown) =>
  Object.entries(plain(found[`${path}.type`] ?? "") === type ? found : {})
    .filter(([name]) => name.startsWith(`${path}.`) && ![`${path}.type`, `${path}.${shown}`].includes(name))
    .map(([name, raw]) => `, ${name.slice(path.length + 1)}: ${inFlow(raw)}`)
    .join("");

/**
 * Build the form of one hook. It updates the YAML on each input, or, given `add`, when its button is pressed.
 * @param {HTMLTextAreaElement} area @param {Part[]} parts @param {Words} words
 * @param {((yaml: string) => void)|null} add
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
    const shownOf = (/** @type {string} */ path) => plain(found?.[path] ?? "");
    for (const [part, one] of inputs) {
      one.disabled = !found;
      one.value = shownOf(part.name);
    }
    if (!found) return;
    for (const name of ["condition", "action"]) input(name).value = shownOf(`${name}.type`);
    input("threshold").value = shownOf(`condition.${limitOf(value("condition"))}`);
    input("text").value = shownOf(`action.${textOf(value("action"))}`);
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
    else
      for (const name of yaml.split("\n").map((line) => line.split(":")[0])) area.value = writeField(area.value, name, readRaw(yaml, name));
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
