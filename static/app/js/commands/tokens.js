/** Tokens with which programs use the API in this person's name. */

import { get, post, remove } from "../api.js";

/** @typedef {{id: string, name: string, prefix?: string, scopes: string[], created_at: string, last_used_at?: string|null}} ApiToken */

/** @returns {Promise<ApiToken[]>} */
export const listTokens = async () => (await get("/tokens")).items;

/** The secret comes this once. @param {string} name @param {string[]} scopes @returns {Promise<{token: string}>} */
export const createToken = (name, scopes) => post("/tokens", { name, scopes });

/** @param {string} id */
export const deleteToken = (id) => remove(`/tokens/${id}`);
