import assert from "node:assert/strict";
import { test } from "node:test";
import { conversation, request, settled } from "./page.mjs";

const { changeConversation, loadListing, loadMoreListing } = await import("../../../static/app/js/commands/conversations.js");
const { conversations, listing } = await import("../../../static/app/js/state/store.js");

test("a page of the list that comes late is not put into the archive", async () => {
  loadListing();
  (await request("GET", /conversations\?limit|conversations\?folder/)).answer({ items: [conversation("a1")], next_cursor: "second" });
  await settled();
  loadMoreListing();
  const late = await request("GET", /cursor=second/);
  loadListing({ showsArchived: true });
  (await request("GET", /archived=true/)).answer({ items: [conversation("z1", { archived: true })], next_cursor: null });
  await settled();
  assert.deepEqual(listing.value.ids, ["z1"]);
  late.answer({ items: [conversation("a2")], next_cursor: "third" });
  await settled();
  assert.deepEqual(listing.value.ids, ["z1"], "a chat that is not archived stands in the archive");
  assert.equal(listing.value.nextCursor, null, "and the archive goes on with the pages of another list");
});

test("an archiving that is undone after the chat was deleted puts nothing without an id into the list", async () => {
  const undoing = changeConversation("gone", { archived: false });
  (await request("PATCH", /conversations\/gone$/)).answer({ error: { code: "not_found", message: "Not there." } }, 404);
  assert.equal(await undoing, false);
  assert.equal("undefined" in conversations.value, false);
  assert.equal(listing.value.ids.includes(undefined), false);
});
