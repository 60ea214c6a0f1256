/** Code that a new chat does not need at first, in one chunk: reading conversations (half of all code) and dialogs. */

import "../offline/register.js";

export { ImportDialog } from "../importing/ImportDialog.js";
export { PromptsDialog } from "../prompts/PromptsDialog.js";
export { SearchDialog } from "../search/SearchDialog.js";
export { ShareDialog } from "../sharing/ShareDialog.js";
export { AgentsDialog } from "./AgentsDialog.js";
export { ForgetDialog } from "./ForgetDialog.js";
export { Palette } from "./Palette.js";
export { RunPanel } from "./RunPanel.js";
export { ShortcutsDialog } from "./ShortcutsDialog.js";
export { FolderDialog, MoveDialog } from "../folders/FolderDialogs.js";
export { SettingsDialog } from "../settings/SettingsDialog.js";
export { TrashDialog } from "../trash/TrashDialog.js";
export { startDictation, stopDictation } from "../speech/dictation.js";
export { Thread } from "./Thread.js";
