/** Whose page this is: it is left where they sign out, or somebody else signs in, in another tab. */

import { endSession, get, goToSignIn } from "../api.js";
import { boot } from "../boot.js";
import { showToast } from "../state/store.js";
import { remember, removeDrafts } from "../storage.js";
import { sentenceOf } from "./conversations.js";

/** Written at each sign-out: the other tabs of this browser are told. */
const SIGNED_OUT = "signed-out";

export function startSession() {
  addEventListener("storage", ({ key, newValue }) => {
    if (key?.endsWith(`.${SIGNED_OUT}`) && newValue) goToSignIn();
  });
  // A tab that slept, or was not told, is looked at again.
  document.addEventListener("visibilitychange", () => document.hidden || checkUser());
}

/** What this page shows, and what is done on it, belongs to whom it was served to. */
export async function checkUser() {
  try {
    const { id } = await get("/me");
    if (id !== boot.user.id) location.replace("/");
  } catch {
    // Who is signed out was led to the sign-in; where no answer came, the next look asks again.
    return;
  }
}

export async function signOut() {
  try {
    await endSession();
  } catch (error) {
    showToast(sentenceOf(error), "bad");
    return;
  }
  leave();
}

/** Nobody is signed in any more: their drafts go, and the other tabs are told. */
export function leave() {
  removeDrafts();
  remember(SIGNED_OUT, String(Date.now()));
  location.assign("/");
}
