"""Searches a user's messages and memory, and marks statements that a newer one replaced. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from itertools import islice
from uuid import UUID

from chatapp.accounts.models import User
from chatapp.operations.clock import in_zone
from chatapp.recall.analysis import questions
from chatapp.recall.embedding import find_near_documents
from chatapp.recall.selectors.claims import Superseded, repeated_claims, superseded_claims
from chatapp.recall.selectors.found_texts import Found
from chatapp.recall.selectors.user_index import EVERYTHING, SearchFilter, open_index
from memory.language.languages import ABOUT_A_WORD
from memory.recall.ranking import add_nearness

LOOKUP_WORDS = 2
READ_FOR_A_ROLE = 400
"""The index does not store roles, so that this many of the best matches are read and filtered by role."""


def search_memory(
    *,
    user_id: UUID,
    query: str,
    limit: int,
    now: datetime,
    zone: tzinfo,
    only: SearchFilter = EVERYTHING,
    scope_id: UUID | None = None,
) -> list[Found]:
    """Search the user's messages, the answers to them and the memory entries; return the best matches first.

    A query of one or two words finds only texts that contain them. A question also finds the turns beside a match,
    because an answer seldom repeats the words of its question. Words such as "yesterday" are relative to `now` in
    `zone`. With a scope, search its shared entries, too.
    """
    question = questions.read(query, in_zone(now, zone).date())
    words = [*islice(ABOUT_A_WORD.finditer(query), LOOKUP_WORDS + 1)]
    is_lookup = len(words) <= LOOKUP_WORDS and not question.is_asked
    index = open_index(user_id, scope_id)
    # Read more than `limit`, because pieces of one message become one result.
    read = READ_FOR_A_ROLE if only.role else limit * 2
    ranking = index.rank(question, read, only_matches=is_lookup, only=only, zone=zone)
    scored = dict(zip(ranking.ordinals, ranking.scores, strict=True))
    if not is_lookup:
        scored = add_nearness(scored, find_near_documents(index, query, only).nearness)
    scored = dict(islice(scored.items(), read))
    found = index.read(list(scored), list(scored.values()))
    # Filter again, because the index stores minutes instead of exact times, and no roles.
    return _merge_pieces(item for item in found if only.allows(item))[:limit]


def _merge_pieces(found: Iterable[Found]) -> list[Found]:
    """Return one result per message or entry: its best piece."""
    best: dict[UUID, Found] = {}
    for item in found:
        best.setdefault(item.source_id, item)
    return list(best.values())


@dataclass(frozen=True, slots=True)
class MarkedResult:
    """A search result, and the statement that replaced one in it; None if its statements still hold."""

    found: Found
    superseded: Superseded | None = None


def search_marked(
    *, user: User, query: str, limit: int, now: datetime, only: SearchFilter = EVERYTHING
) -> list[MarkedResult]:
    """Return the best matches for a user, each replaced statement after its replacement.

    A search limited to a place or role does not return replacements from elsewhere.
    """
    found = search_memory(user_id=user.pk, query=query, limit=limit, now=now, only=only, zone=user.zone)
    results = put_current_first(user.pk, found, before=only.before)
    if only.limits_place_or_role:
        inside = {one.source_id for one in found}
        results = [one for one in results if one.found.source_id in inside]
    return results[:limit]


def put_current_first(
    user_id: UUID, found: Sequence[Found], *, before: datetime | None = None
) -> list[MarkedResult]:
    """Return the results, best first, but each replaced statement after its replacement.

    With `before`, ignore replacements that were said later.
    """
    claims = superseded_claims(user_id, [one.source_id for one in found], before=before)
    results = [MarkedResult(one, _newest_replacement(one, claims)) for one in found]
    entries = [one.found for one in results if one.superseded is None and one.found.entry_id is not None]
    # Extracted entries have no claims of their own, because they repeat those of messages.
    repeats = repeated_claims(user_id, [one.text for one in entries], before=before)
    results = [
        MarkedResult(one.found, one.superseded or _newest(repeats.get(one.found.text, ()))) for one in results
    ]
    return _reorder(results)


def _newest_replacement(found: Found, claims: Mapping[UUID, Sequence[Superseded]]) -> Superseded | None:
    """Return the newest statement that replaced one in this piece of its source."""
    end = found.start + len(found.text)
    of_source = claims.get(found.source_id, ())
    return _newest([claim for claim in of_source if claim.start < end and claim.end > found.start])


def _newest(claims: Sequence[Superseded]) -> Superseded | None:
    return max(claims, key=lambda claim: claim.until, default=None)


def _reorder(results: Sequence[MarkedResult]) -> list[MarkedResult]:
    ordered: list[MarkedResult] = []
    waiting: dict[UUID | None, MarkedResult] = {one.found.source_id: one for one in results}
    for one in results:
        # Already listed, before the statement that it replaced.
        if one.found.source_id not in waiting:
            continue
        waiting.pop(one.found.source_id)
        newer_id = one.superseded.source_id if one.superseded else None
        newer = waiting.pop(newer_id, None) if newer_id else None
        if newer is not None:
            ordered.append(newer)
        elif one.superseded is not None:
            # A message that corrects itself is listed once.
            listed = {one.found.source_id, *(other.found.source_id for other in ordered)}
            if one.superseded.source_id not in listed:
                ordered.append(_replacement_of(one, one.superseded))
        ordered.append(one)
    return ordered


def _replacement_of(one: MarkedResult, newer: Superseded) -> MarkedResult:
    """Return the newer statement as a result, although the query may not match it."""
    return MarkedResult(
        Found(
            kind="message" if newer.message_id else "entry",
            text=newer.text,
            score=one.found.score,
            said_at=newer.until,
            is_whole=False,
            role="user" if newer.message_id else "",
            conversation_id=newer.conversation_id,
            message_id=newer.message_id,
            entry_id=newer.entry_id,
            start=newer.source_start,
        )
    )
