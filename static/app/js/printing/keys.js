/** Ctrl+P prints the whole chat, because the browser's own print contains only what is loaded. */

import { currentConversation } from "../state/store.js";

export function startPrintKey() {
  addEventListener("keydown", (event) => {
    const isPrint = (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && event.key.toLowerCase() === "p";
    const conversation = currentConversation.value;
    if (!isPrint || !conversation || event.defaultPrevented) return;
    event.preventDefault();
    printWhole(conversation);
  });
}

/** @param {{id: string, title: string}} conversation */
export const printWhole = (conversation) => import("./print.js").then((module) => module.printConversation(conversation));
