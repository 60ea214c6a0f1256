import assert from "node:assert/strict";
import { test } from "node:test";
import { conversation, request, settled } from "./page.mjs";

const { loadListing, loadMoreListing, reloadListing } = await import("../../../static/app/js/commands/conversations.js");
const { dispatch, listing } = await import("../../../static/app/js/state/store.js");

const chats = (first, last) => Array.from({ length: last - first + 1 }, (_, n) => conversation(`a${first + n}`));

test("a list that is read again reaches as far down as before, without what was deleted", async () => {
  loadListing();
  (await request("GET", /limit=40/)).answer({ items: chats(1, 40), next_cursor: "41" });
  for (const first of [41, 81]) {
    await settled();
    loadMoreListing();
    (await request("GET", new RegExp(`cursor=${first}`))).answer({ items: chats(first, first + 39), next_cursor: String(first + 40) });
  }
  await settled();
  assert.equal(listing.value.ids.length, 120);

  reloadListing();
  (await request("GET", /limit=100/)).answer({ items: chats(2, 101), next_cursor: "102" });
  dispatch({ type: "conversation/put", conversation: conversation("new", { last_activity_at: "2026-01-02T00:00:00Z" }) });
  (await request("GET", /cursor=102&limit=20/)).answer({ items: chats(102, 121), next_cursor: "122" });
  await settled();
  assert.deepEqual(listing.value.ids, ["new", ...chats(2, 121).map(({ id }) => id)]);
  assert.equal(listing.value.nextCursor, "122");
});
