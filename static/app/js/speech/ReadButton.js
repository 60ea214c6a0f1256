/** Reads an answer aloud, or stops. Renders nothing if the browser has no speech synthesis. */

import { Icon } from "../components/icons.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { canRead, readAloud, readId, stopReading } from "./reading.js";

/** @param {{message: {id: string, text: string}}} props */
export function ReadButton({ message }) {
  if (!canRead) return null;
  const isRead = readId.value === message.id;
  const name = isRead ? t("Stop reading") : t("Read aloud");
  return html`<button type="button" class="icon-button is-small" aria-label=${name} title=${name}
    onClick=${() => (isRead ? stopReading() : readAloud(message))}><${Icon} name=${isRead ? "stop" : "speaker"} size=${16} /></button>`;
}
