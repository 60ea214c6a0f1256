/** The profile and its versions. */

import { get, post, put, query } from "../api.js";

/**
 * @typedef {{markdown: string, version: number, author: string|null, updated_at: string|null, tokens: number,
 *   budget_tokens: number, is_used: boolean, consolidation: Consolidation|null}} Profile
 * @typedef {{status: string, reason: string|null, entry_count: number, version: number|null, created_at: string,
 *   finished_at: string|null}} Consolidation
 * @typedef {{version: number, author: string, created_at: string, tokens: number}} Version
 * @typedef {Version & {markdown: string, against: number,
 *   changes: {kind: "same"|"added"|"removed", text: string}[]}} VersionText
 */

/** @returns {Promise<Profile>} */
export const readProfile = () => get("/memory/profile");

/** @param {Profile} profile as it was read @param {string} markdown @returns {Promise<Profile>} */
export const writeProfile = ({ version }, markdown) =>
  put("/memory/profile", { markdown }, { "If-Match": `"${version}"` });

/**
 * List the versions, newest first.
 * @param {string|null} cursor @returns {Promise<{items: Version[], next_cursor: string|null}>}
 */
export const profileVersions = (cursor) => get(`/memory/profile/versions${query({ cursor })}`);

/** Read a version with its changes. @param {number} version @returns {Promise<VersionText>} */
export const readVersion = (version) => get(`/memory/profile/versions/${version}`);

/** @param {number} version @returns {Promise<Profile>} */
export const revertProfile = (version) => post(`/memory/profile/versions/${version}/revert`);

/** Have the worker rewrite the profile from the entries since the last time. @returns {Promise<Profile>} */
export const consolidateProfile = () => post("/memory/profile/consolidate");
