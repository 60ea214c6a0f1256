import assert from "node:assert/strict";
import { test } from "node:test";
import { sockets } from "./page.mjs";

const { readDraft, readDraftFiles, readUnsent, writeDraft, writeDraftFiles, writeUnsent } = await import("../../../static/app/js/storage.js");

const FILE = { id: "f1", name: "f.txt", url: "", width: 0, height: 0, isImage: false, sizeBytes: 1 };
const UNSENT = { clientId: "k1", text: "Sent", attached: [], reason: "Too fast." };

test("where the browser stores nothing more, drafts and messages that came back are known until the page is left", () => {
  writeDraft("c1", "The first version");
  const { setItem } = localStorage;
  localStorage.setItem = () => {
    throw new DOMException("full", "QuotaExceededError");
  };
  writeDraft("c1", "The second version");
  writeUnsent("c1", UNSENT);
  assert.equal(readDraft("c1"), "The second version");
  assert.deepEqual(readUnsent("c1"), UNSENT);
  writeDraft("c1", "");
  assert.equal(readDraft("c1"), "");
  localStorage.setItem = setItem;
  writeUnsent("c1", { ...UNSENT, clientId: "k2" });
  assert.equal(readUnsent("c1").clientId, "k2");
});

test("of a chat that was deleted no draft stays in the browser; it is there again where that is undone", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  const { startLive } = await import("../../../static/app/js/commands/live.js");
  startLive(() => {});
  sockets[0].open();
  writeDraft("c2", "A secret");
  writeUnsent("c2", UNSENT);
  writeDraftFiles("c2", [FILE]);
  sockets[0].onmessage({ data: JSON.stringify({ type: "conversation.deleted", conversation_id: "c2" }) });
  t.mock.timers.tick(50);
  for (const name of ["c2", "c2.unsent", "c2.files"]) assert.equal(localStorage.getItem(`palimpsest.draft.u1.${name}`), null);
  assert.equal(readDraft("c2"), "A secret");
  assert.deepEqual(readDraftFiles("c2"), [FILE]);
});
