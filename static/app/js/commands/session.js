/** The session of this page's user. Leaves the page if another tab signs out or signs in somebody else. */

import { endSession, get, goToSignIn } from "../api.js";
import { boot } from "../boot.js";
import { showToast } from "../state/store.js";
import { remember, removeDrafts } from "../storage.js";
import { errorText } from "./conversations.js";

/** Storage key that is written at each sign-out to notify the other tabs of this browser. */
const SIGNED_OUT = "signed-out";

export function startSession() {
  addEventListener("storage", ({ key, newValue }) => {
    if (key?.endsWith(`.${SIGNED_OUT}`) && newValue) goToSignIn();
  });
  // Check again when a tab becomes visible that slept or missed the notice.
  document.addEventListener("visibilitychange", () => document.hidden || checkUser());
}

/** Reload if another user is signed in: the page shows and changes data of the user it was served to. */
export async function checkUser() {
  try {
    const { id } = await get("/me");
    if (id !== boot.user.id) location.replace("/");
  } catch {
    // A signed-out user was already sent to the sign-in page. Without a response, the next check tries again.
    return;
  }
}

export async function signOut() {
  try {
    await endSession();
  } catch (error) {
    showToast(errorText(error), "bad");
    return;
  }
  leave();
}

/** Leave the page after a sign-out: remove the drafts and notify the other tabs. */
export function leave() {
  removeDrafts();
  remember(SIGNED_OUT, String(Date.now()));
  location.assign("/");
}
