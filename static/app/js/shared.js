/** Starts the page of a share link. */

import { render } from "preact";
import { html } from "./html.js";
import { SharedPage } from "./sharing/SharedPage.js";

const given = JSON.parse(document.getElementById("shared")?.textContent ?? "{}");
render(
  html`<${SharedPage} token=${given.token} isSignedIn=${given.is_signed_in} />`,
  /** @type {Element} */ (document.getElementById("app")),
);
