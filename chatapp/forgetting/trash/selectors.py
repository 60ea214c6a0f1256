"""Reads a user's trash, and which conversations in any trash are due for deletion."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection
from datetime import datetime
from uuid import UUID

from django.db.models import Exists, OuterRef, QuerySet

from agents.tools.attached_files import FilesRead
from chatapp.accounts.models import User
from chatapp.conversations.message_values import text_of
from chatapp.conversations.models import Message
from chatapp.files.models import Attachment
from chatapp.forgetting.models import Tombstone, TrashedConversation
from chatapp.long_term.models import MemoryEntry
from chatapp.long_term.selectors.tombstones import tombstones_of
from chatapp.operations.database.access import parse_id
from chatapp.runs.models import RunSource, ToolCall
from memory.language.sentences import split_sentences


def trash_of(user: User, now: datetime) -> QuerySet[TrashedConversation]:
    """Return the conversations that the user can restore."""
    return TrashedConversation.objects.filter(user=user, purge_at__gt=now).select_related("conversation")


def is_in_trash(user: User, conversation_id: str, now: datetime) -> bool:
    """Return whether the user can restore the conversation. Raise NotFound for an invalid id."""
    return trash_of(user, now).filter(pk=parse_id(conversation_id)).exists()


def due_for_purge(now: datetime, limit: int = 50) -> list[TrashedConversation]:
    rows = TrashedConversation.objects.filter(purge_at__lte=now).select_related("user")
    return list(rows.order_by("purge_at", "pk")[:limit])


def trashed_with_words_of(user: User, start: datetime, end: datetime) -> list[UUID]:
    """Return the conversations in the trash with messages from `start` to before `end`."""
    said = Message.objects.filter(conversation=OuterRef("pk"), created_at__gte=start, created_at__lt=end)
    rows = TrashedConversation.objects.filter(Exists(said), user=user)
    return list(rows.order_by("pk").values_list("pk", flat=True))


def sentences_in_trash(
    user_id: UUID, entry_ids: Collection[UUID], is_near: Callable[[str], bool]
) -> list[str]:
    """Return the user's sentences that may repeat these entries, from conversations in the trash they were made of."""
    rows = TrashedConversation.objects.filter(user=user_id).values_list("pk", "entries") if entry_ids else ()
    wanted = {str(entry_id) for entry_id in entry_ids}
    homes = [pk for pk, named in rows if not wanted.isdisjoint(named)]
    said = Message.objects.filter(conversation__in=homes, role=Message.Role.USER) if homes else ()
    sentences = (sentence for message in said for sentence in split_sentences(text_of(message.parts)))
    return [sentence for sentence in sentences if is_near(sentence)]


def barred_messages(row: TrashedConversation) -> list[UUID]:
    """Return messages that say something forgotten while in the trash, and answers that read forgotten sources.

    Usually nothing was forgotten since, and no message is read.
    """
    said = Message.objects.filter(conversation=row.pk).exclude(parts=[])
    found: set[UUID] = set()
    if Tombstone.objects.filter(user=row.user_id, created_at__gte=row.trashed_at).exists():
        barred = tombstones_of(row.user_id)
        for pk, parts in said.values_list("pk", "parts").iterator(chunk_size=200):
            if any(barred.cover(sentence) for sentence in split_sentences(text_of(parts))):
                found.add(pk)
    sources = RunSource.objects.filter(run__conversation=row.pk)
    forgotten = Message.objects.filter(pk=OuterRef("source_id"), forgotten_at__gte=row.trashed_at)
    found |= set(sources.filter(Exists(forgotten)).values_list("run__answer", flat=True))
    gone = _gone_sources(sources)
    # What another user forgot leaves only a missing row. The user's own forgotten texts have tombstones, files do not.
    if row.conversation.shared_in is None:
        asked = _file_calls(row.pk)
        gone = [source for source in gone if str(source.source_id) in asked[source.run_id]]
    return sorted(found | {source.run.answer_id for source in gone})


def _gone_sources(sources: QuerySet[RunSource]) -> list[RunSource]:
    """Return the sources that refer to a deleted row."""
    rows = (Message.objects.all(), MemoryEntry.objects.all(), Attachment.objects.all())
    are_left = [~Exists(some.filter(pk=OuterRef("source_id"))) for some in rows]
    return list(sources.filter(*are_left).select_related("run"))


def _file_calls(conversation_id: UUID) -> dict[UUID, str]:
    """Return by run the arguments of its calls that read files, which contain file ids."""
    calls = ToolCall.objects.filter(run__conversation=conversation_id, name=FilesRead.spec.name)
    asked: dict[UUID, str] = defaultdict(str)
    for run_id, arguments in calls.values_list("run", "arguments"):
        asked[run_id] += arguments
    return asked
