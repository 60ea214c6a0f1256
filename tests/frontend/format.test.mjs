import assert from "node:assert/strict";
import { test } from "node:test";
import { endOfSentences, expiresSoon, formatDone, formatTokens, groupByAge, plainText, quoted, revealHidden } from "../../static/app/js/format.js";

test("the done card counts summarizing, and counts it once", () => {
  assert.equal(formatDone({ input_tokens: 1234, output_tokens: 440, compaction_tokens: 234 }), "1.2k in / 440 out");
  assert.equal(formatDone({ input_tokens: 12, output_tokens: 3 }), "12 in / 3 out");
});

test("what is not seen, or turns the text round, is shown by its number", () => {
  assert.equal(revealHidden('{\n\t"to": "bob\u202eecila\u200b\u{e0061}"\n}'), '{\n\t"to": "bob\\u{202e}ecila\\u{200b}\\u{e0061}"\n}');
  for (const sign of ["\u115f", "\u3164", "\uffa0", "\u034f", "\ufe00", "\ufe0f", "\u{e0100}", "\u{e01ef}", "\u2800", "\u2028", "\u180b"]) {
    assert.equal(revealHidden(`a${sign}b`), `a\\u{${sign.codePointAt(0)?.toString(16)}}b`);
  }
  assert.equal(revealHidden("Grüße, 世界! 🎉"), "Grüße, 世界! 🎉");
});

test("whole sentences end behind their last sign, and begin with whatever stands there", () => {
  const whole = (text) => text.slice(0, endOfSentences(text));
  assert.equal(whole("One. Two! Thr"), "One. Two!");
  assert.equal(whole("...and so on. The r"), "...and so on.");
  assert.equal(whole("潮汐。每天两"), "潮汐。");
  assert.equal(whole("A line\nthe n"), "A line\n");
  assert.equal(whole("x".repeat(200_000)), "");
});

test("a chat expires soon within its last week, unless it is pinned", () => {
  const now = new Date("2026-11-22T12:00:00Z");
  const inDays = (days) => new Date(now.getTime() + days * 86_400_000).toISOString();
  assert.equal(expiresSoon({ expires_at: inDays(6), pinned: false }, now), true);
  assert.equal(expiresSoon({ expires_at: inDays(8), pinned: false }, now), false);
  assert.equal(expiresSoon({ expires_at: inDays(1), pinned: true }, now), false);
  assert.equal(expiresSoon({ expires_at: null, pinned: false }, now), false);
});

test("what is read aloud has no marks of Markdown", () => {
  assert.equal(plainText("## A **bold** [link](https://x.test/) and `code`.\n- one\n- two"), "A bold link and code. one two");
});

test("token counts are short", () => {
  assert.deepEqual([812, 41_234, 128_000, 1_047_576].map(formatTokens), ["812", "41.2k", "128k", "1.0M"]);
});

test("conversations are grouped by age, the pinned ones first", () => {
  const now = new Date(2026, 10, 21, 12);
  const at = (days, more) => ({
    id: `${days}`,
    pinned: false,
    last_activity_at: new Date(2026, 10, 21 - days, 9).toISOString(),
    ...more,
  });
  const groups = groupByAge([at(40), at(0), at(1), at(3), at(20), at(2, { pinned: true })], now);
  assert.deepEqual(
    groups.map((group) => group.name),
    ["Pinned", "Today", "Yesterday", "Previous 7 days", "Previous 30 days", "October 2026"],
  );
});

test("what was recalled is shown as somebody's words, without their Markdown", () => {
  assert.deepEqual(quoted("assistant: All **done**."), { who: "Assistant", words: "All done." });
  assert.deepEqual(quoted("memory: The boat is called *Halcyon*\n- and lies here"), { who: "Remembered", words: "The boat is called Halcyon and lies here" });
  assert.deepEqual(quoted("Remember: buy milk"), { who: "", words: "Remember: buy milk" });
});
