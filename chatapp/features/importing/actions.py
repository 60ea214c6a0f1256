"""Writes what an import contains: conversations with their sources, and folders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Unpack
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Q, Sum

from chatapp.accounts.models import User
from chatapp.compaction.models import Compaction
from chatapp.conversations.actions.conversations import note_pause, store_pauses
from chatapp.conversations.actions.imports import NewConversation, import_at_once, import_in_pieces
from chatapp.conversations.folders.actions import FolderColumns, create_folder
from chatapp.conversations.models import Branch, Conversation, Message
from chatapp.features.importing.models import ImportedConversation
from chatapp.features.importing.selectors import known_conversations
from chatapp.features.importing.summaries import Summary
from chatapp.features.importing.tree import BranchedMessages
from chatapp.features.importing.values import ReadForgottenKeys, SourceConversation
from chatapp.files.actions import link_to_messages, put_into_folder
from chatapp.files.models import Attachment, Offload
from chatapp.operations.database.forgetting_counts import lock_forgetting_counts
from chatapp.operations.database.statements import insert_rows
from chatapp.operations.database.work_budget import PacedTransactions
from chatapp.operations.errors import ReadForgotten

MAX_PAUSES = 1_000


@dataclass(frozen=True, slots=True)
class Prepared:
    """A conversation that is ready to be stored under its new id. `settings` are columns of its row, `results` rows of
    tool results, whose files exist already."""

    conversation_id: UUID
    source: SourceConversation
    source_key: str
    grown: BranchedMessages
    summaries: Sequence[Summary]
    files: Mapping[str, Attachment]
    settings: Mapping[str, Any]
    results: Sequence[Offload]
    now: datetime

    def new_of(self, user: User) -> NewConversation:
        """Return the conversation in the form in which it is stored for the user."""
        source, grown, now = self.source, self.grown, self.now
        said = [message.created_at for message in grown.messages if message.created_at]
        began, ended = (
            source.created_at or min(said, default=now),
            source.updated_at or max(said, default=now),
        )
        columns = {
            "id": self.conversation_id,
            # Dates up to tomorrow are accepted, but a conversation of tomorrow would stay above all new ones.
            "created_at": min(began, now),
            "last_activity_at": min(ended, now),
            # The clean-up counts from now, so that old chats are not deleted the next day.
            "kept_since": now,
            "archived": source.is_archived,
            "pinned": source.is_pinned,
            **self.settings,
        }
        return NewConversation(
            grown.messages,
            source.title,
            grown.branches,
            columns,
            partial(_finish, user=user, prepared=self),
            lambda conversation: ImportedConversation(
                user=user, source_key=self.source_key, conversation=conversation
            ),
        )


def store_sources(
    *, user: User, some: Sequence[Prepared], turns: PacedTransactions, forgotten: ReadForgottenKeys
) -> list[Conversation | None]:
    """Store one conversation, or several that fit one transaction, and return them; None for each that another import
    stored meanwhile. Raise ReadForgotten if everything was forgotten since they were read."""
    new, now = [prepared.new_of(user) for prepared in some], some[0].now
    # One check is enough for the transaction.
    new[0] = replace(new[0], check=partial(_check_wanted, user, forgotten))
    try:
        if len(new) == 1:
            return [import_in_pieces(user=user, new=new[0], now=now, turns=turns)]
        return [*import_at_once(user=user, some=new, now=now, turns=turns)]
    except IntegrityError:
        # One of them collides. Store them one by one, so that the others succeed.
        if len(new) > 1:
            return [
                each
                for one in some
                for each in store_sources(user=user, some=[one], turns=turns, forgotten=forgotten)
            ]
        # A concurrent import of the same user may have stored it; any other collision is a bug.
        if some[0].source_key in known_conversations(user, [some[0].source_key]):
            return [None]
        raise


@transaction.atomic
def store_folder(
    *, user: User, files: Iterable[Attachment], now: datetime, **columns: Unpack[FolderColumns]
) -> None:
    """Create a folder with its files. Raise Conflict."""
    folder = create_folder(user=user, now=now, **columns)
    for file in files:
        put_into_folder(folder=folder, attachment=file)


def _check_wanted(user: User, forgotten: ReadForgottenKeys) -> None:
    # A forgetting that has begun finishes first and is visible here; a later one finds the rows stored here.
    lock_forgetting_counts([user.pk])
    if forgotten() is None:
        raise ReadForgotten("Something was forgotten meanwhile.")


def _finish(
    conversation: Conversation, *, branches: Sequence[Branch], user: User, prepared: Prepared
) -> None:
    """Store the memory pauses, summaries, files and tool results of an imported conversation, in the transaction that
    makes it visible."""
    is_paused = conversation.memory == Conversation.Memory.PAUSED
    store_pauses(user, conversation, _pauses(prepared.source.pauses, None if is_paused else prepared.now))
    if is_paused:
        # If the beginning of the pause is unknown, it covers the whole conversation, so that nothing is learned.
        note_pause(user, conversation, True, conversation.created_at)
    _store_summaries(conversation, branches, prepared.summaries, prepared.now)
    _link_files(conversation, prepared.grown, prepared.files)
    insert_rows(prepared.results)


def _pauses(
    periods: Sequence[tuple[datetime, datetime | None]], end: datetime | None
) -> list[tuple[datetime, datetime | None]]:
    """Return the periods by beginning, at most MAX_PAUSES. Merge those that had not ended into one with this `end`,
    because a pause of all memory in the source does not continue here."""
    ended: list[tuple[datetime, datetime | None]] = sorted({(began, at) for began, at in periods if at})
    if rest := [at for _, at in ended[MAX_PAUSES:] if at]:
        # The merged period also covers what was said in between: rather learn too little than too much.
        ended[MAX_PAUSES - 1 :] = [(ended[MAX_PAUSES - 1][0], max(rest))]
    lasting = [began for began, at in periods if at is None]
    return [*ended, (min(lasting), end)] if lasting else ended


def _store_summaries(
    conversation: Conversation,
    branches: Sequence[Branch],
    summaries: Sequence[Summary],
    now: datetime,
) -> None:
    stored: dict[str, Compaction] = {}
    newest: dict[int, Compaction] = {}
    for summary in summaries:
        # If the export does not name the previous summary, it is the one before in the branch.
        previous = stored.get(summary.previous) or newest.get(summary.branch)
        span = Q(position__gte=summary.first_position, position__lte=summary.last_position)
        rows = Message.objects.filter(span, conversation=conversation)
        tokens = rows.aggregate(total=Sum("token_estimate"))["total"] or 0
        columns = {**summary.columns, "created_at": summary.columns["created_at"] or now}
        row = Compaction.objects.create(
            conversation=conversation,
            branch=branches[summary.branch],
            previous=previous,
            first_position=summary.first_position,
            last_position=summary.last_position,
            status=Compaction.Status.DONE,
            span_tokens=tokens,
            covered_tokens=tokens + (previous.covered_tokens if previous else 0),
            context_kept_at=now,  # what left the context is still in the messages
            **columns | {"finished_at": columns["finished_at"] or columns["created_at"]},
        )
        stored[summary.id] = newest[summary.branch] = row


def _link_files(conversation: Conversation, grown: BranchedMessages, files: Mapping[str, Attachment]) -> None:
    if not files:
        return
    shown = {
        # A message may show a file twice, but is linked to it once.
        position: dict.fromkeys(UUID(part["file_id"]) for part in parts if part.get("file_id") in files)
        for position, message in enumerate(grown.messages)
        if (parts := message.columns.get("parts"))
    }
    link_to_messages(conversation, shown)
