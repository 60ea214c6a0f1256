"""Imports a file, one conversation after the other. What was brought along before is passed over, so that an import
that was cut short goes on when it is begun again."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db import transaction

from chatapp.accounts.models import User
from chatapp.conversations.actions.imports import fits_at_once
from chatapp.features.importing.account import Account, open_account
from chatapp.features.importing.actions import store_source
from chatapp.features.importing.files import files_of, with_files
from chatapp.features.importing.formats import chatgpt, claude, librechat, open_webui, palimpsest
from chatapp.features.importing.memory_actions import store_entries, store_profile
from chatapp.features.importing.offloaded import References, store_results, with_references
from chatapp.features.importing.selectors import messages_at, own_conversation, own_messages, was_imported
from chatapp.features.importing.settings import settings_of
from chatapp.features.importing.stream import Progress, entries
from chatapp.features.importing.summaries import summaries_of
from chatapp.features.importing.tree import Grown, grow
from chatapp.features.importing.values import Reading, SourceConversation, Unreadable, quoted
from chatapp.files.models import Attachment
from chatapp.operations import clock
from chatapp.operations.errors import ServiceError
from chatapp.operations.work_budget import REST_PER_WORK, TO_THE_END, Pace

FORMATS = (palimpsest, chatgpt, claude, open_webui, librechat)
CHATS_AT_ONCE = 6
MAX_PROBLEMS = 200
MAX_REASON_CHARS = 300


@dataclass(slots=True)
class Report:
    """What became of a file. `problems` names the first of those that could not be read, `left_out` counts what stayed
    behind of those that could."""

    source: str = ""
    conversations: int = 0
    messages: int = 0
    known: int = 0
    problem_count: int = 0
    problems: list[dict[str, Any]] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    def add_problem(self, index: int, reason: str, title: str = "") -> None:
        self.problem_count += 1
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append({"index": index, "title": title, "reason": reason[:MAX_REASON_CHARS]})

    def as_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "conversations": self.conversations,
            "messages": self.messages,
            "known": self.known,
            "problem_count": self.problem_count,
            # Without titles: they are the user's words, and this is no place that forgetting reaches.
            "problems": [{"index": each["index"], "reason": each["reason"]} for each in self.problems],
            "left_out": dict(sorted(self.left_out.items())),
        }


Told = Callable[[Report, Progress], bool]
"""Called after each conversation; False ends the import here, to be gone on with later."""


def import_file(
    *, user: User, path: Path, report: Report, tell: Told | None = None, pace: Pace = TO_THE_END
) -> bool:
    """Import what the file holds and return whether its end was reached. Raises Unreadable where it is no export."""
    progress = Progress()
    with open_account(path) as account:
        importing = _Importing(user, report, pace, account)
        for entry in entries(path, progress):
            if entry.value is None:
                report.add_problem(entry.index, entry.problem)
            else:
                importing.take(entry.index, entry.value)
            if tell is not None and not tell(report, progress):
                importing.store_waiting()
                return False
        importing.store_waiting()
        if account is not None:
            importing.take_memory(account)
    return True


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A conversation that only has to be stored."""

    index: int
    source: SourceConversation
    key: str
    reading: Reading
    grown: Grown
    files: Mapping[str, Attachment]
    settings: Mapping[str, Any]
    references: References


@dataclass(slots=True)
class _Importing:
    """The import of one file. `account` is what it holds besides conversations, where it is a whole account of ours.

    Small conversations wait for each other and are stored in one transaction: a commit takes as long as the rows.
    """

    user: User
    report: Report
    pace: Pace
    account: Account | None
    waiting: list[_Prepared] = field(default_factory=list)
    waiting_rows: int = 0
    free_since: float = 0.0
    """When this import last gave the write lock back."""

    def take(self, index: int, value: dict[str, Any]) -> None:
        read = next((each for each in FORMATS if each.matches(value)), None)
        if read is None:
            self.report.add_problem(index, "It is no conversation of a program that is known here.")
            return
        self.report.source = self.report.source or read.NAME
        reading = Reading(clock.now(), Counter())
        title = ""
        try:
            source = read.read(value, reading)
            if read is not palimpsest:
                _quote_instructions(source)
            title = source.title
            self._take_source(index, source, read is palimpsest, _key(read.NAME, source), reading)
        except Unreadable as error:
            self.report.add_problem(index, str(error), title)
        except ServiceError as error:
            self.report.add_problem(index, error.message, title)

    def _take_source(
        self, index: int, source: SourceConversation, is_ours: bool, key: str, reading: Reading
    ) -> None:
        own = own_conversation(self.user, source.id) if is_ours else None
        known = own or was_imported(self.user, key)
        if known is None:
            self._prepare(index, source, key, reading)
            return
        self.report.known += 1
        if self.account is not None and not self.account.wanted.isdisjoint(
            each.id for each in source.messages
        ):
            if own is not None:
                self.account.conversations[source.id] = own
                self.account.messages |= own_messages(own, self.account.wanted)
            else:
                self._note(known, source, grow(source))

    def _prepare(self, index: int, source: SourceConversation, key: str, reading: Reading) -> None:
        grown = grow(source)
        files = files_of(self.user, grown, self.account)
        references: References = {}
        messages = [
            with_references(with_files(message, files, reading), source, self.account, references)
            for message in grown.messages
        ]
        grown = replace(grown, messages=messages)
        prepared = _Prepared(
            index,
            source,
            key,
            reading,
            grown,
            files={str(row.pk): row for row in files.values()},
            settings=settings_of(self.user, source, self.account) if source.settings else {},
            references=references,
        )
        if references or not fits_at_once(messages, self.pace.budget):
            self._store(prepared)
            return
        self.waiting.append(prepared)
        self.waiting_rows += len(messages)
        if len(self.waiting) >= CHATS_AT_ONCE or self.waiting_rows >= self.pace.budget.rows // 2:
            self.store_waiting()

    def store_waiting(self) -> None:
        """Store what waits, then leave the lock to others: for as long as a piece of larger work does, of which
        reading the next conversations takes a part."""
        if not self.waiting:
            return
        began = self.pace.clock()
        with transaction.atomic():
            for prepared in self.waiting:
                self._store(prepared)
        self.waiting, self.waiting_rows = [], 0
        ended = self.pace.clock()
        rest_s = (ended - began) * REST_PER_WORK - (began - self.free_since)
        self.free_since = ended
        if rest_s > 0:
            self.pace.sleep(rest_s)

    def _store(self, prepared: _Prepared) -> None:
        source, grown = prepared.source, prepared.grown
        try:
            conversation = store_source(
                user=self.user,
                source=source,
                source_key=prepared.key,
                grown=grown,
                summaries=summaries_of(source, grown, prepared.reading),
                files=prepared.files,
                settings=prepared.settings,
                now=prepared.reading.now,
                pace=self.pace,
            )
        except ServiceError as error:
            self.report.add_problem(prepared.index, error.message, source.title)
            return
        if conversation is None:
            self.report.known += 1
            return
        self.report.conversations += 1
        self.report.messages += len(grown.messages)
        self.report.left_out.update(source.left_out)
        if self.account is not None:
            store_results(conversation.pk, source, self.account, prepared.references)
            self._note(conversation.pk, source, grown)

    def _note(self, conversation_id: UUID, source: SourceConversation, grown: Grown) -> None:
        """Note where what the archive's entries name is now."""
        assert self.account is not None
        self.account.conversations[source.id] = conversation_id
        places = {named: grown.places[named] for named in self.account.wanted & grown.places.keys()}
        ids = messages_at(conversation_id, places.values())
        self.account.messages |= {named: ids[place] for named, place in places.items() if place in ids}

    def take_memory(self, account: Account) -> None:
        now = clock.now()
        entry_ids, _ = store_entries(user=self.user, account=account, now=now, pace=self.pace)
        if account.profile and not store_profile(
            user=self.user, versions=account.profile, entry_ids=entry_ids
        ):
            self.report.left_out["profiles, because you have one already"] += 1
        if account.unreadable:
            self.report.left_out["entries of the memory and folders that cannot be read"] += (
                account.unreadable
            )


def _quote_instructions(source: SourceConversation) -> None:
    for message in source.messages:
        if message.role == "system":
            message.role, message.text = "user", quoted(message.text)


def _key(name: str, source: SourceConversation) -> str:
    """Return the key of a conversation: of its id, else of what it says."""
    hashed = hashlib.sha256(f"{name}\n{source.id}".encode("utf-8", "replace"))
    if not source.id:
        for message in source.messages:
            hashed.update(f"\n{message.role}\n{message.text}".encode("utf-8", "replace"))
    return hashed.hexdigest()
