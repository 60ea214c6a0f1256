"""Reads which statements were superseded, and by which ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple, TypeVar
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from chatapp.conversations import message_values
from chatapp.conversations.models import Message
from chatapp.operations.caching.editions import cached_from_user_tables
from chatapp.operations.caching.lru_cache import LruCache
from chatapp.operations.database.statements import execute
from chatapp.recall.analysis import KNOWN_TEXTS, hash_term, hash_text, vocabulary
from chatapp.recall.models import StoredClaim
from chatapp.recall.selectors.found_texts import Found
from memory.language.sentences import are_alike, split_sentences, strip_list_mark
from memory.long_term.claims import Claim, find_claims

T = TypeVar("T")
ASKED_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Superseded:
    """The statement `said`, from `start` to `end` of a source, held until `until`, when `text` replaced it."""

    start: int
    end: int
    said: str
    until: datetime
    text: str
    source_start: int
    message_id: UUID | None
    entry_id: UUID | None
    conversation_id: UUID | None
    branch_id: UUID | None
    position: int

    @property
    def source_id(self) -> UUID | None:
        """Return the id of the message or entry that says `text`."""
        return self.message_id or self.entry_id


_IS_SHOWN = Q(message=None) | Q(message__conversation__user__isnull=False)
"""The statement is not in a conversation that is in the trash or being deleted."""
_SOURCES = ("message", "entry", "superseded_by__message", "superseded_by__entry")
_ANY = "SELECT 1 FROM chatapp_storedclaim WHERE user_id = %s AND superseded_by_id IS NOT NULL LIMIT 1"


def superseded_claims(
    user_id: UUID, source_ids: Collection[UUID], *, before: datetime | None = None
) -> Mapping[UUID, list[Superseded]]:
    """Return superseded statements by message or entry; with `before`, only those superseded before that time."""
    found: dict[UUID, list[Superseded]] = defaultdict(list)
    if not source_ids or not cached_from_user_tables(user_id, "has superseded", lambda: _has_any(user_id)):
        return found  # the usual case, without the joins
    for some in _slices(list(source_ids)):
        of_sources = Q(message__in=some) | Q(entry__in=some)
        rows = StoredClaim.objects.filter(of_sources, user_id=user_id)
        for row, newer in _with_newer(rows.order_by("start", "pk"), before):
            source_id = row.message_id or row.entry_id
            if source_id is not None:
                found[source_id].append(_superseded(row, newer))
    return found


def _with_newer(
    rows: QuerySet[StoredClaim], before: datetime | None
) -> Iterator[tuple[StoredClaim, StoredClaim]]:
    """Yield each superseded claim with the next claim that superseded it, is shown, and was said before `before`."""
    superseded = rows.filter(superseded_by__isnull=False).select_related(*_SOURCES)
    if before is not None:
        superseded = superseded.filter(superseded_by__said_at__lt=before)
    shown = StoredClaim.objects.filter(_IS_SHOWN, pk=OuterRef("superseded_by"))
    for row in superseded.annotate(has_shown=Exists(shown)):
        newer = row.superseded_by if row.has_shown else _next_shown(row)
        if newer is not None and (before is None or newer.said_at < before):
            yield row, newer


def _next_shown(row: StoredClaim) -> StoredClaim | None:
    """Return the claim that supersedes `row` while its stored `superseded_by` is not shown."""
    assert row.superseded_by is not None
    replacing = Q(replaces=True) & ~Q(value=row.value)
    later = StoredClaim.objects.filter(
        _IS_SHOWN,
        # A denial ends no other value, so that `replaces` is not set.
        replacing | Q(value=~row.value),
        user_id=row.user_id,
        key=row.key,
        said_at__gte=row.superseded_by.said_at,
    )
    return later.select_related("message", "entry").order_by("said_at", "start", "pk").first()


def _slices(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield slices that fit the parameters of one statement."""
    for first in range(0, len(values), ASKED_AT_ONCE):
        yield values[first : first + ASKED_AT_ONCE]


def _has_any(user_id: UUID) -> bool:
    return execute(_ANY, user_id).fetchone() is not None


def _superseded(row: StoredClaim, newer: StoredClaim) -> Superseded:
    return Superseded(
        start=row.start,
        end=row.end,
        said=_text_of(row)[row.start : row.end],
        until=newer.said_at,
        text=_text_of(newer)[newer.start : newer.end],
        source_start=newer.start,
        message_id=newer.message_id,
        entry_id=newer.entry_id,
        conversation_id=newer.message.conversation_id if newer.message else None,
        branch_id=newer.message.branch_id if newer.message else None,
        position=newer.message.position if newer.message else -1,
    )


def _text_of(row: StoredClaim) -> str:
    if row.message is not None:
        return message_values.text_of(row.message.parts)
    return row.entry.text if row.entry is not None else ""


def repeated_claims(
    user_id: UUID, texts: Collection[str], *, before: datetime | None = None
) -> Mapping[str, list[Superseded]]:
    """Return superseded statements by text, for texts that repeat messages, e.g. extracted entries."""
    found: dict[str, list[Superseded]] = defaultdict(list)
    if not texts or not cached_from_user_tables(user_id, "has superseded", lambda: _has_any(user_id)):
        return found  # the usual case, without parsing the texts
    claims = [(text, claim) for text in texts for claim in hashed_claims(text)]
    newest = _newest_superseded(user_id, {claim.key for _, claim in claims}, before)
    for text, claim in claims:
        pair = newest.get((claim.key, claim.value))
        if pair is not None:
            over = _superseded(*pair)
            found[text].append(
                replace(over, said=text[claim.start : claim.end], start=claim.start, end=claim.end)
            )
    return found


class HashedClaim(NamedTuple):
    """The claim of `text[start:end]`, as stored. A denial has the complement of the value that it denies."""

    key: int
    value: int
    replaces: bool
    start: int
    end: int


_known = LruCache[bytes, tuple[HashedClaim, ...]](KNOWN_TEXTS)


def hashed_claims(text: str) -> tuple[HashedClaim, ...]:
    """Return the claims in a text, cached by the hash of the text."""
    digest = hash_text(text)
    known = _known.get(digest)
    if known is None:
        known = _known.put(digest, tuple(map(hash_claim, find_claims(text, vocabulary))))
    return known


def hash_claim(claim: Claim) -> HashedClaim:
    value = hash_parts(claim.value)
    return HashedClaim(
        hash_parts(claim.key), ~value if claim.is_denied else value, claim.replaces, claim.start, claim.end
    )


def _newest_superseded(
    user_id: UUID, keys: Iterable[int], before: datetime | None
) -> dict[tuple[int, int], tuple[StoredClaim, StoredClaim]]:
    """Return the newest superseded claim and the claim that superseded it, by key and value."""
    newest: dict[tuple[int, int], tuple[StoredClaim, StoredClaim]] = {}
    for some in _slices(sorted(keys)):
        rows = StoredClaim.objects.filter(user_id=user_id, key__in=some).order_by("said_at", "start", "pk")
        for row, newer in _with_newer(rows, before):
            newest[row.key, row.value] = row, newer
    return newest


@dataclass(frozen=True, slots=True)
class StatementPlace:
    """The place of a statement in a message or entry. `words` are its folded words."""

    words: str
    start: int
    end: int
    at: datetime
    message_id: UUID | None = None
    entry_id: UUID | None = None


def find_statement(statement: str, other: str, found: Iterable[Found]) -> list[StatementPlace]:
    """Return where these texts make the statement, literally or not, rather than the similar `other` one.

    Skip texts of the assistant.
    """
    gist = vocabulary.gist(statement)
    wanted, unwanted = vocabulary.words(statement), vocabulary.words(other)

    def says_it(sentence: str) -> bool:
        words = vocabulary.words(sentence)
        is_this_one = len(words & (wanted - unwanted)) > len(words & (unwanted - wanted))
        return is_this_one and (
            fold_sentence(sentence) == fold_sentence(statement) or are_alike(vocabulary.gist(sentence), gist)
        )

    statements = []
    for one in found:
        if one.role not in ("", Message.Role.USER):
            continue
        at = one.start
        for sentence in split_sentences(one.text):
            if says_it(sentence):
                end = at + len(sentence.rstrip())
                words = fold_sentence(sentence)
                statements.append(StatementPlace(words, at, end, one.said_at, one.message_id, one.entry_id))
                break
            at += len(sentence)
    return statements


def find_named(row: StoredClaim) -> tuple[int, int] | None:
    """Return where the source contains a claim that a model named; None if it does not, or if rules found the claim."""
    if not row.is_named:
        return None
    text, start = _text_of(row), 0
    if hash_parts((fold_sentence(text[row.start : row.end]),)) == row.value:
        return row.start, row.end
    for sentence in split_sentences(text):
        if hash_parts((fold_sentence(sentence),)) == row.value:
            return start, start + len(sentence.rstrip())
        start += len(sentence)
    return None


def fold_sentence(sentence: str) -> str:
    return " ".join(strip_list_mark(sentence).casefold().split())


def hash_parts(parts: tuple[str, ...]) -> int:
    return hash_term("\x00".join(parts))
