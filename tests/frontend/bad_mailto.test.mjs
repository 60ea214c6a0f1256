import assert from "node:assert/strict";
import { test } from "node:test";
import { placeToShow } from "../../static/app/js/links.js";
import { htmlOf, readMarkdown } from "../../static/app/js/markdown.js";

test("a mail link with a percent sign that encodes nothing does not break the paragraph that holds it", () => {
  const [section] = readMarkdown().read("Write to [us](mailto:100%@x.org), please.", true);
  const [, href] = /href="([^"]+)"/.exec(htmlOf(section.blocks[0]));
  assert.doesNotThrow(() => placeToShow(href, "us"), "as marked writes it");
  // As a browser gives it back by link.href: what is written as %ff stays so.
  assert.doesNotThrow(() => placeToShow("mailto:%ff@x.org", "us"));
});
