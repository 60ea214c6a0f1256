/** Calls to the REST API, with a function per HTTP method. Errors are ApiError with the server's own message. */

import { boot } from "./boot.js";
import { t, translateServerText } from "./i18n.js";

const BASE = "/api/v1";
const TIMEOUT_MS = 30_000;

export class ApiError extends Error {
  /**
   * @param {number} status 0 if no response arrived @param {string} code @param {string} message
   * @param {number} [retryAfterS]
   */
  constructor(status, code, message, retryAfterS = 0) {
    super(message);
    this.status = status;
    this.code = code;
    this.retryAfterS = retryAfterS;
  }
}

/** Read the cookie first: signing in again in another tab replaces the token. */
const csrfToken = () => /(?:^|; )(?:__Host-)?csrftoken=([^;]+)/.exec(document.cookie)?.[1] ?? boot.csrf_token;

/** @param {string} method @param {string} path @param {unknown} [body] @param {Record<string, string>} [headers] */
async function request(method, path, body, headers = {}) {
  /** @type {RequestInit} */
  const init = {
    method,
    credentials: "same-origin",
    signal: AbortSignal.timeout(TIMEOUT_MS),
    headers: { Accept: "application/json", "X-CSRFToken": csrfToken(), ...headers },
  };
  if (body !== undefined) {
    init.headers = { ...init.headers, "Content-Type": "application/json" };
    init.body = JSON.stringify(body);
  }
  const { response, text } = await fetchText(BASE + path, init);
  const answer = parseJson(text);
  if (response.ok) return answer;
  if (response.status === 401) goToSignIn();
  throw errorOf(response.status, answer);
}

/**
 * Fetch a response as text. Raise the same error if the connection breaks before or within the response.
 * @param {string} url @param {RequestInit} init
 */
async function fetchText(url, init) {
  try {
    const response = await fetch(url, init);
    return { response, text: await response.text() };
  } catch {
    throw new ApiError(0, "unreachable", t("The server did not answer. Check your connection and try again."));
  }
}

export const goToSignIn = () => location.assign(`${boot.login_url}?next=${encodeURIComponent(location.pathname)}`);

/** @param {string} text */
function parseJson(text) {
  try {
    return text ? JSON.parse(text) : null;
  } catch {
    return null;
  }
}

/** @param {number} status @param {any} body */
function errorOf(status, body) {
  const error = body?.error;
  const fallback = t("The server answered with an error ({status}). Try again.", { status });
  return new ApiError(status, error?.code ?? "error", error?.message ? translateServerText(error.message) : fallback, Number(error?.details?.retry_after) || 0);
}

export const get = (/** @type {string} */ path) => request("GET", path);
export const post = (/** @type {string} */ path, /** @type {unknown} */ body = {}) => request("POST", path, body);
export const patch = (/** @type {string} */ path, /** @type {unknown} */ body) => request("PATCH", path, body);
export const put = (/** @type {string} */ path, /** @type {unknown} */ body, /** @type {Record<string, string>} */ headers = {}) =>
  request("PUT", path, body, headers);
export const remove = (/** @type {string} */ path, /** @type {unknown} */ body = undefined) => request("DELETE", path, body);

/** End the session. The sign-out page redirects on success. */
export async function endSession() {
  const { response } = await fetchText(boot.logout_url, { method: "POST", redirect: "manual", headers: { "X-CSRFToken": csrfToken() } });
  if (response.type !== "opaqueredirect") throw errorOf(response.status, null);
}

/** Post and return ids at once. The run's events arrive over the socket. */
export const postAsync = (/** @type {string} */ path, /** @type {unknown} */ body = {}) =>
  request("POST", path, body, { Prefer: "respond-async" });

export const patchAsync = (/** @type {string} */ path, /** @type {unknown} */ body) =>
  request("PATCH", path, body, { Prefer: "respond-async" });

/** @param {Record<string, string|number|boolean|null|undefined>} values */
export function query(values) {
  const given = Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return text ? `?${text}` : "";
}

/**
 * @param {File} file @param {(share: number) => void} onProgress @param {AbortSignal} signal @returns {Promise<any>}
 */
export function uploadFile(file, onProgress, signal) {
  const form = new FormData();
  form.append("file", file, file.name || "image.png");
  return uploadBody("/files", form, onProgress, signal);
}

/**
 * Post a body and report the progress, which fetch() cannot do.
 * @param {string} path @param {FormData|Blob} body @param {(share: number) => void} onProgress
 * @param {AbortSignal} signal
 * @returns {Promise<any>}
 */
export function uploadBody(path, body, onProgress, signal) {
  return new Promise((resolve, reject) => {
    // If the upload was cancelled while it was queued, no abort event follows.
    signal.throwIfAborted();
    const upload = new XMLHttpRequest();
    upload.open("POST", `${BASE}${path}`);
    upload.setRequestHeader("X-CSRFToken", csrfToken());
    upload.upload.onprogress = (event) => event.lengthComputable && onProgress(event.loaded / event.total);
    upload.onerror = () => reject(new ApiError(0, "unreachable", t("The upload was cut off. Try again.")));
    upload.onabort = () => reject(signal.reason);
    upload.onload = () => {
      const answer = parseJson(upload.responseText);
      if (upload.status < 300) resolve(answer);
      else reject(errorOf(upload.status, answer));
    };
    signal.addEventListener("abort", () => upload.abort());
    upload.send(body);
  });
}

/** @param {string} fileId */
export const fileUrl = (fileId) => `${BASE}/files/${encodeURIComponent(fileId)}`;
