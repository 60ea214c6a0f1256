"""Finds in a user's memory: for the search door, and what a question needs that its context lacks."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from uuid import UUID

from chatapp import jobs
from chatapp.actions.search import index_conversation
from chatapp.models import Branch
from chatapp.search_index import analyzer
from chatapp.selectors.branches import visible_spans
from chatapp.selectors.search import Found, rank_documents, read_found, unindexed_conversations
from memory.ranking import Candidate, read_question, select_recall
from memory.tokens import estimate_text

INDEX_NOW = 2_000
"""Messages indexed while somebody waits; more are left to the worker."""
MAX_CANDIDATES = 600
LOOKUP_WORDS = 2
PAGE = 150
LINE_TOKENS = 3
"""What a recalled turn takes beside its words: a line break and who said it."""


@dataclass(frozen=True, slots=True)
class RecalledTurn:
    """A turn's own words. `source` is what API.md calls so."""

    text: str
    source: dict[str, Any]
    tokens: int
    said_at: datetime
    role: str
    score: float

    @property
    def day(self) -> date:
        return self.said_at.date()


def index_rest(user_id: UUID) -> None:
    """What was said since the worker last looked, so that no search is behind."""
    left = INDEX_NOW
    for conversation_id, missing in unindexed_conversations(user_id, limit=100):
        if missing > left:
            jobs.wake_worker("index_conversation", str(conversation_id))
            continue
        left -= missing
        index_conversation(conversation_id)


def search_memory(*, user_id: UUID, query: str, limit: int, now: datetime) -> list[Found]:
    """The best matches of everything the user said, was told or has in memory, best first.

    One or two words are looked up: only what contains them is found. A question also finds the turns beside,
    because an answer seldom repeats the words it was asked with.
    """
    index_rest(user_id)
    question = read_question(query, analyzer, now.date())
    is_lookup = len(query.split()) <= LOOKUP_WORDS and "?" not in query
    ranking = rank_documents(user_id, question, limit * 2, only_matches=is_lookup)
    return _merge_pieces(read_found(user_id, ranking.ordinals, ranking.scores))[:limit]


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


def recall_for(
    *,
    user_id: UUID,
    question: str,
    now: datetime,
    budget_tokens: int,
    conversation_id: UUID | None = None,
    branch: Branch | None = None,
    in_view: Collection[str] = (),
) -> list[RecalledTurn]:
    """What the question needs, oldest first, within the budget; nothing where nothing fits.

    `in_view` are the ids of the messages the context holds already. Of the conversation itself only what `branch`
    shows comes back, and not its own memory entries: its summary is in the context.
    """
    index_rest(user_id)
    asked = read_question(question, analyzer, now.date())
    if asked.is_small_talk or budget_tokens <= 0:
        return []
    ranking = rank_documents(user_id, asked, MAX_CANDIDATES)
    if not ranking.fits:
        return []
    spans = dict(visible_spans(branch)) if branch else {}
    candidates: list[Candidate] = []
    sources: dict[str, Found] = {}
    tokens = 0
    for start in range(0, len(ranking.ordinals), PAGE):
        page = slice(start, start + PAGE)
        for found in read_found(user_id, ranking.ordinals[page], ranking.scores[page]):
            if _is_in_context(found, conversation_id, spans, in_view):
                continue
            candidate = _candidate(found)
            candidates.append(candidate)
            sources[candidate.key] = found
            tokens += candidate.tokens
        if tokens > 2 * budget_tokens:
            break
    return [_recalled(chosen, sources[chosen.key]) for chosen in select_recall(candidates, budget_tokens)]


def _is_in_context(
    found: Found, conversation_id: UUID | None, spans: dict[UUID, int | None], in_view: Collection[str]
) -> bool:
    if str(found.message_id) in in_view:
        return True
    if conversation_id is None or found.conversation_id != conversation_id:
        return False
    if found.kind == "entry":
        return True
    upto = spans.get(found.branch_id, -1) if spans and found.branch_id else None
    return upto is not None and found.position > upto


def _candidate(found: Found) -> Candidate:
    text = found.text if found.is_whole else f"[…] {found.text} […]"
    return Candidate(
        key=f"{found.message_id or found.entry_id}:{found.start}",
        text=text,
        score=found.score,
        tokens=estimate_text(text) + LINE_TOKENS,
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
