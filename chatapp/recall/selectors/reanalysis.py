"""Analyses indexed texts again and finds what an older version of the analysis stored differently."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from uuid import UUID

from django.db.models import F, Q

from chatapp.conversations import message_values
from chatapp.conversations.models import Message
from chatapp.long_term.models import MemoryEntry
from chatapp.recall.analysis import ANALYSIS_VERSION, PackedTerms, pack_terms, vocabulary
from chatapp.recall.models import SearchDocument, SearchOwner, StoredClaim
from chatapp.recall.selectors.claims import hash_claim
from memory.long_term.claims import find_claims

INDEXES_AT_ONCE = 20
DOCUMENTS_AT_ONCE = 200
"""They are read and analysed without a lock. Nearly always, little or nothing is then written under it."""

ClaimValues = tuple[int, int, int, int, bool]


@dataclass(frozen=True, slots=True)
class Reanalysis:
    """Differences in documents `first` to `end` of an index: terms by the primary key of the document, and the messages
    and entries whose claims differ."""

    first: int
    end: int
    terms: Mapping[int, PackedTerms]
    messages: Collection[UUID]
    entries: Collection[UUID]


def indexes_to_reanalyse() -> list[int]:
    """Return the ids of some indexes that have documents analysed by an older version."""
    is_older = ~Q(analysis_version=ANALYSIS_VERSION) | Q(analysed_ordinal__lt=F("next_ordinal"))
    # An index without an owner is being deleted.
    is_owned = Q(user__isnull=False) | Q(scope__isnull=False)
    owners = SearchOwner.objects.filter(is_older, is_owned, next_ordinal__gt=0)
    return list(owners.order_by("pk").values_list("pk", flat=True)[:INDEXES_AT_ONCE])


def reanalyse(owner: SearchOwner, first: int) -> Reanalysis:
    """Analyse the documents of an index from ordinal `first` on again. Writes nothing."""
    end = min(first + DOCUMENTS_AT_ONCE, owner.next_ordinal)
    rows = list(SearchDocument.objects.filter(owner=owner, ordinal__gte=first, ordinal__lt=end))
    sources = {row.source_id for row in rows}
    messages = Message.objects.only("role", "parts").in_bulk(list(sources))
    entries = MemoryEntry.objects.only("text", "author", "compaction").in_bulk(list(sources))
    texts = {pk: message_values.text_of(message.parts) for pk, message in messages.items()}
    texts |= {pk: entry.text for pk, entry in entries.items()}
    said = {pk: texts[pk] for pk, message in messages.items() if message.role == Message.Role.USER}
    noted = {pk: texts[pk] if _claims_itself(entry) else "" for pk, entry in entries.items()}
    # A scope's documents are copies, and claims belong to users.
    return Reanalysis(
        first=first,
        end=end,
        terms=_other_terms(rows, texts),
        messages=_other_claims("message_id", said) if owner.user_id else (),
        entries=_other_claims("entry_id", noted) if owner.user_id else (),
    )


def _other_terms(rows: Collection[SearchDocument], texts: Mapping[UUID, str]) -> dict[int, PackedTerms]:
    packed = {
        row.pk: pack_terms(texts[row.source_id][row.start : row.end])
        for row in rows
        if row.source_id in texts
    }
    return {
        row.pk: packed[row.pk]
        for row in rows
        if row.pk in packed and PackedTerms(bytes(row.terms), bytes(row.counts), row.length) != packed[row.pk]
    }


def _claims_itself(entry: MemoryEntry) -> bool:
    """Return whether the entry has claims of its own. Extracted entries repeat those of messages."""
    return entry.author == MemoryEntry.Author.USER and entry.compaction_id is None


def _other_claims(source: str, texts: Mapping[UUID, str]) -> list[UUID]:
    """Return the sources whose stored claims differ from the claims in their texts."""
    noted: dict[UUID, set[ClaimValues]] = defaultdict(set)
    rows = StoredClaim.objects.filter(**{f"{source}__in": list(texts)}, is_named=False)
    for pk, *values in rows.values_list(source, "start", "end", "key", "value", "replaces"):
        noted[pk].add(tuple(values))
    return [pk for pk, text in texts.items() if _read_claims(text) != noted[pk]]


def _read_claims(text: str) -> set[ClaimValues]:
    return {
        (claim.start, claim.end, claim.key, claim.value, claim.replaces)
        for claim in map(hash_claim, find_claims(text, vocabulary))
    }
