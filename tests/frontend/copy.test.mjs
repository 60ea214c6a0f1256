import assert from "node:assert/strict";
import { test } from "node:test";
import { copyText } from "../../static/app/js/copy.js";

/** @param {object|undefined} clipboard undefined: the page is not served over HTTPS */
const have = (clipboard) => Object.defineProperty(navigator, "clipboard", { value: clipboard, configurable: true });

test("what the browser does not let into the clipboard is not called copied", async () => {
  have({ writeText: async () => {} });
  assert.equal(await copyText("a"), true);
  have({ writeText: () => Promise.reject(new DOMException("Write permission denied.", "NotAllowedError")) });
  assert.equal(await copyText("a"), false);
});

test("what could not be selected is not called copied, whatever the browser says", async () => {
  have(undefined);
  const place = (name) => ({ name, append: (area) => (area.isFocusable = name === "body"), focus() {} });
  const body = place("body");
  let dialogs = [];
  globalThis.document = {
    body,
    activeElement: body,
    querySelectorAll: () => dialogs,
    createElement: () => ({ select() {}, remove() {}, focus() { if (this.isFocusable) document.activeElement = this; } }),
    execCommand: () => true,
  };
  assert.equal(await copyText("a"), true);
  document.activeElement = body;
  dialogs = [place("dialog that takes no focus")];
  assert.equal(await copyText("a"), false);
});
