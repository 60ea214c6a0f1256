"""Rewrites what was made of forgotten texts and other sources (summaries, entries, titles, profiles), and removes
copies from runs. Events and requests refer to the texts of rows, so they need no rewriting.

New texts can be prepared without locks. Write them in the forgetting transaction, with the conversations and entries
locked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from agents.requests.manifest import OwnText, read_manifest
from agents.tools.registry import TOOLS_READING_STORED_DATA
from chatapp.compaction.models import Compaction
from chatapp.context.models import RequestText, SentRequest
from chatapp.conversations import message_values
from chatapp.conversations.actions.conversations import title_from, updated_event
from chatapp.conversations.branches import messages_between
from chatapp.conversations.message_values import MESSAGE_COLUMNS, messages_from_columns, text_of
from chatapp.conversations.models import Conversation, Message
from chatapp.files.actions import delete_stored_results
from chatapp.forgetting.selectors.derived import Span, spans_of
from chatapp.long_term.actions.entries import delete_entries
from chatapp.long_term.actions.profile import forget_lines
from chatapp.long_term.models import Consolidation, EntryRevision, MemoryEntry
from chatapp.operations import clock
from chatapp.operations.database.statements import update_rows
from chatapp.operations.workers import jobs
from chatapp.realtime import event_log
from chatapp.recall.actions.indexing import index_entries
from chatapp.recall.actions.removal import hide_sources, remove_sources
from chatapp.recall.analysis import vocabulary
from chatapp.runs.models import Run, ToolCall
from memory.language.sentences import split_sentences
from memory.long_term.new_sentences import KnownSentences
from memory.long_term.tombstones import Tombstones
from memory.strategies.registry import strategy_named
from memory.summaries.extractive import QUICK, extract_summary
from memory.summaries.summary import EARLIER_TRUNCATED
from memory.tokens import estimate_text, text_message
from memory.types import Message as MessageValue

LEAST_TOKENS = 64
FORGOTTEN = "something it covers was forgotten"
READ_FOR_ENTRY = 200
"""How many of the newest user messages of a span are searched for the sentences of an entry."""
NOTHING_SAID = ("system", "tools")
"""The sources of request texts without conversation content."""
Parts = list[dict[str, Any]]
IsCopy = Callable[[str], bool]


# --- Summaries ---------------------------------------------------------------------------------------------


def make_extracts(rows: Sequence[Compaction], gone: Collection[UUID]) -> dict[UUID, str]:
    """Return for each summary an extract of its span without the messages `gone`. In `rows` each summary must come
    after the one it was built on."""
    said: dict[UUID, str] = {}
    for row in rows:
        previous = said.get(row.previous_id) if row.previous_id else None
        if previous is None and row.previous is not None:
            previous = row.previous.summary
        is_cleared = row.strategy == Compaction.CLEARED
        said[row.pk] = row.summary if is_cleared else _extract(row, previous or "", gone)
    return said


def extract_again(
    rows: Sequence[Compaction], extracts: Mapping[UUID, str], now: datetime, is_copy: IsCopy
) -> None:
    """Store these extracts in place of the summaries, until a worker has written new ones."""
    for row in rows:
        row.summary = extracts[row.pk]
        row.summary_tokens = estimate_text(row.summary)
        row.reminder = row.error = ""
        row.keep_hint = "" if is_copy(row.keep_hint) else row.keep_hint
        row.fallback_reason = FORGOTTEN if row.summary else ""
        # Include an undone summary, because it may be redone.
        is_rewritten = row.status in (Compaction.Status.DONE, Compaction.Status.UNDONE) and _was_summarised(
            row
        )
        row.rewrite_since, row.rewrite_after = now if is_rewritten else None, None
        if is_rewritten:
            jobs.wake_worker("chatapp.compaction.tasks.rewrite_summary", str(row.pk))
    columns = ("summary", "summary_tokens", "reminder", "error", "keep_hint", "fallback_reason")
    update_rows(rows, *columns, "rewrite_since", "rewrite_after")


def _was_summarised(row: Compaction) -> bool:
    return row.strategy != Compaction.CLEARED and strategy_named(row.strategy).writes_summaries


def _extract(row: Compaction, previous: str, gone: Collection[UUID]) -> str:
    if not row.summary and row.status != Compaction.Status.DONE:
        return ""
    before = [text_message("assistant", previous)] if previous and previous != EARLIER_TRUNCATED else []
    limit = max(LEAST_TOKENS, row.summary_tokens)
    extract = extract_summary([*before, *_sample(row, gone)], limit, QUICK)
    for speaker in ("User", "Assistant", "Tool"):  # the previous summary already has these labels
        extract = extract.replace(f"Assistant: {speaker}: ", f"{speaker}: ")
    return extract or EARLIER_TRUNCATED


def _sample(row: Compaction, gone: Collection[UUID]) -> list[MessageValue]:
    """Return as many messages of the span as an extract reads: half of them the newest, half sampled from the rest."""
    span = messages_between(row.branch, row.first_position, row.last_position)
    places = span.exclude(parts=[]).order_by("position").values_list("position", "pk")
    positions = [position for position, pk in places if pk not in gone]
    half = QUICK.messages // 2
    older, newest = positions[:-half], positions[-half:]
    chosen = [*older[:: max(1, len(older) // half)][:half], *newest]
    columns = span.filter(position__in=chosen).order_by("position").values_list(*MESSAGE_COLUMNS)
    return messages_from_columns(list(columns))


# --- Entries -----------------------------------------------------------------------------------------------


def texts_left_of(
    entries: Collection[MemoryEntry],
    gone: Collection[UUID],
    is_copy: IsCopy,
    barred: Mapping[UUID, Tombstones],
) -> dict[UUID, str]:
    """Return by entry id the text to keep: sentences that other user messages in its spans say, and sentences that do
    not copy the forgotten text, except those `barred` for its user."""
    spans = spans_of(entries)
    return {
        entry.pk: _text_left_of(entry, spans.get(entry.pk, []), gone, is_copy, barred[entry.user_id])
        for entry in entries
    }


def _text_left_of(
    entry: MemoryEntry,
    spans: Sequence[Span],
    gone: Collection[UUID],
    is_copy: IsCopy,
    barred: Tombstones,
) -> str:
    """Return the sentences to keep. If its spans have no messages left, only an entry written by the user keeps any."""
    left = [
        row
        for span in spans
        for row in span.messages()
        .filter(role=Message.Role.USER)
        .exclude(pk__in=gone)
        .exclude(parts=[])
        .order_by("-position")[:READ_FOR_ENTRY]
    ]
    known = KnownSentences(vocabulary, (("", text_of(row.parts)) for row in left))
    may_stay = bool(left) or entry.author == MemoryEntry.Author.USER
    kept = [
        sentence
        for sentence in split_sentences(entry.text)
        if not barred.cover(sentence)
        and (known.find(sentence) is not None or (may_stay and not is_copy(sentence)))
    ]
    return "".join(kept).strip()


def change_entries(
    entries: Collection[MemoryEntry], texts: Mapping[UUID, str], *, hides: bool = False
) -> None:
    """Store the new texts of entries, delete entries left empty, and delete all former revisions. With `hides`, only
    hide the deleted entries from search; the caller removes them from the index later."""
    emptied = [entry for entry in entries if not texts[entry.pk].strip()]
    changed = [entry for entry in entries if texts[entry.pk].strip()]
    if emptied:
        (hide_sources if hides else remove_sources)([entry.pk for entry in emptied])
        for user_id, own in _by_user(emptied).items():
            delete_entries(user_id, [entry.pk for entry in own])
    if not changed:
        return
    EntryRevision.objects.filter(entry__in=changed).delete()
    for entry in changed:
        entry.text = texts[entry.pk]
        entry.revision += 1
        entry.consolidated_at, entry.updated_at = None, clock.now()
    update_rows(changed, "text", "revision", "consolidated_at", "updated_at")
    for user_id, own in _by_user(changed).items():
        index_entries(user_id, [entry for entry in own if entry.state == MemoryEntry.State.KEPT])


def _by_user(entries: Collection[MemoryEntry]) -> dict[UUID, list[MemoryEntry]]:
    return {
        user_id: [entry for entry in entries if entry.user_id == user_id]
        for user_id in sorted({entry.user_id for entry in entries})
    }


# --- Titles and profiles -----------------------------------------------------------------------------------


def is_named_after(title: str, made_of: int | None, is_copy: IsCopy, changed: Sequence[Message] = ()) -> bool:
    """Return whether a title copies the forgotten text, or was made of one of the `changed` messages, which lost words.
    `made_of` is the last position it was made of."""
    return is_copy(title) or (made_of is not None and any(row.position <= made_of for row in changed))


def retitle(
    conversation: Conversation, now: datetime, is_copy: IsCopy, changed: Sequence[Message] = ()
) -> None:
    """Replace a title that `is_named_after` forgotten text by one from the first message left, and drop waiting notes
    of hooks that repeat the text."""
    waiting = conversation.hook_state.get("waiting", [])
    left = [note for note in waiting if not is_copy(" ".join(map(str, note.values())))]
    tells = is_named_after(conversation.title, conversation.title_made_of, is_copy, changed)
    if not tells and len(left) == len(waiting):
        return
    conversation.hook_state = {**conversation.hook_state, "waiting": left}
    if tells:
        said = conversation.messages.filter(role=Message.Role.USER).exclude(parts=[]).order_by("position")
        first = text_of(parts) if (parts := said.values_list("parts", flat=True).first()) else ""
        conversation.title = "" if is_copy(first) else title_from(first)
        conversation.title_made_of = None
    columns = ["title", "title_made_of", "hook_state"]
    event_log.append(conversation, updated_event(conversation, now), changed=columns)


def forget_in_profile(user_id: UUID, gone: Collection[UUID], is_quote: IsCopy, now: datetime) -> int:
    """Drop profile lines that were made of the entries `gone` or quote the forgotten text, and have their other sources
    consolidated again. Return how many."""
    ids = {str(pk) for pk in gone}
    # A provider's error may quote the request.
    Consolidation.objects.filter(user=user_id).exclude(error="").update(error="")
    count, sources = forget_lines(
        user_id, lambda line, made_of: not ids.isdisjoint(made_of) or is_quote(line), now
    )
    if count:
        MemoryEntry.objects.filter(user=user_id, pk__in=sources).update(consolidated_at=None)
    return count


# --- Copies in runs ----------------------------------------------------------------------------------------


def without_copies(parts: Parts, is_copy: IsCopy) -> Parts:
    """Return the parts of a message without copies in tool calls, tool results and reasoning. Answer text stays."""
    return [_without_copy(part, is_copy) for part in parts]


def _without_copy(part: dict[str, Any], is_copy: IsCopy) -> dict[str, Any]:
    match part["type"]:
        # These tools read stored content and may paraphrase it, so no part of their result is known to be clean.
        case "tool_result" if part.get("name") in TOOLS_READING_STORED_DATA or is_copy(part["text"]):
            return {**part, "text": "", "offload_ref": None} if part["text"] else part
        case "tool_call" if is_copy(part["arguments"]):
            return {**part, "arguments": "{}"}
        case "reasoning" if is_copy(part["text"]):
            return {**part, "text": ""}
    return part


def blank_runs(
    read: Collection[UUID], answering: Collection[UUID], is_copy: IsCopy
) -> list[Mapping[str, Any]]:
    """Blank the plans, tool calls and results of the runs `answering`, whose answers are forgotten, and copies in the
    runs that have `read` forgotten text. Return the tool results that are gone."""
    own = ToolCall.objects.filter(run__in=answering)
    returned = [part for result in own.values_list("result", flat=True) for part in result]
    own.update(arguments="{}", result=[])
    # The error detail may quote the request, so drop it unseen.
    Run.objects.filter(pk__in=answering).update(plan=None, error_detail="")
    copying = calls_repeating(read, is_copy)
    for call in copying:
        returned += call.result
        call.arguments, call.result = "{}", []
    update_rows(copying, "arguments", "result")
    planned = [run for run in Run.objects.filter(pk__in=read) if run.plan or run.error_detail]
    for run in planned:
        run.plan = None if is_copy(str(run.plan or "")) else run.plan
        run.error_detail = ""
    update_rows(planned, "plan", "error_detail")
    return [part for part in returned if part["type"] == "tool_result"]


def calls_repeating(run_ids: Collection[UUID], is_copy: IsCopy) -> list[ToolCall]:
    """Return the tool calls of these runs that may contain the forgotten text."""
    return [call for call in ToolCall.objects.filter(run__in=run_ids) if _tells(call, is_copy)]


def _tells(call: ToolCall, is_copy: IsCopy) -> bool:
    asked_or_got = (call.arguments, *message_values.results_in(call.result))
    return call.name in TOOLS_READING_STORED_DATA or is_copy("\n".join(asked_or_got))


def delete_stored_copies(
    conversation_ids: Collection[UUID], returned: Iterable[Mapping[str, Any]]
) -> list[tuple[UUID, str]]:
    """Delete the offloads of the removed results `returned`. Return (conversation id, file name) of files unused now.

    No result names an image or a result shortened later, so all unreferenced offloads of these tools are deleted.
    """
    parts = list(returned)
    gone = {str(part["offload_ref"]) for part in parts if part.get("offload_ref")}
    tools = {str(part["name"]) for part in parts if part.get("name")}
    if not parts:
        return []
    calls = ToolCall.objects.filter(run__conversation__in=conversation_ids, name__in=tools)
    stored = [part for result in calls.values_list("result", flat=True) for part in result]
    left = {str(part["offload_ref"]) for part in stored if part.get("text") and part.get("offload_ref")}
    return delete_stored_results(conversation_ids, tools, gone=gone, left=left)


def request_texts(conversation_ids: Collection[UUID]) -> QuerySet[RequestText]:
    """Return the texts stored for these conversations' requests, except those without conversation content."""
    return RequestText.objects.filter(conversation__in=conversation_ids).exclude(source__in=NOTHING_SAID)


def texts_of_runs(run_ids: Collection[UUID]) -> QuerySet[RequestText]:
    """Return the texts stored for the requests of these runs, except those without conversation content."""
    requests = SentRequest.objects.filter(run__in=run_ids).values_list("run__conversation", "manifest")
    hashes: dict[UUID, set[str]] = {}
    for home, manifest in requests:
        own = [piece for piece in read_manifest(manifest).pieces if isinstance(piece, OwnText)]
        hashes.setdefault(home, set()).update(piece.text_sha256 for piece in own)
    named = Q(pk=None)
    for home, some in hashes.items():
        named |= Q(conversation=home, sha256__in=some)
    return RequestText.objects.filter(named).exclude(source__in=NOTHING_SAID)


def sent_profiles(user_id: UUID) -> QuerySet[RequestText]:
    """Return the profile texts stored for the user's requests."""
    return RequestText.objects.filter(conversation__user=user_id, source="profile")
