import assert from "node:assert/strict";
import { test } from "node:test";
import { parseBlocks } from "../../static/app/js/markdown.js";

const html = (text) =>
  parseBlocks(text)
    .blocks.map((block) => block.html)
    .join("");

test("raw HTML is shown as text", () => {
  const shown = html("before <img src=x onerror=alert(1)> after\n\n<script>alert(1)</script>");
  assert.ok(!/<(img|script)/.test(shown));
  assert.match(shown, /&#60;script&#62;/);
});

test("a remote image becomes a button that holds its address", () => {
  const shown = html("![a cat](https://example.com/cat.png)");
  assert.ok(!shown.includes("<img"));
  assert.match(shown, /<button type="button" class="remote-image" data-src="https:\/\/example.com\/cat.png">a cat/);
});

test("a growing text keeps its finished blocks as the same objects", () => {
  const text = "# Title\n\nFirst paragraph.\n\n- one\n- two\n\n```js\nlet a = 1;\n```\n\nEnd of it.";
  let parsed;
  for (let end = 1; end <= text.length; end += 1) {
    const next = parseBlocks(text.slice(0, end), parsed, false);
    if (parsed) parsed.blocks.slice(0, -1).forEach((block, i) => assert.equal(next.blocks[i], block));
    parsed = next;
  }
  const whole = parseBlocks(text);
  assert.deepEqual(
    parsed.blocks.map((b) => [b.kind, b.html, b.code]).filter((b) => b[1] || b[2]),
    whole.blocks.map((b) => [b.kind, b.html, b.code]).filter((b) => b[1] || b[2]),
  );
});

test("the blocks' sources add up to the text", () => {
  const text = "a\n\n\n\nb\n\n[x]: http://e.com\n\n> q\n\n1. x\n\n   y\n2. z\n\n\n";
  let parsed;
  for (let end = 1; end <= text.length; end += 1) parsed = parseBlocks(text.slice(0, end), parsed, false);
  assert.equal(parsed.blocks.map((block) => block.raw).join(""), text);
});

test("a link defined below its use works once the text is final", () => {
  const text = "See [the docs][d].\n\nMore.\n\n[d]: https://example.com/d\n";
  let parsed;
  for (let end = 1; end <= text.length; end += 1) parsed = parseBlocks(text.slice(0, end), parsed, false);
  const final = parseBlocks(text, parsed, true);
  assert.match(final.blocks[0].html, /href="https:\/\/example.com\/d"/);
});

test("a fence that is not closed yet is an open code block", () => {
  const open = parseBlocks("```python\nprint(1)", undefined, false).blocks[0];
  assert.deepEqual([open.kind, open.language, open.isOpen, open.code], ["code", "python", true, "print(1)"]);
  assert.equal(parseBlocks("```python\nprint(1)\n```").blocks[0].isOpen, false);
});

test("formulas are found in all four notations", () => {
  assert.equal(parseBlocks("$$\na^2\n$$").blocks[0].kind, "math");
  assert.equal(parseBlocks("\\[ a^2 \\]").blocks[0].kind, "math");
  assert.match(html("so $a^2$ holds"), /<span class="math" data-display="false">a\^2<\/span>/);
  assert.match(html("so \\(a^2\\) holds"), /<span class="math" data-display="false">a\^2<\/span>/);
});

test("prices are not formulas", () => {
  assert.ok(!html("It costs $5 and then $10 more.").includes("math"));
  assert.ok(!html("Between $5 and $10.").includes("math"));
});

test("a formula cannot smuggle markup", () => {
  assert.ok(!html("$<img src=x>$").includes("<img"));
});

test("tables scroll inside their own box", () => {
  assert.match(html("|a|b|\n|-|-:|\n|1|2|"), /<div class="table-scroll"[^>]*><table>.*<td align="right">2/);
});
