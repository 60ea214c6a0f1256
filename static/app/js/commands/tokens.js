/** API tokens, with which programs act for the user. */

import { get, post, remove } from "../api.js";

/**
 * @typedef {{id: string, name: string, prefix?: string, scopes: string[], created_at: string,
 *   last_used_at?: string|null, expires_at?: string|null}} ApiToken
 */

/** @returns {Promise<ApiToken[]>} */
export const listTokens = async () => (await get("/tokens")).items;

/**
 * Create a token and return its secret, which is shown only once. Needs the password if the sign-in was long ago.
 * @param {{name: string, scopes: string[], expires_at?: string, password?: string}} token
 * @returns {Promise<{token: string}>}
 */
export const createToken = (token) => post("/tokens", token);

/** @param {string} id */
export const deleteToken = (id) => remove(`/tokens/${id}`);
