/** Whose page this is. */

import { endSession } from "../api.js";
import { showToast } from "../state/store.js";
import { removeDrafts } from "../storage.js";
import { sentenceOf } from "./conversations.js";

/** The drafts go once nobody is signed in: who could not sign out goes on writing. */
export async function signOut() {
  try {
    await endSession();
  } catch (error) {
    showToast(sentenceOf(error), "bad");
    return;
  }
  removeDrafts();
  location.assign("/");
}
