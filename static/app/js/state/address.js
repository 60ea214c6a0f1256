/** Addresses of search results and recalled texts. Pure functions. */

/** @param {Record<string, any>} source @param {string|null} [openId] the conversation for a source without one */
export function addressOfSource(source, openId = null) {
  if (source.message_id) return `/c/${source.conversation_id ?? openId}#m-${source.message_id}`;
  if (source.day) return `/memory?day=${encodeURIComponent(source.day)}`;
  return source.conversation_id ? `/c/${source.conversation_id}` : "/memory";
}

/**
 * Return whether another user said it, so that the current user has no page for it.
 * @param {Record<string, any>} source
 */
export const isShared = (source) => source.kind === "shared";

/**
 * Return the ids in `/c/<id>#m-<message>`; null for a missing one.
 * @param {{pathname: string, hash: string}} address @returns {{id: string|null, messageId: string|null}}
 */
export function placeIn({ pathname, hash }) {
  const id = /^\/c\/([^/]+)\/?$/.exec(pathname)?.[1] ?? null;
  return { id, messageId: id === null ? null : (/^#m-(.+)$/.exec(hash)?.[1] ?? null) };
}
