/** Render an offer of notifications. The browser's own prompt appears only after a yes here. */

import { Icon } from "../components/icons.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { allowNotifications, refuseNotifications } from "./store.js";

export const NotifyOffer = () => html`<p class="banner is-quiet" role="status"><${Icon} name="clock" size=${16} />${t("Get a notification when an answer is ready or waits for you while you are elsewhere?")}
  <button type="button" class="link" onClick=${allowNotifications}>${t("Notify me")}</button>
  <button type="button" class="link" onClick=${refuseNotifications}>${t("No, thanks")}</button></p>`;
