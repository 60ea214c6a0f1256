"""The tables of the search index: an inverted index per user.

Terms are stored as 64-bit hashes, and no text is stored: the texts of matches are read from their source rows.
"""

from __future__ import annotations

from uuid import uuid4

from django.conf import settings
from django.db import models
from django.db.models import Q

from chatapp.operations.database.ids import new_id

RECALL_PREVIEW_CHARS = 160
"""Characters of a recalled piece that events show."""


class SearchOwner(models.Model):
    """The index of one user or of an agent's shared memory, with its counters. An index of neither is being deleted.

    Writers of the index lock this row.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="+"
    )
    # A worker deletes the index of a deleted agent in batches: in one transaction it would block all others.
    scope = models.OneToOneField("chatapp.Agent", null=True, on_delete=models.SET_NULL, related_name="+")
    next_ordinal = models.PositiveIntegerField(default=0)
    sealed_ordinal = models.PositiveIntegerField(default=0, help_text="Documents below it are in blocks.")
    document_count = models.PositiveIntegerField(default=0)
    total_length = models.PositiveBigIntegerField(default=0)
    edition = models.UUIDField(
        default=uuid4,
        help_text="Another one with every write to what is sealed: what was read before is old.",
    )
    analysis_version = models.PositiveIntegerField(
        default=0,
        help_text="How the texts of its documents were read into terms: `search.index.ANALYSIS_VERSION`.",
    )
    analysed_ordinal = models.PositiveIntegerField(
        default=0,
        help_text="Documents below it have the terms of that version; those above may have older ones.",
    )
    vector_model = models.CharField(max_length=200, blank=True, help_text="Whose vectors it has.")
    embedded_ordinal = models.PositiveIntegerField(default=0, help_text="Documents below it have vectors.")

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(user=None) | Q(scope=None),
                name="search_owner_is_one_at_most",
            )
        ]


class SearchDocument(models.Model):
    """One searchable text: a message or a memory entry. A long text has several documents.

    `terms` are its term hashes (int64), `counts` how often each occurs (uint8). They are scored until the document is
    sealed into a block, and a deletion uses them to find the postings to clean.
    """

    class Kind(models.IntegerChoices):
        MESSAGE = 1
        ENTRY = 2

    owner = models.ForeignKey(SearchOwner, on_delete=models.CASCADE, related_name="documents")
    ordinal = models.PositiveIntegerField()
    kind = models.PositiveSmallIntegerField(choices=Kind)
    source_id = models.UUIDField()
    conversation = models.ForeignKey(
        "chatapp.Conversation", null=True, on_delete=models.SET_NULL, related_name="+"
    )
    start = models.PositiveIntegerField(default=0)
    end = models.PositiveIntegerField()
    previous = models.IntegerField(
        default=-1, help_text="The ordinal said just before, in the same conversation."
    )
    length = models.PositiveSmallIntegerField()
    said_at = models.DateTimeField()
    terms = models.BinaryField()
    counts = models.BinaryField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner", "ordinal"], name="search_document_ordinal_once")
        ]
        indexes = [
            # The documents of a message or entry that is deleted.
            models.Index(fields=["source_id"], name="search_document_source"),
        ]


class SearchBlock(models.Model):
    """The data for scoring consecutive documents, as packed columns (see `index_format`)."""

    owner = models.ForeignKey(SearchOwner, on_delete=models.CASCADE, related_name="blocks")
    number = models.PositiveIntegerField()
    columns = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["owner", "number"], name="search_block_once")]


class SearchPosting(models.Model):
    """The documents of a block that contain a term, and how often: for each a uint16 offset and a uint8 count."""

    # No own index on `owner`, here and below, because the constraint's index begins with it.
    owner = models.ForeignKey(SearchOwner, on_delete=models.CASCADE, related_name="+", db_index=False)
    term = models.BigIntegerField()
    block = models.PositiveIntegerField()
    entries = models.BinaryField()

    class Meta:
        constraints = [
            # The term comes before the block, because a search reads the rows of a term in all blocks.
            models.UniqueConstraint(fields=["owner", "term", "block"], name="search_posting_once"),
        ]


class SearchVectors(models.Model):
    """The vectors of one document: float16, of length 1; one for its whole text and one for each sentence."""

    owner = models.ForeignKey(SearchOwner, on_delete=models.CASCADE, related_name="+", db_index=False)
    ordinal = models.PositiveIntegerField()
    vectors = models.BinaryField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner", "ordinal"], name="search_vectors_of_document_once"),
        ]


class SearchCodes(models.Model):
    """The signs of the vectors of consecutive documents. A question is compared with them before any vector is read.
    `ordinals` (int32) has the document of each vector."""

    owner = models.ForeignKey(SearchOwner, on_delete=models.CASCADE, related_name="+", db_index=False)
    first_ordinal = models.PositiveIntegerField()
    last_ordinal = models.PositiveIntegerField()
    ordinals = models.BinaryField()
    codes = models.BinaryField()
    edition = models.UUIDField(default=uuid4, help_text="Another one with every write to this row.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner", "first_ordinal"], name="search_codes_once"),
        ]


class StoredClaim(models.Model):
    """A statement that gives `key` the value `value`, from `start` to `end` of a message or entry.

    It holds until `superseded_by`, a newer claim about the same key. Both rows stay.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    message = models.ForeignKey("chatapp.Message", null=True, on_delete=models.CASCADE, related_name="claims")
    entry = models.ForeignKey(
        "chatapp.MemoryEntry", null=True, on_delete=models.CASCADE, related_name="claims"
    )
    start = models.PositiveIntegerField()
    end = models.PositiveIntegerField()
    key = models.BigIntegerField()
    value = models.BigIntegerField()
    is_named = models.BooleanField(
        default=False, help_text="A model named it, with what took its place; not read from its words."
    )
    replaces = models.BooleanField(help_text="Whether it ends what was claimed before.")
    said_at = models.DateTimeField()
    superseded_by = models.ForeignKey("self", null=True, on_delete=models.SET_NULL, related_name="+")

    class Meta:
        indexes = [
            # All claims with one key, in order.
            models.Index(fields=["user", "key", "said_at"], name="claim_by_key"),
            # Whether a sentence of an entry still holds.
            models.Index(fields=["user", "value"], name="claim_by_value"),
        ]
