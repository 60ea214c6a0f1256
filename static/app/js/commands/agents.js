/** The user's own agents: creating, changing, and exchanging them as YAML. */

import { get, patch, post, remove } from "../api.js";
import { loadAgents } from "./navigation.js";

/**
 * @typedef {{name: string, model: string|null, mode: string, system_prompt: string, greeting: string,
 *   tools: string[]|null, uses_memory: boolean}} AgentForm
 * @typedef {AgentForm & {id: string, notes?: string[]}} AgentDetails
 * @typedef {{name: string, description: string, enabled: boolean, enabled_by_default: boolean,
 *   traits: {needs_consent: boolean}}} Tool
 */

/** @type {AgentForm} */
export const NEW_AGENT = { name: "", model: null, mode: "react", system_prompt: "", greeting: "", tools: null, uses_memory: true };

/** Return the tools that a user's own agent may use. @returns {Promise<Tool[]>} */
export const listTools = async () =>
  (await get("/tools")).items.filter((/** @type {Tool} */ tool) => tool.enabled_by_default);

/** @param {string} id @returns {Promise<AgentDetails>} */
export const readAgent = (id) => get(`/agents/${id}`);

/** @param {string|null} id null for a new agent @param {AgentForm} form @returns {Promise<AgentDetails>} */
export async function saveAgent(id, form) {
  const saved = id ? await patch(`/agents/${id}`, form) : await post("/agents", form);
  await loadAgents();
  return saved;
}

/** @param {string} yaml @returns {Promise<AgentDetails>} with notes about what this server lacks */
export async function importAgent(yaml) {
  const made = await post("/agents/import", { yaml });
  await loadAgents();
  return made;
}

/** @param {string} id */
export async function deleteAgent(id) {
  await remove(`/agents/${id}`);
  await loadAgents();
}

/** @param {string} id */
export const exportAddress = (id) => `/api/v1/agents/${id}/export`;
