/** Starts the memory page. */

import { render } from "preact";
import { MemoryPage } from "./components/MemoryPage.js";
import { html } from "./html.js";

const day = new URLSearchParams(location.search).get("day");

render(html`<${MemoryPage} day=${day} />`, /** @type {Element} */ (document.getElementById("app")));
