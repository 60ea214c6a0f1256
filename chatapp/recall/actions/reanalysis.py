"""Updates an index that an older version of the analysis wrote. Documents keep their ordinals and vectors, and stay
searchable."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID, uuid4

from django.db import transaction

from agents.arrays import np
from chatapp.conversations.models import Conversation, Message
from chatapp.long_term.models import MemoryEntry
from chatapp.recall.actions.claims import note_entries, note_messages
from chatapp.recall.analysis import ANALYSIS_VERSION, PackedTerms
from chatapp.recall.index_format import BLOCK, COLUMNS, change_postings, count_terms
from chatapp.recall.models import SearchBlock, SearchDocument, SearchOwner, SearchPosting
from chatapp.recall.selectors.reanalysis import Reanalysis, reanalyse

PIECES_AT_ONCE = 5
"""The sweep starts another task for the rest, so that other users' work can run in between."""
# Some SQLite builds allow only 999 parameters per statement; owner and block take two more.
_TERMS_PER_QUERY = 900

Changes = Mapping[int, Mapping[int, int]]
"""New counts by term and offset in the block. A count of 0 removes the posting."""


def reanalyse_some(owner_id: int) -> None:
    """Reanalyse the next documents of an index and store the differences. Idempotent, and safe to run concurrently."""
    for _ in range(PIECES_AT_ONCE):
        owner = SearchOwner.objects.filter(pk=owner_id).first()
        if owner is None:
            return
        first = owner.analysed_ordinal if owner.analysis_version == ANALYSIS_VERSION else 0
        if first >= owner.next_ordinal:
            return
        found = reanalyse(owner, first)
        # Store claims before the mark moves on: after a crash in between, these documents are analysed again.
        _note_claims(found)
        if not _store(owner, found):
            return


def _note_claims(found: Reanalysis) -> None:
    messages = Message.objects.filter(pk__in=found.messages, conversation__user__isnull=False)
    for conversation_id in sorted(set(messages.values_list("conversation_id", flat=True))):
        _note_messages(conversation_id, found.messages)
    for entry_id in found.entries:
        _note_entry(entry_id)


@transaction.atomic
def _note_messages(conversation_id: UUID, message_ids: Iterable[UUID]) -> None:
    conversation = Conversation.objects.select_for_update().filter(pk=conversation_id).first()
    if conversation is not None:
        # Same lock order as for indexing: the conversation or the entry, then the index.
        SearchOwner.objects.select_for_update().filter(user_id=conversation.owner_id).first()
        rows = Message.objects.filter(conversation=conversation, pk__in=message_ids)
        note_messages(conversation.owner_id, rows.only("role", "parts", "created_at"))


@transaction.atomic
def _note_entry(entry_id: UUID) -> None:
    entry = MemoryEntry.objects.select_for_update().filter(pk=entry_id).first()
    if entry is not None:
        SearchOwner.objects.select_for_update().filter(user_id=entry.user_id).first()
        note_entries(entry.user_id, [entry])


@transaction.atomic
def _store(read: SearchOwner, found: Reanalysis) -> bool:
    """Store the terms that differ; return False if another worker was faster or the index was deleted."""
    owner = SearchOwner.objects.select_for_update().filter(pk=read.pk).first()
    before = (read.analysis_version, read.analysed_ordinal)
    if owner is None or (owner.analysis_version, owner.analysed_ordinal) != before:
        return False
    # Documents that were removed or indexed again meanwhile are skipped, because their rows are gone.
    rows = list(SearchDocument.objects.filter(owner=owner, pk__in=found.terms).order_by("ordinal"))
    sealed = [row for row in rows if row.ordinal < owner.sealed_ordinal]
    for number in sorted({row.ordinal // BLOCK for row in sealed}):
        _change_block(owner, number, [row for row in sealed if row.ordinal // BLOCK == number], found.terms)
    for row in rows:
        packed = found.terms[row.pk]
        owner.total_length += packed.length - row.length
        row.terms, row.counts, row.length = packed.terms, packed.counts, packed.length
    SearchDocument.objects.bulk_update(rows, ["terms", "counts", "length"], batch_size=200)
    if rows:
        owner.edition = uuid4()
    owner.analysis_version, owner.analysed_ordinal = ANALYSIS_VERSION, found.end
    owner.save(update_fields=["analysis_version", "analysed_ordinal", "total_length", "edition"])
    return True


def _change_block(
    owner: SearchOwner, number: int, rows: Sequence[SearchDocument], terms: Mapping[int, PackedTerms]
) -> None:
    block = SearchBlock.objects.get(owner=owner, number=number)
    columns = np.frombuffer(block.columns, COLUMNS).copy()
    for row in rows:
        columns["length"][row.ordinal % BLOCK] = terms[row.pk].length
    block.columns = columns.tobytes()
    block.save(update_fields=["columns"])
    changes = _changes(rows, terms)
    changed = sorted(changes)
    for start in range(0, len(changed), _TERMS_PER_QUERY):
        _change_postings(owner, number, changes, changed[start : start + _TERMS_PER_QUERY])


def _changes(rows: Sequence[SearchDocument], terms: Mapping[int, PackedTerms]) -> Changes:
    changes: dict[int, dict[int, int]] = defaultdict(dict)
    for row in rows:
        packed = terms[row.pk]
        old, new = count_terms(row.terms, row.counts), count_terms(packed.terms, packed.counts)
        for term in old.keys() | new.keys():
            if old.get(term) != new.get(term):
                changes[term][row.ordinal % BLOCK] = new.get(term, 0)
    return changes


def _change_postings(owner: SearchOwner, number: int, changes: Changes, terms: Sequence[int]) -> None:
    known = {row.term: row for row in SearchPosting.objects.filter(owner=owner, block=number, term__in=terms)}
    new = [
        SearchPosting(owner=owner, term=term, block=number, entries=b"")
        for term in terms
        if term not in known
    ]
    for row in (*known.values(), *new):
        row.entries = change_postings(row.entries, changes[row.term])
    SearchPosting.objects.bulk_create([row for row in new if row.entries])
    kept = [row for row in known.values() if row.entries]
    SearchPosting.objects.bulk_update(kept, ["entries"], batch_size=200)
    gone = [row.pk for row in known.values() if not row.entries]
    SearchPosting.objects.filter(pk__in=gone).delete()
