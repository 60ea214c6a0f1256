import assert from "node:assert/strict";
import { test } from "node:test";
import { sockets } from "./page.mjs";

const { ChatSocket } = await import("../../../static/app/js/socket.js");

function connect(t) {
  t.mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  t.mock.method(Math, "random", () => 1);
  sockets.splice(0);
  const told = [];
  new ChatSocket("ws://x", {
    onFrames() {},
    onOpen() {},
    onState: (state) => told.push(state),
    onDoubt: () => told.push("doubt"),
  }).connect();
  return told;
}

/** As a server that takes the connection and then does not want it. */
function closeAtOnce(code) {
  const socket = sockets.at(-1);
  socket.open();
  socket.readyState = 3;
  socket.onclose({ code });
}

test("a connection that is taken and closed at once is waited for longer each time, and told as lost", (t) => {
  const told = connect(t);
  for (const waitMs of [500, 1000, 2000, 4000]) {
    closeAtOnce(1011);
    const count = sockets.length;
    t.mock.timers.tick(waitMs - 1);
    assert.equal(sockets.length, count, `before ${waitMs} ms`);
    t.mock.timers.tick(1);
    assert.equal(sockets.length, count + 1, `after ${waitMs} ms`);
  }
  assert.deepEqual(told, ["doubt", "lost"]);
  sockets.at(-1).open();
  assert.deepEqual(sockets.at(-1).sent, [{ type: "ping" }]);
  sockets.at(-1).onmessage({ data: '{"type": "pong"}' });
  assert.deepEqual(told, ["doubt", "lost", "open"]);
});

test("where a user has too many connections the longest time is waited at once", (t) => {
  const told = connect(t);
  closeAtOnce(4429);
  t.mock.timers.tick(14_999);
  assert.equal(sockets.length, 1);
  t.mock.timers.tick(1);
  assert.equal(sockets.length, 2);
  assert.deepEqual(told, ["lost"]);
});
