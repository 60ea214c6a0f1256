/** Loads data when a component is shown. On failure, shows the error and a button to try again. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { errorText } from "../commands/conversations.js";
import { html } from "../html.js";
import { t } from "../i18n.js";

/** Load data, and load it again when `key` changes. @template T @param {() => Promise<T>} load @param {string} key */
export function useLoaded(load, key) {
  const loaded = useSignal(/** @type {T|null} */ (null));
  const problem = useSignal("");
  const attempt = useSignal(0);
  useEffect(() => {
    let isWanted = true;
    loaded.value = null;
    problem.value = "";
    load().then(
      (read) => isWanted && (loaded.value = read),
      (error) => isWanted && (problem.value = errorText(error)),
    );
    return () => void (isWanted = false);
  }, [key, attempt.value]);
  return { loaded: loaded.value, problem: problem.value, again: () => void attempt.value++ };
}

/** @param {{problem: string, again: () => void}} props */
export const Waiting = ({ problem, again }) =>
  problem
    ? html`<p class="form-error" role="alert">${problem} <button type="button" class="link" onClick=${again}>${t("Try again")}</button></p>`
    : html`<p class="shimmer" role="status">${t("Loading…")}</p>`;
