"""Recalls texts that a question needs and the model's context lacks. Writes nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, tzinfo
from typing import Any
from uuid import UUID

from chatapp.conversations.branches import is_visible, visible_spans
from chatapp.conversations.models import Branch
from chatapp.long_term.selectors.pauses import NO_PAUSES, MemoryPauses
from chatapp.long_term.selectors.scopes import FULL_ACCESS, MemoryAccess
from chatapp.operations.clock import in_zone
from chatapp.recall.analysis import questions
from chatapp.recall.embedding import find_near_documents
from chatapp.recall.selectors.claims import Superseded
from chatapp.recall.selectors.found_texts import Found, source_of, unindexed_found
from chatapp.recall.selectors.known_documents import ordinals_kept_out, ordinals_of_messages
from chatapp.recall.selectors.user_index import EVERYTHING, SearchFilter, UserIndex, open_index
from memory.language.terms import describe_piece
from memory.recall.ranking import (
    LITTLE,
    MOST_PASSED_OVER,
    REMARK_EVIDENCE,
    Candidate,
    RecallSize,
    add_nearness,
    select_recall,
)
from memory.tokens import estimate_text

MAX_CANDIDATES = 600
PAGE = 100
"""Candidates per page after the first page, which is sized to probably fill the room."""
READ_CHARS_PER_TOKEN = 5
"""The first page has this many characters per token of room. Nearly all texts have fewer."""


@dataclass(frozen=True, slots=True)
class Newer:
    """A statement that replaced a recalled one at `until`. It is at `start` to `end` of its source."""

    source_id: UUID
    start: int
    end: int
    until: datetime
    text: str

    @property
    def note(self) -> str:
        return f" [until {self.until:%Y-%m-%d}; then: {self.text}]"


@dataclass(frozen=True, slots=True)
class RecalledTurn:
    """One piece of text for the model, starting with its speaker. `source` has the format of the memory search."""

    text: str
    source: dict[str, Any]
    tokens: int
    said_at: datetime
    role: str
    score: float
    start: int = 0
    end: int = 0
    newer: tuple[Newer, ...] = ()
    """Newer statements that replace statements in this piece."""

    @property
    def day(self) -> date:
        return self.said_at.date()

    @property
    def source_id(self) -> UUID:
        """Return the id of the message or entry that the turn is a piece of."""
        return UUID(self.source.get("message_id") or self.source["entry_id"])

    @property
    def key(self) -> str:
        """Return the key of this piece. It does not depend on the question."""
        return piece_key(self.source_id, self.start)

    def with_notes(self) -> RecalledTurn:
        """Return the turn with a note for each statement in it that was replaced."""
        # One newer statement may replace several statements of this piece.
        note = "".join(dict.fromkeys(newer.note for newer in self.newer))
        return (
            replace(self, text=self.text + note, tokens=self.tokens + estimate_text(note)) if note else self
        )


def piece_key(source_id: UUID, start: int) -> str:
    return f"{source_id}:{start}"


@dataclass(frozen=True, slots=True)
class InContext:
    """What the context of a request already shows, and what it must not show.

    The context shows `message_ids` and `pieces` (by key). From the conversation itself, recall returns only messages
    that `branch` shows, and no memory entries, because its summary is in the context. Texts said while memory was
    paused (`pauses`) are recalled only in their own conversation. `access` limits what is read from elsewhere.
    """

    message_ids: Collection[str] = ()
    pieces: Collection[str] = ()
    conversation_id: UUID | None = None
    branch: Branch | None = None
    pauses: MemoryPauses = NO_PAUSES
    access: MemoryAccess = FULL_ACCESS
    zone: tzinfo = UTC
    """The time zone of days that the question names, and of the days under which recalled texts are shown."""

    @property
    def only(self) -> SearchFilter:
        """Return the filter of the search: only this conversation, if the user's own memory may not be read."""
        return EVERYTHING if self.access.reads_own else SearchFilter(conversation_id=self.conversation_id)

    def keeps_out(self, found: Found) -> bool:
        """Return whether the text was said in another conversation while memory was paused."""
        is_said = found.kind == "message" and not self._is_here(found.conversation_id)
        return is_said and self.pauses.covers(found.conversation_id, found.said_at)

    def may_show(self, found: Found) -> bool:
        """Return whether a text that was recalled here before may be shown here again."""
        is_known = self.access.reads_own or found.kind == "shared" or self._is_here(found.conversation_id)
        return is_known and not self.keeps_out(found)

    def keeps_out_newer(self, claim: Superseded) -> bool:
        """Return whether a statement that replaced a recalled one must not be shown, e.g. from another branch."""
        if self._is_here(claim.conversation_id):
            return self.branch is not None and not is_visible(self.spans(), claim.branch_id, claim.position)
        is_said = claim.message_id is not None
        was_paused = is_said and self.pauses.covers(claim.conversation_id, claim.until)
        return was_paused or not self.access.reads_own

    def _is_here(self, conversation_id: UUID | None) -> bool:
        return conversation_id is not None and conversation_id == self.conversation_id

    def spans(self) -> dict[UUID, int | None]:
        return visible_spans(self.branch) if self.branch else {}


NO_CONTEXT = InContext()


def recall_for(
    *,
    user_id: UUID,
    question: str,
    now: datetime,
    room: RecallSize,
    context: InContext = NO_CONTEXT,
    most_tokens: int | None = None,
) -> list[RecalledTurn]:
    """Return the turns that the question needs, oldest first, within `room`; empty if nothing matches. `most_tokens` is
    the maximum for any question, and clear evidence takes less; None means fill the room."""
    if room.tokens <= 0 or room.chars <= 0:
        return []
    index = open_index(user_id, context.access.scope_id)
    index = index.hiding(_known_ordinals(index, context))
    # There is nothing to search, e.g. in a user's first conversation.
    if index.hides_everything:
        return []
    asked = questions.read(question, in_zone(now, context.zone).date())
    # Return before calling the embeddings endpoint, or each greeting would wait for it.
    if asked.is_small_talk:
        return []
    sources: dict[str, Found] = {}
    near = find_near_documents(index, question, context.only)
    ranking = index.rank(asked, MAX_CANDIDATES, only=context.only, zone=context.zone)
    is_clear = ranking.is_clear or near.stands_out
    if asked.is_remark and not is_clear and ranking.evidence < REMARK_EVIDENCE:
        return []
    if asked.is_vague or not is_clear:
        room = room.at_most(LITTLE)
    elif most_tokens is not None:
        room = replace(room, tokens=min(room.tokens, int(ranking.needed * most_tokens)))
    little = index.count_filling(ranking.ordinals, LITTLE.chars)
    scored = add_nearness(ranking.worth_recalling(little), near.nearness)
    chosen = select_recall(_candidates(index, scored, room, context, sources), room)
    return [describe_found(sources[candidate.key], context.zone) for candidate in chosen]


def _known_ordinals(index: UserIndex, context: InContext) -> set[int]:
    """Return the documents that the context already shows or must not show. The question is one of them: as its own
    best match, it would make all other evidence look weak."""
    spans = context.spans()
    known = {
        row.ordinal for row in index.unstored if _is_in_context(unindexed_found(row, 0.0), context, spans)
    }
    if index.owner_id is not None and context.message_ids:
        known |= ordinals_of_messages(index.owner_id, context.message_ids)
    if index.owner_id is not None and context.conversation_id is not None:
        known |= ordinals_kept_out(index.owner_id, context.conversation_id, spans)
    return known


def _candidates(
    index: UserIndex,
    scored: dict[int, float],
    room: RecallSize,
    context: InContext,
    sources: dict[str, Found],
) -> Iterator[Candidate]:
    """Yield candidates, best first, and add their texts to `sources`. Read texts only as far as they are needed."""
    ordinals, scores = list(scored), list(scored.values())
    spans = context.spans()
    likely_chars = min(room.chars, READ_CHARS_PER_TOKEN * room.tokens)
    first_page = index.count_filling(ordinals, likely_chars) + MOST_PASSED_OVER
    for page in _pages(first_page, len(ordinals)):
        for found in index.read(ordinals[page], scores[page]):
            if not (context.keeps_out(found) or _is_in_context(found, context, spans)):
                candidate = _candidate(found, context.zone)
                sources[candidate.key] = found
                yield candidate


def _pages(first_page: int, count: int) -> Iterator[slice]:
    yield slice(first_page)
    for start in range(first_page, count, PAGE):
        yield slice(start, start + PAGE)


def _is_in_context(found: Found, context: InContext, spans: dict[UUID, int | None]) -> bool:
    if (
        str(found.message_id) in context.message_ids
        or piece_key(found.source_id, found.start) in context.pieces
    ):
        return True
    if context.conversation_id is None or found.conversation_id != context.conversation_id:
        return False
    if found.kind == "entry":
        return True
    # Of another branch nothing may be shown.
    return bool(spans and found.branch_id) and not is_visible(spans, found.branch_id, found.position)


def _candidate(found: Found, zone: tzinfo) -> Candidate:
    turn = describe_found(found, zone)
    return Candidate(
        key=turn.key,
        text=turn.text,
        score=found.score,
        tokens=turn.tokens,
        said_at=turn.said_at,
        # Order by message, then by place in it. MAX_MESSAGE_CHARS is a million by default.
        order=found.position * 1_000 + found.start // 1_000,
    )


def describe_found(found: Found, zone: tzinfo) -> RecalledTurn:
    """Return a found piece as the model reads it, dated in `zone`."""
    text = describe_piece(found.text, found.role, is_whole=found.is_whole)
    return RecalledTurn(
        text=text,
        source=source_of(found),
        # Include the line break that separates this piece from the next.
        tokens=estimate_text(f"{text}\n"),
        said_at=in_zone(found.said_at, zone),
        role=found.role,
        score=found.score,
        start=found.start,
        end=found.end,
    )
