"""Finds in a user's memory: for the search door, and what a question needs that its context lacks. Writes nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from itertools import islice
from typing import Any
from uuid import UUID

from django.conf import settings

from chatapp.conversations.branches import visible_spans
from chatapp.conversations.models import Branch
from chatapp.long_term.selectors.pauses import ALL_ON_RECORD, OffRecord
from chatapp.long_term.selectors.scopes import ALL_OWN, Reach
from chatapp.recall.embedding import embed_question
from chatapp.recall.index import questions
from chatapp.recall.selectors.claims import Superseded
from chatapp.recall.selectors.search import EVERYTHING, SearchFilter, UserIndex, open_index
from chatapp.recall.selectors.sources import Found
from chatapp.recall.vectors import NOTHING_NEAR, Near
from memory.questions import Question
from memory.ranking import MOST_PASSED_OVER, Candidate, RecallSize, add_nearness, select_recall
from memory.terms import names_speaker
from memory.tokens import estimate_text

MAX_CANDIDATES = 600
LOOKUP_WORDS = 2
PAGE = 100
"""What is read at once when the first page, as long as will fill the room, did not."""


@dataclass(frozen=True, slots=True)
class RecalledTurn:
    """A turn as it is told: its own words, and before them who said it, where they do not say so themselves.
    `source` is what API.md calls so."""

    text: str
    source: dict[str, Any]
    tokens: int
    said_at: datetime
    role: str
    score: float

    @property
    def day(self) -> date:
        return self.said_at.date()


def search_memory(
    *,
    user_id: UUID,
    query: str,
    limit: int,
    now: datetime,
    only: SearchFilter = EVERYTHING,
    scope_id: UUID | None = None,
) -> list[Found]:
    """The best matches of everything the user said, was told or has in memory, best first.

    One or two words are looked up: only what contains them is found. A question also finds the turns beside,
    because an answer seldom repeats the words it was asked with. `now` is what "yesterday" is counted from. With a
    scope, what it shares is found, too.
    """
    question = questions.read(query, now.date())
    is_lookup = len(query.split()) <= LOOKUP_WORDS and "?" not in query
    index = open_index(user_id, scope_id)
    ranking = index.rank(question, limit * 2, only_matches=is_lookup, only=only)
    scored = dict(zip(ranking.ordinals, ranking.scores, strict=True))
    if not is_lookup:
        scored = add_nearness(scored, _near(index, query, only).nearness)
    scored = dict(islice(scored.items(), limit * 2))
    found = index.read(list(scored), list(scored.values()))
    return _merge_pieces(item for item in found if only.allows(item.said_at))[:limit]


def _merge_pieces(found: Iterable[Found]) -> list[Found]:
    """One result per message or entry: its best piece."""
    best: dict[UUID | None, Found] = {}
    for item in found:
        best.setdefault(item.message_id or item.entry_id, item)
    return list(best.values())


def source_of(found: Found) -> dict[str, Any]:
    """Where it was said: `{kind, conversation_id?, message_id?, entry_id?, day?}`."""
    ids = {
        "conversation_id": found.conversation_id,
        "message_id": found.message_id,
        "entry_id": found.entry_id,
        "day": found.day,
    }
    return {"kind": found.kind} | {name: str(value) for name, value in ids.items() if value is not None}


@dataclass(frozen=True, slots=True)
class InContext:
    """What the asking context holds by itself. `message_ids` are in view; of the conversation itself only what
    `branch` shows may come back, and not its own memory entries: its summary is in the context.

    What was said `off_record` comes back in its own conversation alone; `reach` says what does of others.
    """

    message_ids: Collection[str] = ()
    conversation_id: UUID | None = None
    branch: Branch | None = None
    off_record: OffRecord = ALL_ON_RECORD
    reach: Reach = ALL_OWN

    @property
    def only(self) -> SearchFilter:
        return EVERYTHING if self.reach.knows_own else SearchFilter(conversation_id=self.conversation_id)

    def keeps_out(self, found: Found) -> bool:
        is_said = found.kind == "message" and not self._is_here(found.conversation_id)
        return is_said and self.off_record.covers(found.conversation_id, found.said_at)

    def keeps_out_newer(self, claim: Superseded) -> bool:
        """What took the place of something recalled is told only where it may come back itself."""
        if self._is_here(claim.conversation_id):
            return False
        is_said = claim.message_id is not None
        is_off_record = is_said and self.off_record.covers(claim.conversation_id, claim.until)
        return is_off_record or not self.reach.knows_own

    def _is_here(self, conversation_id: UUID | None) -> bool:
        return conversation_id is not None and conversation_id == self.conversation_id

    def spans(self) -> dict[UUID, int | None]:
        return dict(visible_spans(self.branch)) if self.branch else {}


NO_CONTEXT = InContext()


def recall_for(
    *, user_id: UUID, question: str, now: datetime, room: RecallSize, context: InContext = NO_CONTEXT
) -> list[RecalledTurn]:
    """What the question needs, oldest first, within the room; nothing where nothing fits."""
    asked = questions.read(question, now.date())
    if asked.is_small_talk or room.tokens <= 0 or room.chars <= 0:
        return []
    sources: dict[str, Found] = {}
    index = open_index(user_id, context.reach.scope_id)
    scored = _worth_recalling(index, asked, _near(index, question, context.only), context.only)
    chosen = select_recall(_candidates(index, scored, room, context, sources), room)
    return [_recalled(candidate, sources[candidate.key]) for candidate in chosen]


def _near(index: UserIndex, question: str, only: SearchFilter = EVERYTHING) -> Near:
    """Nothing where no embeddings endpoint is configured, or none answers."""
    if not settings.EMBEDDINGS_MODEL:
        return NOTHING_NEAR
    asked = embed_question(question)
    return index.near(asked, settings.EMBEDDINGS_MODEL, only) if asked else NOTHING_NEAR


def _worth_recalling(
    index: UserIndex, question: Question, near: Near, only: SearchFilter
) -> dict[int, float]:
    """Ordinals with their scores, best first; none where neither words nor meaning fit."""
    scored = dict(zip(*index.rank(question, MAX_CANDIDATES, only=only).worth_recalling(), strict=True))
    return add_nearness(scored, near.nearness) if scored or near.stands_out else {}


def _candidates(
    index: UserIndex,
    scored: dict[int, float],
    room: RecallSize,
    context: InContext,
    sources: dict[str, Found],
) -> Iterator[Candidate]:
    """Best first, read as far as they are asked for; `sources` gets what each was made of."""
    ordinals, scores = list(scored), list(scored.values())
    spans = context.spans()
    first_page = index.count_filling(ordinals, room.chars) + MOST_PASSED_OVER
    for page in _pages(first_page, len(ordinals)):
        for found in index.read(ordinals[page], scores[page]):
            if not (context.keeps_out(found) or _is_in_context(found, context, spans)):
                candidate = _candidate(found)
                sources[candidate.key] = found
                yield candidate


def _pages(first_page: int, count: int) -> Iterator[slice]:
    yield slice(first_page)
    for start in range(first_page, count, PAGE):
        yield slice(start, start + PAGE)


def _is_in_context(found: Found, context: InContext, spans: dict[UUID, int | None]) -> bool:
    if str(found.message_id) in context.message_ids:
        return True
    if context.conversation_id is None or found.conversation_id != context.conversation_id:
        return False
    if found.kind == "entry":
        return True
    upto = spans.get(found.branch_id, -1) if spans and found.branch_id else None
    return upto is not None and found.position > upto


def _candidate(found: Found) -> Candidate:
    text = found.text if found.is_whole else f"[…] {found.text} […]"
    if not names_speaker(found.text):
        text = f"{found.role or 'memory'}: {text}"
    return Candidate(
        key=f"{found.message_id or found.entry_id}:{found.start}",
        text=text,
        score=found.score,
        tokens=estimate_text(f"{text}\n"),
        said_at=found.said_at,
        order=found.position * 1_000 + found.start // 1_000,
    )


def _recalled(chosen: Candidate, found: Found) -> RecalledTurn:
    return RecalledTurn(
        text=chosen.text,
        source=source_of(found),
        tokens=chosen.tokens,
        said_at=found.said_at,
        role=found.role,
        score=found.score,
    )
