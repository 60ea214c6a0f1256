"""Forgetting, each time in one transaction: a walk along the keys by which what is derived names its sources. What lies
outside the database is returned as leftovers, for `services` to remove after the commit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, QuerySet

from agents.tools.registry import READING_WHAT_IS_KEPT
from chatapp.accounts.models import User
from chatapp.compaction.models import Compaction
from chatapp.conversations import message_values
from chatapp.conversations.models import Conversation, Message
from chatapp.files.actions import delete_offloads_of_tools, delete_stored_results, delete_unshared_attachments
from chatapp.forgetting.actions.clock import begin_forgetting
from chatapp.forgetting.actions.deletion import Leftovers
from chatapp.forgetting.actions.remaking import change_entry, extract_again, retitle, text_left_of
from chatapp.forgetting.copies import (
    blank_events,
    delete_request_texts,
    delete_sent_profiles,
    delete_texts_of_runs,
)
from chatapp.forgetting.models import ForgetProposal, ForgetReceipt
from chatapp.forgetting.selectors.derived import (
    calls_of,
    entries_covering,
    reading_conversations,
    runs_that_read,
    spans_of,
    summaries_covering,
    with_belongings,
)
from chatapp.forgetting.selectors.repeats import Repeats, find_repeats, said_texts
from chatapp.long_term.actions import entries as memory_actions
from chatapp.long_term.actions.profile import forget_lines
from chatapp.long_term.actions.tombstones import raise_tombstones
from chatapp.long_term.models import Consolidation, MemoryEntry
from chatapp.operations import jobs
from chatapp.operations.errors import NotFound
from chatapp.recall.actions.blanking import blank_message, tell_forgotten
from chatapp.recall.actions.indexing import lock_indexes_of, remove_entries
from chatapp.runs.actions.endings import interrupt_run
from chatapp.runs.models import Run, ToolCall
from memory.sentences import bare_sentence, split_sentences

MAX_PROPOSED = 50
STOPPED = "The answer was stopped, because something it may have read was forgotten."
BEGUN_AGAIN = "Something it covers was forgotten meanwhile."
Lines = Mapping[UUID, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Done:
    """A receipt, what is left to do outside the database, and the proposal to forget what repeats it."""

    receipt: ForgetReceipt
    leftovers: tuple[Leftovers, ...]
    ended_runs: tuple[UUID, ...] = ()
    proposal: ForgetProposal | None = None


@dataclass(slots=True)
class Work:
    """One forgetting under way: what goes, and all that names it as a source."""

    user: User
    now: datetime
    repeats: Repeats
    messages: dict[UUID, Message]
    """Blanked."""
    entries: dict[UUID, MemoryEntry]
    """Deleted, or those of `lines` without these."""
    lines: Lines
    cut: dict[UUID, Message] = field(default_factory=dict)
    """They lose the sentences that an entry was made of."""
    copied: dict[UUID, Message] = field(default_factory=dict)
    """They lose what a tool returned of it, or was asked."""
    derived: dict[UUID, MemoryEntry] = field(default_factory=dict)
    runs: dict[UUID, Run] = field(default_factory=dict)
    also_gone: frozenset[UUID] = frozenset()
    """Sources that are deleted elsewhere: a conversation, entries."""
    spared: UUID | None = None
    """The user whose own copies stay: it is taken from others alone."""
    conversations: dict[UUID, Conversation] = field(default_factory=dict)
    days: dict[UUID, set[date]] = field(default_factory=dict)
    removed: Counter[str] = field(default_factory=Counter)
    ended_runs: list[UUID] = field(default_factory=list)
    returned: list[Mapping[str, Any]] = field(default_factory=list)
    """The results of tools that are blanked: what is stored of them goes."""
    files: list[tuple[UUID, str]] = field(default_factory=list)

    @property
    def changed(self) -> dict[UUID, Message]:
        return {**self.messages, **self.cut, **self.copied}

    @property
    def source_ids(self) -> set[UUID]:
        return {*self.messages, *self.cut, *self.entries, *self.derived, *self.also_gone}

    @property
    def homes(self) -> set[UUID]:
        """Where it was said."""
        return {row.conversation_id for row in (*self.messages.values(), *self.cut.values())}

    @property
    def reached(self) -> set[UUID]:
        entries = (*self.entries.values(), *self.derived.values())
        here = {row.conversation_id for row in self.changed.values()}
        here |= {run.conversation_id for run in self.runs.values()}
        return here | {entry.conversation_id for entry in entries if entry.conversation_id}

    def blank(self, row: Message, left: Sequence[dict[str, Any]] = ()) -> None:
        self.note_returned([part for part in row.parts if part not in left])
        blank_message(row, self.now, left)

    def note_returned(self, parts: Iterable[Mapping[str, Any]]) -> None:
        self.returned += [part for part in parts if part["type"] == "tool_result"]

    def follow(self) -> None:
        """Add whatever names what is here as its source, until nothing more does."""
        size = -1
        while size != (size := len(self.runs) + len(self.derived) + len(self.copied)):
            read = runs_that_read(self.source_ids)
            self.runs |= {pk: run for pk, run in read.items() if run.user_id != self.spared}
            for pk, row in self._calls().items():
                if pk not in self.messages and _without_copies(row, self.repeats) != row.parts:
                    self.copied[pk] = row
            said = entries_covering([*self.messages.values(), *self.cut.values()])
            copied = entries_covering(self.copied.values())
            said |= {pk: entry for pk, entry in copied.items() if self.repeats.are_near(entry.text)}
            self.derived |= {pk: entry for pk, entry in said.items() if pk not in self.entries}

    def _calls(self) -> dict[UUID, Message]:
        answers = {run.answer_id: run.answer for run in self.runs.values()}
        return {**answers, **calls_of(answers).in_bulk()}


def _without_copies(row: Message, repeats: Repeats) -> list[dict[str, Any]]:
    """Return the parts of a message whose run has read it: what was answered stays."""
    return [_without_copy(part, repeats) for part in row.parts]


def _without_copy(part: dict[str, Any], repeats: Repeats) -> dict[str, Any]:
    match part["type"]:
        case "tool_result" if part.get("name") in READING_WHAT_IS_KEPT or repeats.are_near(part["text"]):
            return {**part, "text": "", "offload_ref": None} if part["text"] else part
        case "tool_call" if repeats.are_near(part["arguments"]):
            return {**part, "arguments": "{}"}
        case "reasoning" if repeats.are_near(part["text"]):
            return {**part, "text": ""}
    return part


# --- What is chosen, and locked ----------------------------------------------------------------------------


def seek(user: User, message_ids: Collection[UUID], entry_ids: Iterable[UUID], lines: Lines) -> Repeats:
    """Read ahead, with nothing locked: what else says it again."""
    messages = Message.objects.filter(conversation__user=user).in_bulk(list(message_ids))
    said, answered = said_texts(with_belongings(messages).values())
    entries = MemoryEntry.objects.filter(user=user, pk__in=list(entry_ids)).prefetch_related("revisions")
    remembered = [text for entry in entries for text in _said_by(entry, lines)]
    return find_repeats(user.pk, [*said, *remembered], answered=answered, entries=remembered)


def _said_by(entry: MemoryEntry, lines: Lines) -> Sequence[str]:
    """What is forgotten of it: what it says, and said before an edit, or only the chosen lines."""
    if entry.pk in lines:
        return lines[entry.pk]
    return [entry.text, *(revision.text for revision in entry.revisions.all())]


def forget_items(
    *,
    user: User,
    message_ids: Iterable[UUID],
    entry_ids: Iterable[UUID],
    what: str,
    now: datetime,
    lines: Lines | None = None,
    asked_in: UUID | None = None,
    for_good: bool = False,
) -> Done:
    """Messages and memory entries, with everything that names them as a source. Ids that are not the user's, or gone,
    are passed over; NotFound where none is left.

    Of an entry with `lines` only these go. `asked_in` is the message that wished for it, which goes with its answer;
    `for_good` bars it even when its user asks to remember it.
    """
    chosen, entry_ids = {*message_ids}, list(entry_ids)
    if asked_in:
        chosen |= {asked_in, *Message.objects.filter(parent=asked_in).values_list("pk", flat=True)}
    repeats = seek(user, chosen, entry_ids, lines or {})
    with transaction.atomic():
        begin_forgetting(user.pk)
        work = lock_chosen(user, chosen, entry_ids, lines or {}, now, repeats)
        return forget_locked(work, what=what, proposes=asked_in is None, for_good=for_good)


def lock_chosen(
    user: User,
    message_ids: Collection[UUID],
    entry_ids: Iterable[UUID],
    lines: Lines,
    now: datetime,
    repeats: Repeats,
    *,
    beside: Collection[MemoryEntry] = (),
) -> Work:
    """Called once a forgetting has begun. Lock all that is read and written from here on: what is chosen, what names
    it as a source, and the entries `beside` it, which are changed in the same transaction. Raises NotFound."""
    message_ids, entry_ids = set(message_ids), set(entry_ids)
    while True:
        work = _choose(user, message_ids, entry_ids, lines, now, repeats)
        reached = work.reached | {entry.conversation_id for entry in beside if entry.conversation_id}
        reached |= reading_conversations(Conversation.objects.filter(user=user))
        with transaction.atomic():
            held = {*work.entries, *work.derived, *(entry.pk for entry in beside)}
            rows = lock_reached(user.pk, reached, MemoryEntry.objects.filter(pk__in=held), now)
            again = _choose(user, message_ids, entry_ids, lines, now, repeats)
            if again.reached <= reached and {*again.entries, *again.derived} <= held:
                break
            # Said once more meanwhile: whatever was locked is let go, to lock all of it in order.
            transaction.set_rollback(True)
    hold(again, rows)
    again.messages = with_belongings(
        Message.objects.filter(conversation__user=user).in_bulk(list(again.messages))
    )
    return again


def _choose(
    user: User,
    message_ids: Collection[UUID],
    entry_ids: Collection[UUID],
    lines: Lines,
    now: datetime,
    repeats: Repeats,
) -> Work:
    messages = Message.objects.filter(conversation__user=user).in_bulk(list(message_ids))
    entries = MemoryEntry.objects.filter(user=user).in_bulk(list(entry_ids))
    if not messages and not entries:
        raise NotFound
    work = Work(user, now, repeats, with_belongings(messages), entries, lines)
    found = {one.message_id for one in repeats.found if one.role == Message.Role.USER and one.message_id}
    for entry in entries.values() if found else ():
        for span in spans_of(entry):
            made_of = span.filter(pk__in=found, role=Message.Role.USER)
            work.cut |= {row.pk: row for row in made_of if row.pk not in messages}
    work.follow()
    return work


def lock_reached(
    user_id: UUID, conversation_ids: Iterable[UUID], entries: QuerySet[MemoryEntry], now: datetime
) -> list[Conversation]:
    """Lock consolidations, conversations, entries and indexes, in this order as everybody does, rows of one kind in one
    statement. Return the conversations as they are now. Consolidations under way have read it and begin again."""
    rows = Conversation.objects.filter(pk__in=set(conversation_ids))
    users = {user_id, *rows.values_list("user_id", flat=True)}
    active = Consolidation.objects.filter(user__in=users, status__in=Consolidation.ACTIVE)
    under_way = list(active.select_for_update().order_by("pk").values_list("pk", flat=True))
    Consolidation.objects.filter(pk__in=under_way).update(
        status=Consolidation.Status.PENDING, fence=F("fence") + 1, lease_expires_at=now
    )
    locked = list(rows.select_for_update().order_by("pk"))
    list(entries.order_by("pk").select_for_update().values_list("pk"))
    lock_indexes_of(users)
    return locked


def hold(work: Work, rows: Iterable[Conversation]) -> None:
    """Note the conversations that are locked, and stop what goes on there: of an answer that was being written nothing
    is kept that may tell of it."""
    work.conversations = {row.pk: row for row in rows}
    for conversation in work.conversations.values():
        work.ended_runs += _stop_work(conversation, work.now)
    for row in Message.objects.filter(run__in=work.ended_runs):
        if work.repeats.are_near(message_values.text_of(row.parts)):
            work.note_returned(row.parts)
            row.parts = []
            work.copied[row.pk] = row


def _stop_work(conversation: Conversation, now: datetime) -> list[UUID]:
    """What answers or summarises here may have read it: neither may write any more. Return the ended runs."""
    runs = list(Run.objects.filter(conversation=conversation, status__in=Run.ACTIVE))
    ended = [
        run.pk for run in runs if interrupt_run(run_id=run.pk, fence=run.fence, now=now, message=STOPPED)
    ]
    stopped = Compaction.objects.filter(conversation=conversation, status__in=Compaction.ACTIVE).update(
        status=Compaction.Status.FAILED, error=BEGUN_AGAIN, finished_at=now, lease_expires_at=None
    )
    if stopped:
        jobs.wake_worker("chatapp.compaction.tasks.plan_compaction", str(conversation.pk))
    conversation.refresh_from_db()
    return ended


# --- The walk ------------------------------------------------------------------------------------------------


def forget_locked(work: Work, *, what: str, proposes: bool = True, for_good: bool = False) -> Done:
    receipt = ForgetReceipt.objects.create(user=work.user, what=what, at=work.now)
    said, _ = said_texts([*work.messages.values()])
    learned = [text for entry in work.entries.values() for text in _said_by(entry, work.lines)]
    work.removed["tombstones"] = raise_tombstones(
        work.user.pk, [*said, *learned], work.now, for_good=for_good, receipt=receipt
    )
    proposal = propose(work) if proposes else None
    hashes = _forget_said(work)
    forget_derived(work)
    receipt.removed = {name: count for name, count in sorted(work.removed.items()) if count}
    receipt.save(update_fields=["removed"])
    return Done(receipt, leftovers_of(work, hashes), tuple(work.ended_runs), proposal)


def leftovers_of(work: Work, hashes: tuple[str, ...] = ()) -> tuple[Leftovers, ...]:
    """Return what is left on disk, by user."""
    own = Leftovers(work.user.pk, tuple(sorted(work.days.pop(work.user.pk, ()))), hashes, tuple(work.files))
    return (own, *(Leftovers(user_id, tuple(sorted(days))) for user_id, days in work.days.items()))


def _forget_said(work: Work) -> tuple[str, ...]:
    """The words themselves. Return the hashes of bytes that nobody may need now."""
    hashes = delete_unshared_attachments(work.messages)
    for row in work.messages.values():
        work.blank(row)
    for row in work.cut.values():
        texts = [
            {**part, "text": work.repeats.quotes.take_out(part["text"])}
            for part in row.parts
            if "text" in part
        ]
        others = [part for part in row.parts if "text" not in part]
        blank_message(row, work.now, [*(part for part in texts if part["text"].strip()), *others])
    remove_entries(work.user.pk, list(work.entries))
    for entry in work.entries.values():
        work.days.setdefault(entry.user_id, set()).add(entry.day)
        change_entry(
            entry, _without_lines(entry.text, work.lines[entry.pk]) if entry.pk in work.lines else ""
        )
    work.removed.update(
        messages=len(work.messages),
        messages_redacted=len(work.cut),
        files=len(hashes),
        entries=len(work.entries) - len(work.lines),
        entries_redacted=len(work.lines),
    )
    return hashes


def _without_lines(text: str, lines: Collection[str]) -> str:
    gone = {bare_sentence(line) for line in lines}
    left = "".join(line for line in text.splitlines(keepends=True) if bare_sentence(line) not in gone)
    return "".join(one for one in split_sentences(left) if bare_sentence(one) not in gone).strip()


def forget_derived(work: Work) -> None:
    """All that names it as a source, in the conversations that are locked."""
    is_copy = work.repeats.are_near
    emptied = _blank_calls(work)
    for row in work.copied.values():
        work.blank(row, _without_copies(row, work.repeats))
    for entry in work.derived.values():
        work.days.setdefault(entry.user_id, set()).add(entry.day)
        change_entry(entry, text_left_of(entry, work.messages.keys(), is_copy))
    covering = summaries_covering([*work.messages.values(), *work.cut.values()])
    beside = [row for row in summaries_covering(work.copied.values()) if is_copy(row.summary)]
    summaries = {row.pk: row for row in (*covering, *beside)}
    work.removed["summaries_redacted"] += extract_again(list(summaries.values()), work.now, is_copy)
    work.removed["messages_redacted"] += len(work.copied)
    work.removed["entries_redacted"] += len(work.derived)
    work.removed["events"] += blank_events(
        list(work.conversations), {*work.runs, *emptied}, emptied, work.source_ids, is_copy
    )
    work.removed["requests"] += delete_request_texts(work.homes) + delete_texts_of_runs(list(work.runs))
    _delete_stored(work)
    work.removed["offloaded"] += len(work.files)
    for conversation in work.conversations.values():
        retitle(conversation, work.now, is_copy)
        here = [row for row in work.changed.values() if row.conversation_id == conversation.pk]
        tell_forgotten(conversation, here, work.now)
    users = {work.user.pk, *(row.owner_id for row in work.conversations.values())}
    _forget_in_profiles(work, users - {work.spared})
    for user_id, days in work.days.items():
        memory_actions.mark_days_stale(user_id, days)


def _blank_calls(work: Work) -> set[UUID]:
    """What runs planned, asked tools and got: all of it where their answer goes, else what tells of it. Return the runs
    whose answers go."""
    answers = set(Run.objects.filter(answer__in=work.messages).values_list("pk", flat=True))
    read = {*work.runs, *answers}
    for call in ToolCall.objects.filter(run__in=read):
        asked_or_got = f"{call.arguments}\n" + "\n".join(message_values.results_in(call.result))
        is_reading = call.name in READING_WHAT_IS_KEPT
        if call.run_id in answers or is_reading or work.repeats.are_near(asked_or_got):
            work.note_returned(call.result)
            call.arguments, call.result = "{}", []
            call.save(update_fields=["arguments", "result"])
    for run in Run.objects.filter(pk__in=read):
        if run.pk in answers or work.repeats.are_near(str(run.plan or "")):
            run.plan = None
        run.error_detail = ""
        run.save(update_fields=["plan", "error_detail"])
    copied_in = {run.conversation_id for run in work.runs.values()}
    work.files += delete_offloads_of_tools(work.homes | copied_in, READING_WHAT_IS_KEPT)
    return answers


def _delete_stored(work: Work) -> None:
    """What is stored of the results that are blanked. An image, or what was shortened later to make room, is named by
    no result: all such of these tools go."""
    gone = {part["offload_ref"] for part in work.returned if part.get("offload_ref")}
    tools = {part["name"] for part in work.returned if part.get("name")}
    calls = ToolCall.objects.filter(run__conversation__in=list(work.conversations), name__in=tools)
    left = {
        part.get("offload_ref")
        for result in calls.values_list("result", flat=True)
        for part in result
        if part.get("text")
    }
    work.files += delete_stored_results(list(work.conversations), tools, gone=gone, left=left - {None})


def _forget_in_profiles(work: Work, user_ids: Collection[UUID]) -> None:
    """Drop the lines that were made of it; their other sources are read anew."""
    ids = {str(pk) for pk in (*work.entries, *work.derived, *work.also_gone)}

    def is_gone(line: str, sources: Sequence[str]) -> bool:
        return not ids.isdisjoint(sources) or work.repeats.quotes.are_in(line)

    for user_id in sorted(user_ids):
        Consolidation.objects.filter(user=user_id).exclude(error="").update(error="")
        count, sources = forget_lines(user_id, is_gone, work.now)
        if count:
            MemoryEntry.objects.filter(user=user_id, pk__in=sources).update(consolidated_at=None)
            work.removed["requests"] += delete_sent_profiles([user_id])
        if user_id == work.user.pk:
            work.removed["profile_lines"] += count


# --- What the user is asked --------------------------------------------------------------------------------


def propose(work: Work) -> ForgetProposal | None:
    """Answers of runs that had recalled it, and what repeats it and was not chosen."""
    ids = {one.message_id for one in work.repeats.found if one.message_id}
    if work.entries:
        ids |= work.repeats.alike & _said_in(work.entries.values())
    answers = {run.answer_id for run in work.runs.values() if run.question_id not in work.messages}
    near = {run.answer_id for run in work.runs.values()} - answers
    children = Message.objects.filter(parent__in=work.messages, role=Message.Role.ASSISTANT)
    for row in (*Message.objects.filter(pk__in=near), *children):
        if work.repeats.are_near(message_values.text_of(row.parts)):
            answers.add(row.pk)
    rows = Message.objects.filter(pk__in=ids | answers, conversation__user=work.user).exclude(parts=[])
    newest = rows.exclude(pk__in=[*work.messages, *work.cut]).order_by("-created_at", "-position", "-pk")
    items = [{"kind": "message", "id": str(pk)} for pk in newest.values_list("pk", flat=True)[:MAX_PROPOSED]]
    if not items:
        return None
    return ForgetProposal.objects.create(user=work.user, items=items[::-1], created_at=work.now)


def _said_in(entries: Iterable[MemoryEntry]) -> set[UUID]:
    spans = [span.filter(role=Message.Role.USER) for entry in entries for span in spans_of(entry)]
    return {pk for span in spans for pk in span.values_list("pk", flat=True)}
