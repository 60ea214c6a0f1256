import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { asked, request, settled } from "./page.mjs";

const listeners = {};
const listen = (type, listener) => (listeners[type] = listener);
globalThis.addEventListener = listen;
document.addEventListener = listen;
const left = [];
location.assign = (address) => left.push(address);
location.replace = (address) => left.push(address);
const { signOut, startSession } = await import("../../../static/app/js/commands/session.js");
startSession();

beforeEach(() => {
  asked.splice(0);
  left.splice(0);
});

/** @param {string} id of whom the server knows by then */
async function look(id) {
  listeners.visibilitychange();
  (await request("GET", /\/me$/)).answer({ id });
  await settled();
}

test("a page of somebody else than who is signed in is left as it comes into view", async () => {
  await look("u1");
  assert.deepEqual(left, []);
  await look("u2");
  assert.deepEqual(left, ["/"]);
});

test("a page of which nobody is signed in leads to the sign-in", async () => {
  listeners.visibilitychange();
  (await request("GET", /\/me$/)).answer({}, 401);
  await settled();
  assert.deepEqual(left, ["/accounts/login/?next=%2F"]);
});

test("a page stays where the server could not be asked who is signed in", async () => {
  listeners.visibilitychange();
  (await request("GET", /\/me$/)).fail();
  await settled();
  assert.deepEqual(left, []);
});

test("the other tabs are told of a sign-out once it is done, and leave", async () => {
  let told = null;
  const { setItem } = localStorage;
  localStorage.setItem = (key, newValue) => {
    setItem(key, newValue);
    told = { key, newValue };
  };
  signOut();
  (await request("POST", /logout/)).answer({}, 403);
  await settled();
  assert.equal(told, null, "it was refused");
  signOut();
  (await request("POST", /logout/)).answer({}, 302, "opaqueredirect");
  await settled();
  assert.deepEqual(left, ["/"]);
  listeners.storage(told);
  assert.equal(left[1], "/accounts/login/?next=%2F");
});
