"""Reads the search index of one user and ranks its documents for a question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from functools import cache, reduce
from typing import Literal
from uuid import UUID

from django.db.models import QuerySet

from agents.arrays import np
from chatapp.conversations.models import Conversation
from chatapp.operations.database.statements import columns_of, read_models
from chatapp.recall.analysis import analyzer, hash_term
from chatapp.recall.index_format import (
    Columns,
    FreshTerms,
    Hits,
    Ordinals,
    StoredTerms,
    blank_rows,
    join_all_hits,
    minute_of,
    sort_terms,
    unpack_columns,
)
from chatapp.recall.models import SearchDocument, SearchOwner, SearchVectors
from chatapp.recall.ranking import (
    NO_RANKING,
    Index,
    Mask,
    Prepared,
    Ranking,
    Scores,
    gather_forms,
    prepare,
    rank,
    score_words,
    speakers_asked_about,
)
from chatapp.recall.selectors.found_texts import Found, read_shared, read_stored, unindexed_found
from chatapp.recall.selectors.newest_index import UnsealedDocuments, open_newest
from chatapp.recall.selectors.sealed_index import Sealed, open_sealed
from chatapp.recall.selectors.shared_index import SharedIndex, open_shared
from chatapp.recall.selectors.unindexed import UnindexedDocument, unindexed_conversations, unindexed_documents
from chatapp.recall.selectors.vector_codes import open_codes
from chatapp.recall.vectors import NOTHING_NEAR, NearDocuments, count_code_words, find_near, pick_documents
from memory.language.terms import split_speaker
from memory.recall.questions import Question
from memory.recall.ranking import FEEDBACK_DOCUMENTS, Feedback, idf, weigh_feedback

SCORED_UNINDEXED = 500
"""A search scores this many unindexed messages from memory; others are found once the worker has indexed them."""
ASKED_AT_ONCE = 1_000
MOST_INSIDE = 50_000
"""Only this many of the newest documents of a conversation, folder or agent are searched."""
DEFAULT_AGENT: Literal["default"] = "default"
CHARS_PER_WORD = 10
"""Characters of an English turn per word that the index counts. It does not count stop words, spaces and names."""


@dataclass(frozen=True, slots=True)
class SearchFilter:
    """What may be found: said at `after` or later, before `before`, by `role` (empty: anybody), in a conversation, in a
    folder, with an agent (DEFAULT_AGENT: with none). Shared entries count as being in every place."""

    after: datetime | None = None
    before: datetime | None = None
    conversation_id: UUID | None = None
    folder_id: UUID | None = None
    agent_id: UUID | Literal["default"] | None = None
    role: str = ""

    def allows(self, found: Found) -> bool:
        if self.role and found.role != self.role:
            return False
        said_at = found.said_at
        return not (self.after and said_at < self.after) and not (self.before and said_at >= self.before)

    @property
    def limits_place_or_role(self) -> bool:
        """Return whether the filter limits places or roles, and not only times."""
        return bool(self.conversation_id or self.folder_id or self.agent_id or self.role)

    def conversations(self) -> QuerySet[Conversation] | None:
        """Return the conversations that the filter allows; None if it allows all."""
        rows = Conversation.objects.all()
        if self.conversation_id:
            rows = rows.filter(pk=self.conversation_id)
        if self.folder_id:
            rows = rows.filter(folder=self.folder_id)
        if self.agent_id:
            rows = rows.filter(agent=None if self.agent_id == DEFAULT_AGENT else self.agent_id)
        return rows if self.conversation_id or self.folder_id or self.agent_id else None


EVERYTHING = SearchFilter()


@dataclass(frozen=True, slots=True)
class UserIndex:
    """A snapshot of one user's index: the sealed documents, the `newest` ones, and from `first_unstored` on those that
    are not stored yet. The shared documents of a scope follow, if any."""

    user_id: UUID
    sealed: Sealed | None
    newest: UnsealedDocuments | None
    columns: Columns
    unstored: tuple[UnindexedDocument, ...]
    unstored_terms: FreshTerms
    first_unstored: int
    document_count: int
    total_length: int
    shared: SharedIndex
    hidden: frozenset[int] = frozenset()
    """Ordinals of documents to ignore, as if they had not been said."""

    def hiding(self, ordinals: Collection[int]) -> UserIndex:
        return replace(self, hidden=self.hidden.union(ordinals))

    @property
    def hides_everything(self) -> bool:
        # Ordinals stored after the index was opened do not count.
        return sum(ordinal < len(self.columns) for ordinal in self.hidden) >= self.document_count

    @property
    def _fresh(self) -> Sequence[FreshTerms]:
        """Return the terms of the documents in no block, by ordinal."""
        return (self.newest.terms, self.unstored_terms) if self.newest else (self.unstored_terms,)

    @property
    def owner_id(self) -> int | None:
        return self.sealed.owner_id if self.sealed else None

    def rank(
        self,
        question: Question,
        limit: int,
        *,
        zone: tzinfo,
        only_matches: bool = False,
        only: SearchFilter = EVERYTHING,
    ) -> Ranking:
        """Return the documents that match the question, best first. Read dates in the question in time zone `zone`."""
        if not self.document_count or not (question.words or question.names_a_time):
            return NO_RANKING
        if only_matches:
            question = question.as_written()
        index = gather_forms(self._loaded(question.lookups), question.forms)
        asked = prepare(index, question, zone, self._among(only))
        if only_matches:
            return rank(asked, limit, only_matches=True)
        return rank(asked, limit, feedback=self._feedback(asked, question))

    def read(self, ordinals: Sequence[int], scores: Sequence[float]) -> list[Found]:
        """Return the texts in the given order, without those whose source is gone."""
        scored = dict(zip(ordinals, scores, strict=True))
        stored = {at: score for at, score in scored.items() if at < self.first_unstored}
        found = read_stored(self.owner_id, stored)
        found |= {
            row.ordinal: unindexed_found(row, scored[row.ordinal])
            for row in self.unstored
            if row.ordinal in scored
        }
        shared = self.shared.documents([at for at in scored if at >= self.shared.first])
        found |= read_shared(self.user_id, shared, scored, self.shared.scope_id)
        return [found[at] for at in scored if at in found]

    def count_filling(self, ordinals: Sequence[int], chars: int) -> int:
        """Return how many of the first documents probably fill this many characters."""
        # Use 64 bits: the lengths are uint16, and the product would overflow.
        filled = np.cumsum(self.columns.length[list(ordinals)] * np.int64(CHARS_PER_WORD))
        return int(np.searchsorted(filled, chars))

    def near(self, asked: Sequence[float], model: str, only: SearchFilter = EVERYTHING) -> NearDocuments:
        """Return the documents near the vector of a question, among those with vectors of this model."""
        known = self._among(only)
        among = np.ones(len(self.columns), dtype=np.bool_) if known is None else known
        # Documents that are not stored yet, and shared ones, have no vectors.
        among[self.first_unstored :] = False
        if self.owner_id is None:
            return NOTHING_NEAR
        codes = open_codes(self.owner_id, model, count_code_words(asked))
        picked = pick_documents(codes, asked, among)
        wanted = {*picked.nearest, *picked.sample}
        rows = SearchVectors.objects.filter(owner=self.owner_id, ordinal__in=wanted)
        return find_near(picked, dict(rows.values_list("ordinal", "vectors")), asked)

    def messages_containing(
        self, words: Collection[str], limit: int, conversation_ids: Collection[UUID]
    ) -> list[Found]:
        """Return the messages of these conversations among the first `limit` texts with each of these words. The
        earliest texts show best where a word comes from."""
        hits = self._hits(words)
        ordinals = {int(ordinal) for found in hits.values() for ordinal in found.ordinals[:limit]}
        said = sorted(self._messages_among(ordinals, conversation_ids))
        return self.read(said, [0.0] * len(said))

    def messages_containing_all(self, word_sets: Iterable[frozenset[str]], limit: int) -> list[Found]:
        """Return the newest messages, `limit` at most, that contain all words of any of these sets."""
        wanted = list(word_sets)
        hits = self._hits(frozenset[str]().union(*wanted))
        ordinals: set[int] = set()
        nowhere = np.empty(0, dtype=np.int64)
        for words in wanted:
            held = [hits[word].ordinals if word in hits else nowhere for word in words]
            ordinals.update(_in_all(held)[-limit:].tolist())
        newest = sorted(self._messages_among(ordinals))[-limit:]
        return self.read(newest, [0.0] * len(newest))

    def _messages_among(
        self, ordinals: Collection[int], conversation_ids: Collection[UUID] | None = None
    ) -> list[int]:
        """Return the ordinals of messages among these, with `conversation_ids` only of these conversations."""
        stored = [at for at in ordinals if at < self.first_unstored]
        rows = SearchDocument.objects.filter(owner=self.owner_id, kind=SearchDocument.Kind.MESSAGE)
        if conversation_ids is not None:
            rows = rows.filter(conversation__in=list(conversation_ids))
        found = [
            at
            for first in range(0, len(stored), ASKED_AT_ONCE)
            for at in rows.filter(ordinal__in=stored[first : first + ASKED_AT_ONCE]).values_list(
                "ordinal", flat=True
            )
        ]
        return found + [
            row.ordinal
            for row in self.unstored
            if row.ordinal in ordinals
            and (conversation_ids is None or row.message.conversation_id in conversation_ids)
        ]

    def _loaded(self, terms: Iterable[str]) -> Index:
        return Index(self.columns, self._hits(terms), self.document_count, self.total_length)

    def _among(self, only: SearchFilter) -> Mask | None:
        if only == EVERYTHING and not self.hidden:
            return None
        among = np.ones(len(self.columns), dtype=np.bool_)
        among[[at for at in self.hidden if at < len(among)]] = False
        if only == EVERYTHING:
            return among
        if only.after:
            among &= self.columns.minute >= minute_of(only.after)
        if only.before:
            # Include the minute of the end, because `SearchFilter.allows` compares the exact times.
            among &= self.columns.minute <= minute_of(only.before)
        conversations = only.conversations()
        if conversations is not None:
            # The ordinal of a document that was stored after the index was opened may denote another one here.
            stored = SearchDocument.objects.filter(owner=self.owner_id, ordinal__lt=self.first_unstored)
            inside_of = stored.filter(conversation__in=conversations.values("pk")).order_by("-ordinal")
            here = list(inside_of.values_list("ordinal", flat=True)[:MOST_INSIDE])
            fresh = {row.message.conversation_id for row in self.unstored}
            known = set(conversations.filter(pk__in=fresh).values_list("pk", flat=True)) if fresh else set()
            here += [row.ordinal for row in self.unstored if row.message.conversation_id in known]
            inside = np.zeros(len(among), dtype=np.bool_)
            inside[here] = True
            inside[self.shared.first :] = True
            among &= inside
        return among

    def _feedback(self, asked: Prepared, question: Question) -> Scores | None:
        """Return scores by the words that the best texts add to the question (pseudo-relevance feedback)."""
        best = rank(asked, FEEDBACK_DOCUMENTS)
        found = self.read(best.ordinals, best.scores)
        if not found or best.scores[0] <= 0:
            return None
        texts = [
            Feedback(Counter(analyzer.words(split_speaker(each.text)[1])), each.score / best.scores[0])
            for each in found
        ]
        counts = self._document_counts({word for text in texts for word in text.words})
        known = {*question.own, *speakers_asked_about(asked.index, question)}
        weights = weigh_feedback(texts, lambda word: idf(self.document_count, counts[word]), known)
        return score_words(replace(asked.index, hits=self._hits(weights)), weights)

    def _document_counts(self, words: Collection[str]) -> Mapping[str, int]:
        """Return in how many documents each word occurs."""
        hashes = {hash_term(word): word for word in words}
        counts = Counter(self.sealed.counts(hashes) if self.sealed else {})
        for fresh in self._fresh:
            counts.update({term: len(found.ordinals) for term, found in fresh.hits(hashes).items()})
        counts.update(self.shared.counts(hashes))
        return {word: counts[term] for term, word in hashes.items()}

    def _hits(self, terms: Iterable[str]) -> dict[str, Hits]:
        hashes = {hash_term(term): term for term in terms}
        sealed = self.sealed.hits(hashes) if self.sealed else {}
        own = reduce(join_all_hits, (fresh.hits(hashes) for fresh in self._fresh), sealed)
        return {hashes[term]: found for term, found in join_all_hits(own, self.shared.hits(hashes)).items()}


def open_index(user_id: UUID, scope_id: UUID | None = None) -> UserIndex:
    """Return the index of a user and, with a scope, its shared memory. Writes nothing."""
    # Read this before the owner: a document stored in between is then found twice instead of not at all.
    behind = unindexed_conversations(user_id)
    owner = next((row for (row,) in read_models((SearchOwner,), _owner_statement(), user_id)), None)
    sealed, newest = (open_sealed(owner), open_newest(owner)) if owner else (None, None)
    end = owner.next_ordinal if owner else 0
    unstored = tuple(unindexed_documents(behind, end, SCORED_UNINDEXED))
    columns = _columns_of(unstored)
    if sealed and newest:
        columns = sealed.columns.followed_by(newest.columns).followed_by(columns)
    shared = open_shared(scope_id, end + len(unstored))
    packed = [row.document.packed for row in unstored]
    return UserIndex(
        user_id=user_id,
        sealed=sealed,
        newest=newest,
        columns=columns.followed_by(shared.columns) if len(shared.columns) else columns,
        unstored=unstored,
        unstored_terms=sort_terms(
            [
                StoredTerms(row.ordinal, row.document.packed.terms, row.document.packed.counts)
                for row in unstored
            ]
        ),
        first_unstored=end,
        document_count=(owner.document_count if owner else 0) + len(unstored) + shared.document_count,
        total_length=(owner.total_length if owner else 0)
        + sum(terms.length for terms in packed)
        + shared.total_length,
        shared=shared,
    )


@cache
def _owner_statement() -> str:
    return f"SELECT {columns_of(SearchOwner, 'owner')} FROM chatapp_searchowner AS owner WHERE owner.user_id = %s"


def _columns_of(documents: Sequence[UnindexedDocument]) -> Columns:
    rows = blank_rows(len(documents))
    for at, row in enumerate(documents):
        rows[at] = (row.previous, minute_of(row.document.said_at), row.document.packed.length, 1)
    return unpack_columns(rows)


def texts_of_documents(user_id: UUID, ordinals: range) -> dict[int, str]:
    """Return the texts of stored documents by ordinal, without those whose source is gone."""
    rows = SearchDocument.objects.filter(
        owner__user_id=user_id, ordinal__gte=ordinals.start, ordinal__lt=ordinals.stop
    )
    owners = dict(rows.values_list("ordinal", "owner"))
    found = read_stored(next(iter(owners.values()), None), dict.fromkeys(owners, 0.0))
    return {ordinal: found[ordinal].text for ordinal in owners if ordinal in found}


def _in_all(held: Iterable[Ordinals]) -> Ordinals:
    """Return the ordinals that all these sorted arrays contain. The shortest array decides how long it takes."""
    first, *others = sorted(held, key=len)
    for other in others:
        if not len(first):
            break
        at = np.minimum(np.searchsorted(other, first), len(other) - 1)
        first = first[other[at] == first]
    return first
