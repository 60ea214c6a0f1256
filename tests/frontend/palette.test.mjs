import assert from "node:assert/strict";
import { test } from "node:test";
import { grouped, matching, stepTo } from "../../static/app/js/state/palette.js";
import { toolsOfAnswer } from "../../static/app/js/state/tools.js";

const choice = (label, group = "Actions") => ({ id: label, label, group, icon: "", onChoose: () => {} });

test("an action is found by the beginnings, ends or middles of its words, in any order", () => {
  const all = [choice("New chat"), choice("Keyboard shortcuts")];
  assert.deepEqual(matching(all, "chat ne"), [all[0]]);
  assert.deepEqual(matching(all, ""), all);
  assert.deepEqual(matching(all, "chat keyboard"), []);
});

test("arrows go round, and nowhere where nothing is listed", () => {
  assert.deepEqual([stepTo("ArrowDown", 2, 3), stepTo("ArrowUp", 0, 3), stepTo("ArrowDown", 0, 3)], [0, 2, 1]);
  assert.deepEqual([stepTo("ArrowDown", -1, 0), stepTo("a", 0, 3)], [null, null]);
});

test("choices of one group stand together, in the order of the arrows", () => {
  const all = [choice("a", "Chats"), choice("b", "Messages"), choice("c", "Messages"), choice("d")];
  assert.deepEqual(
    grouped(all).flatMap(({ items }) => items),
    all,
  );
  assert.deepEqual(grouped(all).map(({ name }) => name), ["Chats", "Messages", "Actions"]);
});

test("a plan's tool call stands with its step, and with the answer while it waits for an approval", () => {
  const call = (callId, planStep, state = "done") => ({ callId, planStep, state });
  const tools = [call("1", null), call("2", "s1"), call("3", "s1", "waiting"), call("4", "analyst")];
  assert.deepEqual(
    toolsOfAnswer(tools, [{ id: "s1" }]).map(({ callId }) => callId),
    ["1", "3", "4"],
  );
});
