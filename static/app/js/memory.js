/** Starts the memory page. */

import { render } from "preact";
import { startMemory } from "./commands/memory.js";
import { loadMemorySettings } from "./commands/memory_settings.js";
import { startSession } from "./commands/session.js";
import { MemoryPage } from "./components/memory/MemoryPage.js";
import { html } from "./html.js";

startSession();
startMemory();
loadMemorySettings();
render(html`<${MemoryPage} />`, /** @type {Element} */ (document.getElementById("app")));
