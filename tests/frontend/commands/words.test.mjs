import assert from "node:assert/strict";
import { test } from "node:test";
import { asked, request, settled } from "./page.mjs";

document.documentElement.lang = "zh-hans";
Object.defineProperty(globalThis, "navigator", { value: { languages: ["zh-CN"], platform: "" }, configurable: true });
process.env.TZ = "Asia/Shanghai";
const { htmlOf, readMarkdown } = await import("../../../static/app/js/markdown.js");
const { COMMANDS } = await import("../../../static/app/js/commands/slash.js");

test("an image without words is named in the language of the page", () => {
  const [section] = readMarkdown().read("![](https://x.org/a.png)", true);
  assert.match(htmlOf(section.blocks[0]), /图片/);
});

test("/memory says the day on which it was said where its user is", async () => {
  const answer = COMMANDS.find(({ name }) => name === "/memory").run("tea", "");
  (await request("GET", /memory\/search/)).answer({ items: [{ text: "I like tea.", created_at: "2026-03-01T17:30:00Z", source: {} }] });
  const { rows } = await answer;
  assert.doesNotMatch(rows[0][0], /2026-03-01/, "it was the 2nd of March in Shanghai");
});

test("/context names the parts of the context in the language of the page", async () => {
  const answer = COMMANDS.find(({ name }) => name === "/context").run("", "c1");
  (await request("POST", /context$/)).answer({ messages: [{ role: "user" }], policy: {}, parts: { history: 12 }, total_tokens: 12, limit_tokens: 100, compaction: null });
  const { rows } = await answer;
  for (const [name, value] of rows) assert.doesNotMatch(`${name} ${value}`, /[a-z]{4}/, `${name}: ${value}`);
});
