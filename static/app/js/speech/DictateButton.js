/** Starts and stops dictation. Renders nothing if the browser has no speech recognition. */

import { Icon } from "../components/icons.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { isListening, Recognition } from "./store.js";

export function DictateButton() {
  if (!Recognition) return null;
  const isOn = isListening.value;
  const toggle = async () => {
    const { startDictation, stopDictation } = await import("../components/later.js");
    if (isOn) stopDictation();
    else startDictation();
  };
  return html`<button type="button" class=${`icon-button ${isOn ? "is-listening" : ""}`} aria-label=${isOn ? t("Stop dictating") : t("Dictate")}
    title=${isOn ? t("Stop dictating") : t("Dictate. Some browsers send your speech to their vendor.")} onClick=${toggle}><${Icon} name="microphone" /></button>`;
}
