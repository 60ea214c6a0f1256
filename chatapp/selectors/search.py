"""Reads the search index of one user, and ranks what it holds for a question."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

import numpy as np
from django.db.models import Sum
from django.db.models.functions import Length

from chatapp.models import (
    SearchBlock,
    SearchCodes,
    SearchDocument,
    SearchOwner,
    SearchPosting,
    SearchVectors,
)
from chatapp.search_index import (
    BLOCK,
    COLUMNS,
    POSTING,
    Columns,
    StoredTerms,
    analyzer,
    hash_term,
    join_terms,
    minute_of,
    read_postings,
)
from chatapp.search_ranking import (
    NOTHING_LENT,
    Hits,
    Index,
    Mask,
    Ranking,
    gather_kinds,
    rank,
    speakers_asked_about,
)
from chatapp.search_vectors import Near, find_near, pick_documents
from chatapp.selectors.scopes import shared_documents
from chatapp.selectors.search_sources import Found, Place, read_places
from chatapp.selectors.unindexed import conversations_behind, unindexed_documents
from memory.questions import Question
from memory.ranking import FEEDBACK_DOCUMENTS, Feedback, idf, weigh_feedback
from memory.terms import split_speaker

SCORED_UNINDEXED = 500
"""Messages that the index lacks and a search scores from memory; more are found once the worker was there."""
CHARS_PER_WORD = 10
"""Of an English turn, for each word the index counts: stop words, spaces and names come with them."""


@dataclass(frozen=True, slots=True)
class SearchFilter:
    """What may be found: said at `after` or later, earlier than `before`, in one conversation or what is shared."""

    after: datetime | None = None
    before: datetime | None = None
    conversation_id: UUID | None = None

    def allows(self, said_at: datetime) -> bool:
        return not (self.after and said_at < self.after) and not (self.before and said_at >= self.before)


EVERYTHING = SearchFilter()


@dataclass(frozen=True, slots=True)
class UserIndex:
    """One user's index as it is now. `unsealed` are its newest documents, those that are not stored yet behind them,
    and from `first_shared` on what the scope shares, where there is one."""

    user_id: UUID
    owner_id: int | None
    columns: Columns
    unsealed: tuple[SearchDocument, ...]
    first_unstored: int
    document_count: int
    total_length: int
    scope_id: UUID | None = None
    first_shared: int = 0

    def rank(
        self,
        question: Question,
        limit: int,
        *,
        only_matches: bool = False,
        only: SearchFilter = EVERYTHING,
    ) -> Ranking:
        if not self.document_count or not (question.words or question.dates):
            return Ranking([], [], False)
        index = self._loaded(question.lookups)
        among = self._among(only)
        if only_matches:
            return rank(index, question, limit, only_matches=True, among=among)
        index = gather_kinds(index, question.kinds)
        lent = self._lent(index, question, among)
        index = replace(index, hits={**index.hits, **self._hits(lent)})
        return rank(index, question, limit, lent=lent, among=among)

    def read(self, ordinals: Sequence[int], scores: Sequence[float]) -> list[Found]:
        """In the order given; what lost its source meanwhile is left out."""
        places = self._places(ordinals)
        scored = zip(ordinals, scores, strict=True)
        found = [(places[at], score) for at, score in scored if at in places]
        return read_places(self.user_id, found, self.scope_id)

    def count_filling(self, ordinals: Sequence[int], chars: int) -> int:
        """How many of them, taken in order, are likely to fill so many characters."""
        filled = np.cumsum(self.columns["length"][list(ordinals)] * np.int64(CHARS_PER_WORD))
        return int(np.searchsorted(filled, chars))

    def near(self, asked: Sequence[float], model: str, only: SearchFilter = EVERYTHING) -> Near:
        """What is near a question's vector, of what has vectors of this model."""
        known = self._among(only)
        among = np.ones(len(self.columns), dtype=np.bool_) if known is None else known
        # Nor has it vectors of what is not stored yet.
        among[self.first_unstored :] = False
        codes = SearchCodes.objects.filter(owner=self.owner_id, owner__vector_model=model)
        blocks = list(codes.order_by("first_ordinal").values_list("ordinals", "codes"))
        picked = pick_documents(blocks, asked, among)
        wanted = {*picked.nearest, *picked.sample}
        rows = SearchVectors.objects.filter(owner=self.owner_id, ordinal__in=wanted)
        return find_near(picked, dict(rows.values_list("ordinal", "vectors")), asked)

    def holding(self, words: Collection[str], limit: int) -> list[Found]:
        """Texts with one of these words, of each word the first `limit`; the earliest say most of where it is from."""
        hits = self._hits(words)
        ordinals = sorted({int(ordinal) for found in hits.values() for ordinal in found.ordinals[:limit]})
        return self.read(ordinals, [0.0] * len(ordinals))

    def _places(self, ordinals: Sequence[int]) -> dict[int, Place]:
        stored = [ordinal for ordinal in ordinals if ordinal < self.first_unstored]
        rows = SearchDocument.objects.filter(owner=self.owner_id, ordinal__in=stored)
        columns = rows.values_list("ordinal", "kind", "source_id", "start", "end")
        places = {ordinal: Place(kind, source, start, end) for ordinal, kind, source, start, end in columns}
        for row in self.unsealed:
            places[row.ordinal] = Place(row.kind, row.source_id, row.start, row.end)
        return places

    def _loaded(self, terms: Iterable[str]) -> Index:
        return Index(self.columns, self._hits(terms), self.document_count, self.total_length)

    def _among(self, only: SearchFilter) -> Mask | None:
        if only == EVERYTHING:
            return None
        among = np.ones(len(self.columns), dtype=np.bool_)
        if only.after:
            among &= self.columns["minute"] >= minute_of(only.after)
        if only.before:
            among &= self.columns["minute"] <= minute_of(only.before)
        if only.conversation_id:
            # What came in since has ordinals that stand for something else in this index.
            stored = SearchDocument.objects.filter(owner=self.owner_id, ordinal__lt=self.first_unstored)
            here = list(stored.filter(conversation=only.conversation_id).values_list("ordinal", flat=True))
            here += [row.ordinal for row in self.unsealed if row.conversation_id == only.conversation_id]
            inside = np.zeros(len(among), dtype=np.bool_)
            inside[here] = True
            inside[self.first_shared :] = True
            among &= inside
        return among

    def _lent(self, index: Index, question: Question, among: Mask | None) -> Mapping[str, float]:
        """What the best texts add to the question."""
        best = rank(index, question, FEEDBACK_DOCUMENTS, among=among)
        found = self.read(best.ordinals, best.scores)
        if not found or best.scores[0] <= 0:
            return NOTHING_LENT
        texts = [
            Feedback(Counter(analyzer.words(split_speaker(each.text)[1])), each.score / best.scores[0])
            for each in found
        ]
        counts = self._document_counts({word for text in texts for word in text.words})
        known = {*question.words, *speakers_asked_about(index, question)}
        return weigh_feedback(texts, lambda word: idf(self.document_count, counts[word]), known)

    def _document_counts(self, words: Iterable[str]) -> Mapping[str, int]:
        """In how many documents each word stands, without reading where."""
        hashes = {hash_term(word): word for word in words}
        counts: Counter[str] = Counter()
        rows = SearchPosting.objects.filter(owner=self.owner_id, term__in=list(hashes)).values("term")
        for term, size in rows.annotate(size=Sum(Length("entries"))).values_list("term", "size"):
            counts[hashes[term]] += size // POSTING.itemsize
        for term, found in _unsealed_hits(self.unsealed, list(hashes)):
            counts[hashes[term]] += len(found.ordinals)
        return counts

    def _hits(self, terms: Iterable[str]) -> dict[str, Hits]:
        """Sealed postings first, then those of the unsealed: ascending ordinals."""
        hashes = {hash_term(term): term for term in terms}
        parts: dict[str, list[Hits]] = defaultdict(list)
        rows = SearchPosting.objects.filter(owner=self.owner_id, term__in=list(hashes)).order_by("block")
        for term, block, entries in rows.values_list("term", "block", "entries"):
            postings = read_postings(entries)
            # What was said since this index was opened is not in its columns.
            postings = postings[: np.searchsorted(postings["offset"], self.first_unstored - block * BLOCK)]
            parts[hashes[term]].append(Hits(postings["offset"] + np.int64(block * BLOCK), postings["count"]))
        for hashed, found in _unsealed_hits(self.unsealed, list(hashes)):
            parts[hashes[hashed]].append(found)
        return {term: _join(found) for term, found in parts.items()}


def open_index(user_id: UUID, scope_id: UUID | None = None) -> UserIndex:
    """Read-only. What is not indexed yet is read first: nothing can fall between it and the index. With a scope, what
    it shares is found, too."""
    behind = conversations_behind(user_id)
    owner = SearchOwner.objects.filter(user_id=user_id).first()
    sealed, end = (owner.sealed_ordinal, owner.next_ordinal) if owner else (0, 0)
    rows = SearchDocument.objects.filter(owner=owner, ordinal__gte=sealed, ordinal__lt=end)
    fresh = unindexed_documents(behind, end, SCORED_UNINDEXED)
    shared = shared_documents(scope_id, end + len(fresh))
    unstored = [*fresh, *shared]
    unsealed = [*rows.order_by("ordinal"), *unstored]
    return UserIndex(
        user_id=user_id,
        owner_id=owner.pk if owner else None,
        columns=_columns(owner, end + len(unstored), unsealed),
        unsealed=tuple(unsealed),
        first_unstored=end,
        document_count=(owner.document_count if owner else 0) + len(unstored),
        total_length=(owner.total_length if owner else 0) + sum(row.length for row in unstored),
        scope_id=scope_id,
        first_shared=end + len(fresh),
    )


def texts_of_documents(user_id: UUID, ordinals: range) -> dict[int, str]:
    """The words of stored documents, by ordinal; without those that lost their source."""
    rows = SearchDocument.objects.filter(
        owner__user_id=user_id, ordinal__gte=ordinals.start, ordinal__lt=ordinals.stop
    )
    columns = rows.values_list("ordinal", "kind", "source_id", "start", "end")
    texts = {}
    for ordinal, kind, source, start, end in columns:
        for found in read_places(user_id, [(Place(kind, source, start, end), 0.0)]):
            texts[ordinal] = found.text
    return texts


def _columns(owner: SearchOwner | None, size: int, unsealed: Sequence[SearchDocument]) -> Columns:
    columns = np.zeros(size, COLUMNS)
    columns["previous"] = -1
    for number, stored in SearchBlock.objects.filter(owner=owner).values_list("number", "columns"):
        block = np.frombuffer(stored, COLUMNS)[: size - number * BLOCK]
        columns[number * BLOCK : number * BLOCK + len(block)] = block
    for row in unsealed:
        columns[row.ordinal] = (row.previous, minute_of(row.said_at), row.length, 1)
    return columns


def _join(parts: Sequence[Hits]) -> Hits:
    return Hits(
        np.concatenate([part.ordinals for part in parts]), np.concatenate([part.counts for part in parts])
    )


def _unsealed_hits(rows: Sequence[SearchDocument], hashes: list[int]) -> Iterator[tuple[int, Hits]]:
    terms, ordinals, counts = join_terms([StoredTerms(row.ordinal, row.terms, row.counts) for row in rows])
    wanted = np.isin(terms, np.array(hashes, dtype=np.int64))
    terms, ordinals, counts = terms[wanted], ordinals[wanted], counts[wanted]
    for hashed in set(terms.tolist()):
        here = terms == hashed
        yield hashed, Hits(ordinals[here], counts[here])
