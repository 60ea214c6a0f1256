import assert from "node:assert/strict";
import { test } from "node:test";
import { localeOf, plural, t, translateWithoutAdvice } from "../../static/app/js/i18n.js";

test("values fill their places, numbers as the language writes them", () => {
  assert.equal(t("{used} of {budget} tokens", { used: 1234, budget: "2k" }), "1,234 of 2k tokens");
  assert.equal(t("{nobody} knows"), "{nobody} knows");
});

test("dates follow the browser's own region, where its name for it is one", () => {
  assert.equal(localeOf("en", ["de-DE", "en-GB", "en"]), "en-GB");
  assert.equal(localeOf("en", ["en-US@posix"]), "en");
  assert.equal(localeOf("zh-hans", ["en-GB"]), "zh-hans");
});

test("a number takes the form of its plural", () => {
  const entries = (n) => plural(n, "{n} entry of {day}", "{n} entries of {day}", { day: "Monday" });
  assert.deepEqual([0, 1, 2, 1000].map(entries), [
    "0 entries of Monday",
    "1 entry of Monday",
    "2 entries of Monday",
    "1,000 entries of Monday",
  ]);
});

test("what the server says of a step of a plan is said in the language of the page, with what is in it", async () => {
  globalThis.document = { documentElement: { lang: "zh-hans" } };
  const { translateServerText } = await import("../../static/app/js/i18n.js?chinese");
  const spoken = (sentence) => assert.doesNotMatch(translateServerText(sentence), /[a-z]{3}/i, translateServerText(sentence));
  spoken("The planner: The model repeated the same tool call; it answers with what it has.");
  spoken("Step 2: The limit of tool steps was reached; the model answers with what it has.");
  spoken("No model's summary: the summary model's window is too small.");
  spoken("No usable plan was made (there are 40 steps; at most 20 are possible); answering without one.");
  assert.equal(translateServerText("Step 2: Something new."), "步骤 2：Something new.");
});

test("what happened to an answer long ago is said without what to do about it", async () => {
  const broke = "The connection to the model broke before the answer was finished; what it wrote so far is kept. Press Continue or Retry.";
  assert.equal(translateWithoutAdvice(broke), "The connection to the model broke before the answer was finished.");
  assert.equal(translateWithoutAdvice("It failed."), "It failed.");
  globalThis.document = { documentElement: { lang: "zh-hans" } };
  const chinese = await import("../../static/app/js/i18n.js?chinese");
  assert.equal(chinese.translateWithoutAdvice(broke), "回答完成前与模型的连接中断。");
});
