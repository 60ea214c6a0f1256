import assert from "node:assert/strict";
import { test } from "node:test";
import { BLOCK_CHARS } from "../../static/app/js/blocks.js";
import { htmlOf, readMarkdown } from "../../static/app/js/markdown.js";
import { isDrawable } from "../../static/app/js/math.js";
import { cutCode } from "../../static/app/js/pieces.js";

const blocksOf = (reader) => reader.sections.flatMap((section) => section.blocks);

/** The blocks of a text that is there at once. */
function parse(text, isFinal = true) {
  const reader = readMarkdown();
  reader.read(text, isFinal);
  return blocksOf(reader);
}

/** Gives `text` letter by letter to a reader; `look` sees it after each. */
function stream(text, look = () => {}) {
  const reader = readMarkdown();
  for (let end = 1; end <= text.length; end += 1) {
    reader.read(text.slice(0, end), false);
    look(reader);
  }
  return reader;
}

const html = (text) => parse(text).map(htmlOf).join("");
const shape = (blocks) => blocks.map((block) => [block.kind, block.raw, block.head, block.code]);

test("the boxes of a task list say what they show", () => {
  const boxes = html("- [x] done\n- [ ] not yet").match(/<input[^>]*>/g);
  assert.deepEqual(boxes.map((box) => /aria-label="([^"]*)"/.exec(box)?.[1]), ["Done", "To do"]);
});

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

const MIXED =
  "# Title\n\nFirst paragraph.\nGoes on.\n\n- one\n\n- two\n\n  ```sh\n  ls\n\n  pwd\n  ```\n\n1. x\n\n12. y\n\n" +
  "> q\n\n|a|b|\n|-|-|\n|1|2|\nText\n```js\nlet a = 1;\n\n# no heading\n```\nEnd of *it*.\n~~~\n```\nopen";

test("a growing text keeps its finished blocks as the same objects", () => {
  let before = [];
  const reader = stream(MIXED, (now) => {
    const blocks = blocksOf(now);
    before.slice(0, -1).forEach((block, i) => assert.equal(blocks[i], block));
    before = blocks;
  });
  assert.deepEqual(shape(blocksOf(reader)), shape(parse(MIXED)));
});

test("each line of a growing text is read once", () => {
  assert.equal(stream(MIXED).linesRead, MIXED.split("\n").length - 1);
});

test("the blocks' sources add up to the text", () => {
  const text = "a\n\n\n\nb\n\n[x]: http://e.com\n\n> q\n\n1. x\n\n   y\n2. z\n\n\n";
  for (const whole of [text, MIXED, "x".repeat(3 * BLOCK_CHARS), "- a\n".repeat(9_000)])
    assert.equal(parse(whole).map((block) => block.raw).join(""), whole);
  assert.equal(blocksOf(stream(text)).map((block) => block.raw).join(""), text);
});

test("what replaces a text is read from its beginning", () => {
  const reader = readMarkdown();
  reader.read("One.\n\nTwo.\n\n", false);
  reader.read("Three.\n\nFour.\n\n", true);
  assert.deepEqual(shape(blocksOf(reader)), shape(parse("Three.\n\nFour.\n\n")));
});

test("a link defined below its use works once the text is final", () => {
  const text = "See [the docs][d].\n\nMore.\n\n[d]: https://example.com/d\n";
  const reader = stream(text);
  reader.read(text, true);
  assert.match(htmlOf(blocksOf(reader)[0]), /href="https:\/\/example.com\/d"/);
  assert.match(html(text), /href="https:\/\/example.com\/d"/);
});

test("a fence that is not closed yet is an open code block", () => {
  const [open] = parse("```python\nprint(1)", false);
  assert.deepEqual([open.kind, open.language, open.isOpen, open.code], ["code", "python", true, "print(1)"]);
  assert.equal(parse("```python\nprint(1)\n```")[0].isOpen, false);
});

test("code ends at a fence like its own, and loses the indentation of its fence", () => {
  const [code, after] = parse("  ````md\n  ```\n   a\n  ```\n  ````\nafter");
  assert.deepEqual([code.code, code.language, after.raw], ["```\n a\n```", "md", "after"]);
});

test("a list keeps its items together, with blank lines and code between them", () => {
  const [list, rest] = parse("1. a\n\n2. b\n\n   ```\n   x\n\n   y\n   ```\n\n3. c\n\nafter");
  assert.equal(htmlOf(list).match(/<ol>/g).length, 1);
  assert.equal(htmlOf(list).match(/<li>/g).length, 3);
  assert.equal(rest.raw, "after");
});

test("no block is much larger than a block may be, and a long table has its head in each", () => {
  const word = "word ".repeat(40_000);
  for (const text of [word, "x".repeat(200_000), "a b\n".repeat(40_000), "- a\n".repeat(40_000), "> a\n".repeat(40_000)]) {
    const sizes = parse(text).map((block) => block.raw.length);
    assert.ok(Math.max(...sizes) <= 2 * BLOCK_CHARS, `${text.slice(0, 5)}: ${Math.max(...sizes)}`);
  }
  const table = parse(`|a|b|\n|-|-|\n${"|1|2|\n".repeat(5_000)}`);
  assert.ok(table.length > 3);
  assert.equal(table.map(htmlOf).join("").match(/<tr>/g).length, 5_000 + table.length);
});

test("nesting is bounded, and what is deeper is shown as it was written", () => {
  const deep = { quotes: ">".repeat(3_000), items: "- ".repeat(3_000), stars: "*a ".repeat(900) + "a* ".repeat(900), images: "![".repeat(900) + "](x)".repeat(900) };
  for (const [name, text] of Object.entries(deep)) {
    const shown = html(`${text}the end`);
    assert.ok((shown.match(/<(blockquote|ul|em)/g) ?? []).length < 100, name);
    assert.ok(shown.includes("the end"), name);
  }
});

test("code is cut into pieces that stay while it grows", () => {
  const code = "let a = 1;\nlet b = 2;\n\n".repeat(2_000);
  let ends = [];
  for (let size = 0; size < code.length; size += 997) {
    const next = cutCode(code.slice(0, size), ends);
    assert.deepEqual(next.slice(0, Math.max(0, ends.length - 1)), ends.slice(0, -1));
    ends = next;
  }
  ends = cutCode(code, ends);
  assert.deepEqual(ends, cutCode(code));
  assert.equal(ends.at(-1), code.length);
  assert.ok(ends.every((end, i) => end - (ends[i - 1] ?? 0) <= 6_000 && (i === ends.length - 1 || code.slice(0, end).endsWith("\n\n"))));
  assert.ok(cutCode("x".repeat(1_000_000)).length > 100);
});

test("formulas are found in all four notations", () => {
  const display = /<div class="math" data-display="true">a\^2<\/div>/;
  assert.match(html("$$\na^2\n$$"), display);
  assert.match(html("\\[ a^2 \\]"), display);
  assert.match(html("so $a^2$ holds"), /<span class="math" data-display="false">a\^2<\/span>/);
  assert.match(html("so \\(a^2\\) holds"), /<span class="math" data-display="false">a\^2<\/span>/);
});

test("a formula too deep or too long is not drawn", () => {
  assert.ok(isDrawable("\\frac{1}{\\sqrt{2}}".repeat(100)));
  assert.ok(!isDrawable("\\frac{".repeat(2_000)));
  assert.ok(!isDrawable("\\left(".repeat(60)));
  assert.ok(!isDrawable("a".repeat(5_000)));
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
