import assert from "node:assert/strict";
import { test } from "node:test";
import { settled } from "./page.mjs";

const sent = [];
globalThis.URL.createObjectURL = () => "blob:x";
globalThis.URL.revokeObjectURL = () => {};
globalThis.FormData = class { append() {} };
/** As a browser's: abort() tells `onabort` and never `onerror` or `onload`. */
globalThis.XMLHttpRequest = class {
  upload = {};
  open() {}
  setRequestHeader() {}
  send() { sent.push(this); }
  abort() { this.onabort?.(); this.onloadend?.(); }
};
const { addFiles } = await import("../../../static/app/js/commands/uploads.js");
const { dropUpload, uploads } = await import("../../../static/app/js/state/draft.js");

test("a file can be sent after three were taken back while they were on their way", async () => {
  const file = (name) => new File(["words"], name, { type: "text/plain" });
  await addFiles([file("1.txt"), file("2.txt"), file("3.txt")]);
  await settled();
  assert.equal(sent.length, 3);
  for (const { key } of uploads.value) dropUpload(key);
  await addFiles([file("4.txt")]);
  await settled();
  assert.equal(sent.length, 4, "the fourth is never sent: the removed ones hold their places for ever");
});
