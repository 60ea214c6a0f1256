import assert from "node:assert/strict";
import { test } from "node:test";
import { asked, conversation, request, settled, sockets } from "./page.mjs";

test("a chat whose answer is being written stays, and goes on, when the connection is lost and comes back", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  const { startLive, watch } = await import("../../../static/app/js/commands/live.js");
  const { connection, currentThread, dispatch } = await import("../../../static/app/js/state/store.js");
  const opened = [];
  startLive((isAgain) => opened.push(isAgain));
  sockets[0].open();
  const loaded = conversation("c1", { active_run: { id: "r1", message_id: "m2" } });
  const items = [
    { id: "m1", role: "user", content: "Question", position: 0, parent: null, created_at: "2026-01-01T00:00:00Z" },
    { id: "m2", role: "assistant", status: "streaming", content: "So far", position: 1, parent: "m1", created_at: "2026-01-01T00:00:00Z" },
  ];
  dispatch({ type: "conversation/opened", id: "c1" });
  dispatch({ type: "thread/loaded", conversation: loaded, page: { items, next_cursor: null }, compactions: [] });
  watch("c1");
  assert.equal(sockets[0].sent.at(-1).type, "subscribe");

  sockets[0].readyState = 3;
  sockets[0].onclose({ code: 1006 });
  t.mock.timers.tick(950);
  assert.equal(connection.value, "lost");
  t.mock.timers.tick(4000);
  for (const one of asked) if (!one.isAnswered) one.fail();
  await settled();
  assert.equal(currentThread.value.status, "ready", "one read that failed takes the whole chat away");
  const again = sockets.at(-1);
  again.open();
  assert.equal(again.sent.filter(({ type }) => type === "subscribe").length, 1, "and it is not followed again");
  assert.deepEqual(opened, [false, true]);
});
