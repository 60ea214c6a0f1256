/** The user's ratings of the answers in the open chat. */

import { effect, signal } from "@preact/signals";
import { get, put, remove } from "../api.js";
import { errorText } from "../commands/conversations.js";
import { currentId, showToast } from "../state/store.js";

/** @typedef {{rating: "good"|"bad", reason: string}} Rating */

/** Ratings by message id. */
export const ratings = signal(/** @type {Record<string, Rating>} */ ({}));

// If loading fails, the thumbs look unused and can be pressed again.
effect(() => {
  const id = currentId.value;
  if (!id) return;
  get(`/conversations/${id}/feedback`).then(
    ({ items }) => {
      const found = items.map((/** @type {Rating & {message_id: string}} */ item) => [item.message_id, item]);
      ratings.value = { ...ratings.peek(), ...Object.fromEntries(found) };
    },
    () => {},
  );
});

/** @param {string} id of the answer @param {Rating|null} rating null removes the rating */
export async function rate(id, rating) {
  const before = ratings.value;
  const { [id]: _gone, ...others } = before;
  ratings.value = rating ? { ...others, [id]: rating } : others;
  const path = `/conversations/${currentId.value}/messages/${id}/feedback`;
  try {
    await (rating ? put(path, rating) : remove(path));
  } catch (error) {
    ratings.value = before;
    showToast(errorText(error), "bad");
  }
}
