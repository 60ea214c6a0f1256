import assert from "node:assert/strict";
import { test } from "node:test";
import { settled } from "./page.mjs";

const sent = [];
globalThis.FormData = class {
  append(_field, file) { this.file = file; }
};
globalThis.XMLHttpRequest = class {
  upload = {};
  status = 200;
  open() {}
  setRequestHeader() {}
  send(form) {
    this.name = form.file.name;
    sent.push(this);
  }
  abort() { this.onabort?.(); }
};
const { addFiles } = await import("../../../static/app/js/commands/uploads.js");
const { dropUpload, uploads } = await import("../../../static/app/js/state/draft.js");

test("a file that was taken back before its turn came is not sent to the server", async () => {
  const file = (name) => new File(["words"], name, { type: "text/plain" });
  await addFiles([file("1.txt"), file("2.txt"), file("3.txt"), file("secret.txt")]);
  await settled();
  dropUpload(uploads.value.find(({ name }) => name === "secret.txt").key);
  sent[0].responseText = JSON.stringify({ id: "f1", mime_type: "text/plain", size_bytes: 5 });
  sent[0].onload();
  await settled();
  assert.deepEqual(sent.map(({ name }) => name), ["1.txt", "2.txt", "3.txt"]);
});
