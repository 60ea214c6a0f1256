"""Recalls for a model what a question needs and its context lacks. Writes nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from uuid import UUID

from chatapp.conversations.branches import visible_spans
from chatapp.conversations.models import Branch
from chatapp.long_term.selectors.pauses import ALL_ON_RECORD, OffRecord
from chatapp.long_term.selectors.scopes import ALL_OWN, Reach
from chatapp.recall.analysis import questions
from chatapp.recall.embedding import find_near_documents
from chatapp.recall.selectors.claims import Superseded
from chatapp.recall.selectors.found_texts import Found, source_of
from chatapp.recall.selectors.user_index import EVERYTHING, SearchFilter, UserIndex, open_index
from chatapp.recall.vectors import Near
from memory.questions import Question
from memory.ranking import MOST_PASSED_OVER, Candidate, RecallSize, add_nearness, select_recall
from memory.terms import describe_piece
from memory.tokens import estimate_text

MAX_CANDIDATES = 600
PAGE = 100
"""Candidates read at once after the first page, which is as long as will probably fill the room."""


@dataclass(frozen=True, slots=True)
class RecalledTurn:
    """One piece of text for the model, beginning with who said it. `source` is as the memory search shows it."""

    text: str
    source: dict[str, Any]
    tokens: int
    said_at: datetime
    role: str
    score: float
    start: int = 0
    end: int = 0
    quoted: tuple[UUID, ...] = ()
    """What else it quotes: the sources of what is so now."""

    @property
    def day(self) -> date:
        return self.said_at.date()


@dataclass(frozen=True, slots=True)
class InContext:
    """What the context that asks has already, and what it may not get.

    `message_ids` are in view. Of the conversation itself only what `branch` shows is recalled, and not its memory
    entries: its summary is in the context. What was said while memory was paused (`off_record`) is recalled in its own
    conversation alone; `reach` says what is known of others.
    """

    message_ids: Collection[str] = ()
    conversation_id: UUID | None = None
    branch: Branch | None = None
    off_record: OffRecord = ALL_ON_RECORD
    reach: Reach = ALL_OWN

    @property
    def only(self) -> SearchFilter:
        """What the search may find at all."""
        return EVERYTHING if self.reach.knows_own else SearchFilter(conversation_id=self.conversation_id)

    def keeps_out(self, found: Found) -> bool:
        """Return whether it was said in another conversation while memory was paused."""
        is_said = found.kind == "message" and not self._is_here(found.conversation_id)
        return is_said and self.off_record.covers(found.conversation_id, found.said_at)

    def keeps_out_newer(self, claim: Superseded) -> bool:
        """Return whether the statement that replaced a recalled one must not be shown here."""
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
    """Return what the question needs, oldest first, within the room; nothing where nothing fits."""
    asked = questions.read(question, now.date())
    if asked.is_small_talk or room.tokens <= 0 or room.chars <= 0:
        return []
    sources: dict[str, Found] = {}
    index = open_index(user_id, context.reach.scope_id)
    scored = _worth_recalling(index, asked, find_near_documents(index, question, context.only), context.only)
    chosen = select_recall(_candidates(index, scored, room, context, sources), room)
    return [_recalled(candidate, sources[candidate.key]) for candidate in chosen]


def _worth_recalling(
    index: UserIndex, question: Question, near: Near, only: SearchFilter
) -> dict[int, float]:
    """Return ordinals with their scores, best first; none where neither words nor meaning fit."""
    scored = dict(zip(*index.rank(question, MAX_CANDIDATES, only=only).worth_recalling(), strict=True))
    return add_nearness(scored, near.nearness) if scored or near.stands_out else {}


def _candidates(
    index: UserIndex,
    scored: dict[int, float],
    room: RecallSize,
    context: InContext,
    sources: dict[str, Found],
) -> Iterator[Candidate]:
    """Yield candidates, best first, reading texts only as far as they are asked for. Adds their texts to `sources`."""
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
    text = describe_piece(found.text, found.role, is_whole=found.is_whole)
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
        start=found.start,
        end=found.end,
    )
