/**
 * Types of the state. Types from the server keep its names; fields that only the page has are camelCase.
 *
 * @typedef {{id: string, email: string, name: string, is_staff: boolean}} User
 * @typedef {{max_upload_bytes: number, max_message_chars: number, consent_timeout_s: number}} Limits
 * @typedef {{id: string, name: string, is_default: boolean, is_offered: boolean, demo: boolean, context_size: number,
 *   max_output_tokens: number}} Model
 * @typedef {{id: string, name: string, mode: string, model: string|null, greeting: string, description?: string,
 *   is_default: boolean, is_mine?: boolean, shares_memory?: boolean}} Agent
 * @typedef {"react"|"plan"|"auto"} Mode
 * @typedef {{id: string, message_id: string}} ActiveRun
 * @typedef {{id: string, branch: string, title: string, model: string|null, agent: string|null, folder?: string|null,
 *   mode: Mode|null, memory: "on"|"paused", shared_memory_of: string|null, pinned: boolean, archived: boolean,
 *   temporary: boolean, last_seq: number, last_activity_at: string, created_at: string, expires_at: string|null,
 *   active_run: ActiveRun|null, message_count: number, unread: boolean, waiting_calls: number}} Conversation
 * @typedef {{input_tokens: number, output_tokens: number, cached_tokens?: number, compaction_tokens?: number,
 *   cost?: number|null}} Usage
 * @typedef {{category: string, message: string, detail?: string}} RunError
 * @typedef {{id: string, status: string, error?: RunError|null, mode?: string|null}} RunInfo
 * @typedef {{file_id: string, mime_type: string, width: number, height: number}} Image
 * @typedef {{file_id: string, mime_type: string, name: string, size_bytes: number}} FilePart
 * @typedef {{callId: string, name: string, state: string, step: number, planStep: string|null, hookId: string|null,
 *   arguments: string, isInputCut: boolean, preview: string, isCut: boolean, offloadRef: string|null,
 *   askedAt: string|null, durationMs: number|null}} ToolCall
 * @typedef {{source: Record<string, any>, tokens: number, preview: string}} RecalledItem
 * @typedef {{seq: number, kind: string, text: string}} Notice something that the run or a hook did by itself
 * @typedef {{entryId: string, day: string, preview: string, isProposed: boolean}} MemoryNote
 * @typedef {"streaming"|"complete"|"cut"|"stopped"|"failed"|"interrupted"} MessageStatus
 *
 * `chars` counts Unicode code points, as the server's offsets do. `hasGap`: text before a received delta is missing.
 * @typedef {{id: string, role: string, status: MessageStatus, position: number, parent: string|null,
 *   model: string|null, usage: Usage|null, createdAt: string, text: string, chars: number, hasGap: boolean,
 *   reasoning: string, reasoningChars: number, thinkingSince: string|null, thoughtForS: number|null,
 *   siblings: string[], images: Image[], files: FilePart[], tools: ToolCall[], recalled: RecalledItem[],
 *   recalledCount: number, isInjected: boolean, isEdited: boolean, isPinned: boolean, isForgotten: boolean,
 *   forgetProposal: string|null, notices: Notice[], plan: import("./plan.js").PlanStep[], notes: MemoryNote[],
 *   run: RunInfo|null}} ViewMessage
 *
 * @typedef {{id: string, status: string, strategy: string, summary: string|null, message_count: number,
 *   first_position: number|null, last_position: number, tokens_before: number, tokens_after: number,
 *   is_extract: boolean, fallback_reason?: string|null, usage?: {model?: string|null, cost?: number|null}}} Compaction
 * @typedef {{system: number, profile: number, tools: number, summary: number, history: number,
 *   recall: number}} ContextParts
 * @typedef {{used: number, budget: number, parts: ContextParts, isExact: boolean,
 *   waiting: Compaction|null}} ContextUse
 * @typedef {{id: string, name: string, url: string, width: number, height: number, isImage: boolean,
 *   sizeBytes: number}} Attached
 * @typedef {{clientId: string, text: string, attached: Attached[], messageId: string|null}} Pending
 *
 * The place that the reader asked for: a message, or the newest one if null.
 * @typedef {{messageId: string|null}} ScrollTarget
 *
 * @typedef {{id: string, status: "loading"|"ready"|"missing"|"failed", error: string, lastSeq: number,
 *   branch: string|null, needsReplay: boolean, isStale: boolean, ids: string[], messages: Record<string, ViewMessage>,
 *   olderCursor: string|null, newerCursor: string|null, isLoadingOlder: boolean, isLoadingNewer: boolean,
 *   scrollTarget: ScrollTarget|null, run: ActiveRun|null, liveAnswer: string|null, compactions: Compaction[],
 *   context: ContextUse|null, pending: Pending[]}} Thread
 *
 * @typedef {{ids: string[], nextCursor: string|null, isLoading: boolean, isLoaded: boolean, error: string,
 *   query: string, showsArchived: boolean}} Listing
 * @typedef {{name: string, run: () => void, about?: string}} ToastAction e.g. an undo; `about`: the changed thing, of
 *   which only the last change can be undone
 * @typedef {{id: number, text: string, tone: "plain"|"bad", action?: ToastAction}} Toast
 * @typedef {{sidebar: boolean, panel: "context"|"run"|null, panelRun: string|null, dialog: Record<string, any>|null,
 *   image: string|null, toasts: Toast[]}} Ui
 * @typedef {"connecting"|"open"|"lost"} ConnectionState
 *
 * @typedef {{connection: ConnectionState, models: Model[], modelsState: "loading"|"ready"|"failed",
 *   chosenModel: string|null, isTemporary: boolean, agents: Agent[], chosenAgent: string|null, chosenMode: Mode|null,
 *   currentId: string|null, conversations: Record<string, Conversation>, listing: Listing,
 *   threads: Record<string, Thread>, ui: Ui}} State
 *
 * Everything that happens: an event of the server (`message.created`, …) or of the page (`thread/loaded`, …).
 * @typedef {{type: string, [field: string]: any}} AppEvent
 */

export {};
