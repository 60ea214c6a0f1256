"""Imports a file, one conversation after another. Skips what was imported before, so that an interrupted import
continues when it is started again."""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any
from uuid import UUID

from chatapp.accounts.archive import takers
from chatapp.accounts.models import User
from chatapp.features.importing.account import Account, open_account
from chatapp.features.importing.actions import Prepared, store_sources
from chatapp.features.importing.files import Results, files_of, with_files
from chatapp.features.importing.formats import chatgpt, claude, librechat, open_webui, palimpsest
from chatapp.features.importing.memory_actions import store_entries, store_profile
from chatapp.features.importing.selectors import (
    known_conversations,
    messages_at,
    own_conversations,
    own_messages,
    trashed_among,
)
from chatapp.features.importing.settings import settings_of, take_folders, take_presets
from chatapp.features.importing.stream import Progress, entries
from chatapp.features.importing.summaries import summaries_of
from chatapp.features.importing.tree import BranchedMessages, build_branches
from chatapp.features.importing.values import (
    ReadContext,
    ReadForgottenKeys,
    SourceConversation,
    Unreadable,
    key_of_id,
    quoted,
    source_key,
)
from chatapp.files.models import Attachment
from chatapp.operations import clock
from chatapp.operations.database.access import uuid_or_none
from chatapp.operations.database.ids import new_id
from chatapp.operations.database.work_budget import UNBOUNDED, Pace, PacedTransactions
from chatapp.operations.errors import ServiceError

FORMATS = (palimpsest, chatgpt, claude, open_webui, librechat)
# Number of conversations that one query looks up.
CHATS_AT_ONCE = 30
MAX_PROBLEMS = 200
MAX_REASON_CHARS = 300


@dataclass(slots=True)
class Report:
    """The result of an import. `problems` lists the first conversations that could not be read; `left_out` counts what
    was left out of the others."""

    source: str = ""
    conversations: int = 0
    messages: int = 0
    known: int = 0
    problem_count: int = 0
    problems: list[dict[str, Any]] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    def add_problem(self, index: int, reason: str, title: str = "") -> None:
        self.problem_count += 1
        problem = {"index": index, "title": title, "reason": reason[:MAX_REASON_CHARS]}
        insort(self.problems, problem, key=itemgetter("index"))  # some are found out of order
        del self.problems[MAX_PROBLEMS:]

    def as_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "conversations": self.conversations,
            "messages": self.messages,
            "known": self.known,
            "problem_count": self.problem_count,
            # Leave out titles: they are the user's words, and forgetting does not reach this report.
            "problems": [{"index": each["index"], "reason": each["reason"]} for each in self.problems],
            "left_out": dict(sorted(self.left_out.items())),
        }


OnProgress = Callable[[Report, Progress], bool]
"""Called after each conversation. Return False to end the import here and continue it later."""


def import_file(
    *,
    user: User,
    path: Path,
    report: Report,
    tell: OnProgress | None = None,
    beat: Callable[[], None] = lambda: None,
    forgotten: ReadForgottenKeys = frozenset,
    pace: Pace = UNBOUNDED,
) -> bool:
    """Import a file and return whether its end was reached. What is forgotten meanwhile is not stored again. `beat` is
    called while the file is read, even within a long conversation, and may raise. Raise Unreadable if the file is no
    export."""
    progress = Progress(beat=beat)
    with open_account(path) as account:
        importing = _Importing(user, report, PacedTransactions(pace), account, forgotten)
        if account is not None:  # before the conversations, which reference them
            of_agents, no_agents = take_presets(user, account.presets)
            # Folders reference agents, so they come later.
            of_folders, no_folders = take_folders(user, account)
            report.left_out.update(of_agents + of_folders)
        for entry in entries(path, progress):
            if entry.value is None:
                report.add_problem(entry.index, entry.problem)
            else:
                importing.take(entry.index, entry.value)
            if tell is not None and not tell(report, progress):
                # Store conversations that were read, or the next turn would have to read them again.
                importing.store_waiting()
                return False
        importing.store_waiting()
        if forgotten() is None:
            return False
        if account is not None:
            report.left_out.update(no_agents + no_folders)  # once, however often the file is read
            importing.take_memory(account)
            for name, take in takers.items():
                report.left_out.update(take(user, account.said(name)))
    return True


@dataclass(frozen=True, slots=True)
class _Read:
    """A conversation as read from its source. `is_ours` means that the source is an export of this service."""

    index: int
    source: SourceConversation
    is_ours: bool
    key: str
    reading: ReadContext


@dataclass(slots=True)
class _Importing:
    """The import of one file. `account` is the open archive if the file is an account export of this service.

    Small conversations wait for others, so that one query looks them up and one transaction stores them.
    """

    user: User
    report: Report
    turns: PacedTransactions
    account: Account | None
    forgotten: ReadForgottenKeys
    waiting: list[_Read] = field(default_factory=list)
    waiting_rows: int = 0

    def take(self, index: int, value: dict[str, Any]) -> None:
        read = next((each for each in FORMATS if each.matches(value)), None)
        if read is None:
            self.report.add_problem(index, "It is not a conversation in a supported format.")
            return
        self.report.source = self.report.source or read.NAME
        reading = ReadContext(clock.now(), Counter())
        try:
            source = read.read(value, reading)
        except Unreadable as error:
            self.report.add_problem(index, str(error))
            return
        source.left_out = reading.left_out
        # System prompts of another program must not instruct models here.
        if read is not palimpsest:
            _quote_instructions(source)
        self._let_wait(_Read(index, source, read is palimpsest, source_key(read.NAME, source), reading))

    def _let_wait(self, one: _Read) -> None:
        rows, most_rows = len(one.source.messages), self.turns.pace.budget.rows
        # If a chat is in the file twice, store the first before looking up the second.
        if self.waiting_rows + rows > most_rows or any(each.key == one.key for each in self.waiting):
            self.store_waiting()
        self.waiting.append(one)
        self.waiting_rows += rows
        if len(self.waiting) >= CHATS_AT_ONCE or self.waiting_rows >= most_rows:
            self.store_waiting()

    def store_waiting(self) -> None:
        """Store the waiting conversations that are new, in groups that fit one transaction each."""
        known = known_conversations(self.user, [each.key for each in self.waiting])
        ours = [each.source.id for each in self.waiting if each.is_ours]
        own = own_conversations(self.user, ours)
        trashed = trashed_among(self.user, [*known.values(), *map(uuid_or_none, ours)], clock.now())
        # Read this last, so that it contains each conversation that was forgotten before the queries above.
        forgotten = self.forgotten() or frozenset()
        budget, group, rows, chars = self.turns.pace.budget, list[tuple[_Read, Prepared]](), 0, 0
        for one in self.waiting:
            try:
                here = own.get(one.source.id) if one.is_ours else None
                named = {known.get(one.key), uuid_or_none(one.source.id) if one.is_ours else None}
                if here is None and one.key not in forgotten and not trashed.isdisjoint(named):
                    raise Unreadable("It is in your trash. Restore it from there.")
                if here is not None or one.key in known or one.key in forgotten:
                    self._pass_over(one, here, known.get(one.key))
                    continue
                prepared = self._prepare(one)
            except (Unreadable, ServiceError) as error:
                self.report.add_problem(one.index, str(error), one.source.title)
                continue
            messages = prepared.grown.messages
            own_chars = sum(len(message.text) for message in messages)
            if group and (rows + len(messages) > budget.rows or chars + own_chars > budget.chars):
                self._store(group)
                group, rows, chars = [], 0, 0
            group.append((one, prepared))
            rows, chars = rows + len(messages), chars + own_chars
        self._store(group)
        self.waiting, self.waiting_rows = [], 0

    def _pass_over(self, one: _Read, own: UUID | None, imported: UUID | None) -> None:
        self.report.known += 1
        account, source = self.account, one.source
        if account is None or account.wanted.isdisjoint(each.id for each in source.messages):
            return
        # Memory entries may reference its messages, whose ids differ here.
        if own is not None:
            account.conversations[source.id] = own
            account.messages |= own_messages(own, account.wanted)
        elif imported is not None:
            self._note(imported, source, build_branches(source))

    def _prepare(self, one: _Read) -> Prepared:
        source, reading = one.source, one.reading
        grown = build_branches(source)
        files: Mapping[str, Attachment] = {}
        results = Results(new_id(), source, self.account)
        if one.is_ours:  # other sources have no files
            files = files_of(self.user, grown, self.account)
            messages = [results.refer_to(with_files(message, files, reading)) for message in grown.messages]
            grown = replace(grown, messages=messages)
        return Prepared(
            results.conversation_id,
            source,
            one.key,
            grown,
            summaries=summaries_of(source, grown, reading),
            files={str(row.pk): row for row in files.values()},
            settings=settings_of(self.user, source, self.account) if source.settings else {},
            results=results.rows,
            now=reading.now,
        )

    def _store(self, group: Sequence[tuple[_Read, Prepared]]) -> None:
        # Check each time: the user may have had everything forgotten since the file was read.
        if not group or self.forgotten() is None:
            return
        try:
            some = [each for _, each in group]
            stored = store_sources(user=self.user, some=some, turns=self.turns, forgotten=self.forgotten)
        except ServiceError as error:
            for one, _ in group:
                self.report.add_problem(one.index, error.message, one.source.title)
            return
        for (one, prepared), conversation in zip(group, stored, strict=True):
            if conversation is None:
                self.report.known += 1
                continue
            self.report.conversations += 1
            self.report.messages += len(prepared.grown.messages)
            # Count only when it is stored: each turn reads the file again from its beginning.
            self.report.left_out.update(one.source.left_out)
            if self.account is not None:
                self._note(conversation.pk, one.source, prepared.grown)

    def _note(self, conversation_id: UUID, source: SourceConversation, grown: BranchedMessages) -> None:
        """Record where the messages that the archive's entries reference are now."""
        assert self.account is not None
        self.account.conversations[source.id] = conversation_id
        places = {named: grown.places[named] for named in self.account.wanted & grown.places.keys()}
        ids = messages_at(conversation_id, places.values())
        self.account.messages |= {named: ids[place] for named, place in places.items() if place in ids}

    def take_memory(self, account: Account) -> None:
        gone, pace = partial(self._gone_entries, account), self.turns.pace
        entry_ids = store_entries(user=self.user, account=account, now=clock.now(), pace=pace, gone=gone)
        if account.profile and not store_profile(
            user=self.user, versions=account.profile, entry_ids=entry_ids, gone=gone
        ):
            self.report.left_out["profiles, because you have one already"] += 1
        if account.unreadable:
            self.report.left_out["entries of the memory and folders that cannot be read"] += (
                account.unreadable
            )

    def _gone_entries(self, account: Account) -> frozenset[str] | None:
        """Return the ids of entries forgotten with a conversation; None if everything was forgotten."""
        forgotten = self.forgotten()
        if not forgotten:
            return forgotten
        return frozenset(
            entry.id
            for entry in account.entries
            if entry.goes_with(lambda named: key_of_id(palimpsest.NAME, named) in forgotten)
        )


def _quote_instructions(source: SourceConversation) -> None:
    for message in source.messages:
        if message.role == "system":
            message.role, message.text = "user", quoted(message.text)
