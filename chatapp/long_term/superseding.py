"""Finds statements in memory that a summarised span may supersede, and where the newer ones were said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from uuid import UUID

from chatapp.compaction.models import Compaction
from chatapp.conversations.branches import is_visible, visible_spans
from chatapp.conversations.models import Message
from chatapp.long_term.models import MemoryEntry
from chatapp.long_term.selectors.entries import NEWEST_ENTRIES, kept_entries, withdrawn_entries
from chatapp.operations import clock
from chatapp.recall.analysis import vocabulary
from chatapp.recall.selectors.claims import StatementPlace, find_statement, fold_sentence
from chatapp.recall.selectors.found_texts import Found
from chatapp.recall.user_search import search_memory
from memory.language.sentences import split_sentences, strip_list_mark
from memory.long_term.superseding import choose_known
from memory.tokens import total_tokens
from memory.types import Message as MessageValue

LOOKED_AT = 30
NEWEST_SENTENCES = 5_000


@dataclass(frozen=True, slots=True)
class KnownStatement:
    """A statement of an entry that the summary model gets to see. `said` is its place."""

    text: str
    said: StatementPlace


def known_statements(compaction: Compaction, messages: Sequence[MessageValue]) -> tuple[KnownStatement, ...]:
    """Return the statements in memory nearest to what the user said in these messages of the compaction's span.

    Read only entries of the same user; in a scope, only those of the scope; of this conversation, only those about
    earlier messages of its branch.
    """
    said = [message.text for message in messages if message.role == "user"]
    found = list(islice(_statements(compaction), NEWEST_SENTENCES))
    chosen = choose_known(said, [one.text for one in found], vocabulary, total_tokens(messages))
    return tuple(found[number] for number in chosen)


def _statements(compaction: Compaction) -> Iterator[KnownStatement]:
    """Yield the statements of entries, newest entries first."""
    conversation = compaction.conversation
    rows = kept_entries().filter(user=conversation.user_id).exclude(pk__in=withdrawn_entries())
    if conversation.scope_id is not None:
        rows = rows.filter(scope=conversation.scope_id)
    newest = rows.select_related("compaction").order_by("-created_at", "-pk")[:NEWEST_ENTRIES]
    shown = visible_spans(compaction.branch)
    for entry in newest.iterator():
        if entry.conversation_id == conversation.pk and not _is_before(entry, compaction, shown):
            continue
        start = 0
        for sentence in split_sentences(entry.text):
            if (text := strip_list_mark(sentence)) and not text.startswith("#"):
                end = start + len(sentence.rstrip())
                place = StatementPlace(
                    fold_sentence(sentence), start, end, entry.created_at, entry_id=entry.pk
                )
                yield KnownStatement(text, place)
            start += len(sentence)


def _is_before(entry: MemoryEntry, compaction: Compaction, shown: dict[UUID, int | None]) -> bool:
    """Return whether an entry of the same conversation is about messages before the span, on its branch."""
    its = entry.compaction
    if its is None or its.last_position >= compaction.first_position:
        return False
    return is_visible(shown, its.branch_id, its.last_position)


def superseding_places(
    compaction: Compaction,
    messages: Sequence[MessageValue],
    known: Sequence[KnownStatement],
    named: Sequence[tuple[int, str]],
) -> list[tuple[StatementPlace, StatementPlace]]:
    """Return pairs of the places of an older and a newer statement, for pairs that a model named.

    The user must have said the newer one in these messages, after the older one. The older one is located in its entry
    and in the messages that say it.
    """
    pairs: list[tuple[StatementPlace, StatementPlace]] = []
    span = [_as_found(message) for message in messages if message.role == "user" and message.id]
    for number, statement in named:
        older = known[number]
        newer = max(find_statement(statement, older.text, span), key=lambda said: said.at, default=None)
        if newer is not None:
            places = [_noted(older.said), *_messages_saying(compaction, older.text, statement)]
            # A statement that was repeated after the newer one still holds.
            pairs += [(place, newer) for place in places if place.at < newer.at]
    return pairs


def _as_found(message: MessageValue) -> Found:
    said_at = message.created_at or clock.now()
    return Found(
        "message", message.text, 0.0, said_at, is_whole=True, role="user", message_id=UUID(message.id)
    )


def _noted(said: StatementPlace) -> StatementPlace:
    """Return the place in an entry, dated by the last message that the entry was made from."""
    assert said.entry_id is not None
    source = MemoryEntry.objects.filter(pk=said.entry_id).values("last_message_id")
    moment = Message.objects.filter(pk__in=source).values_list("created_at", flat=True).first()
    return StatementPlace(said.words, said.start, said.end, moment or said.at, entry_id=said.entry_id)


def _messages_saying(compaction: Compaction, statement: str, other: str) -> Iterator[StatementPlace]:
    conversation, shown = compaction.conversation, visible_spans(compaction.branch)
    user, now = conversation.user, clock.now()
    found = search_memory(user_id=user.pk, query=statement, limit=LOOKED_AT, now=now, zone=user.zone)
    said = [one for one in found if one.message_id is not None and _may_change(one, compaction, shown)]
    yield from find_statement(statement, other, said)


def _may_change(found: Found, compaction: Compaction, shown: dict[UUID, int | None]) -> bool:
    """Return whether the text was said in another conversation, or in this one on this branch."""
    is_here = found.conversation_id == compaction.conversation_id
    return not is_here or is_visible(shown, found.branch_id, found.position)
