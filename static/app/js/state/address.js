/** Where something that was found or recalled stands. Pure. */

/** @param {Record<string, any>} source @param {string|null} [openId] the conversation of a source that names none */
export function addressOfSource(source, openId = null) {
  if (source.message_id) return `/c/${source.conversation_id ?? openId}#m-${source.message_id}`;
  if (source.day) return `/memory?day=${encodeURIComponent(source.day)}`;
  return source.conversation_id ? `/c/${source.conversation_id}` : "/memory";
}

/** Whether another user said it: it has no place of one's own. @param {Record<string, any>} source */
export const isShared = (source) => source.kind === "shared";

/**
 * What `/c/<id>#m-<message>` names; null where it names none.
 * @param {{pathname: string, hash: string}} address @returns {{id: string|null, messageId: string|null}}
 */
export function placeIn({ pathname, hash }) {
  const id = /^\/c\/([^/]+)\/?$/.exec(pathname)?.[1] ?? null;
  return { id, messageId: id === null ? null : (/^#m-(.+)$/.exec(hash)?.[1] ?? null) };
}
