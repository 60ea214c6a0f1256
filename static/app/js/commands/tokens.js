/** Tokens with which programs use the API in this person's name. */

import { get, post, remove } from "../api.js";

/** @typedef {{id: string, name: string, prefix?: string, scopes: string[], created_at: string, last_used_at?: string|null, expires_at?: string|null}} ApiToken */

/** @returns {Promise<ApiToken[]>} */
export const listTokens = async () => (await get("/tokens")).items;

/**
 * The secret comes this once. The password is asked for where the sign-in was long ago.
 * @param {{name: string, scopes: string[], expires_at?: string, password?: string}} token
 * @returns {Promise<{token: string}>}
 */
export const createToken = (token) => post("/tokens", token);

/** @param {string} id */
export const deleteToken = (id) => remove(`/tokens/${id}`);
