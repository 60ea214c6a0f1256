"""The tables of forgetting: receipts, tombstones, proposals, removals, and the trash."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import models
from django.db.models.functions import Substr

from chatapp.operations.database.ids import new_id

WORD_BYTES = 8
"""The size of one word in `Tombstone.words`."""


class ForgetReceipt(models.Model):
    """A record of one forgetting: when it happened, and how many rows of each kind it removed. It holds no content."""

    class What(models.TextChoices):
        ENTRY = "entry"
        MESSAGE = "message"
        CONVERSATION = "conversation"
        DAY = "day"
        EVERYTHING = "everything"
        CHOSEN = "chosen"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    what = models.CharField(max_length=12, choices=What)
    removed = models.JSONField(default=dict)
    at = models.DateTimeField()

    class Meta:
        # A user's receipts, newest first.
        indexes = [models.Index(fields=["user", "-at"], name="forget_receipt_by_user")]


class Tombstone(models.Model):
    """A forgotten sentence as a keyed fingerprint (see `memory.long_term.tombstones`).

    `words` holds packed int64 values. The row is deleted when the user asks to remember the sentence, unless it is
    `for_good`.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    whole = models.BigIntegerField()
    words = models.BinaryField()
    for_good = models.BooleanField(default=False, help_text="Its user wished that it is never remembered.")
    receipt = models.ForeignKey(
        ForgetReceipt,
        null=True,
        on_delete=models.CASCADE,
        related_name="tombstones",
        help_text="Of the forgetting that barred it; the user can undo that.",
    )
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "whole"], name="tombstone_once")]
        # Tombstones that may match a short sentence (`tombstones_about`).
        indexes = [models.Index("user", Substr("words", 1, WORD_BYTES), name="tombstone_by_first_word")]


class ForgetProposal(models.Model):
    """Messages and entries that the user may choose to forget. `items` holds their kinds and ids.

    `asked_in` is the chat message with the request, if any: it is forgotten with the chosen items.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    conversation = models.ForeignKey(
        "chatapp.Conversation", null=True, on_delete=models.CASCADE, related_name="+"
    )
    asked_in = models.UUIDField(null=True)
    items = models.JSONField(default=list)
    receipt = models.ForeignKey(ForgetReceipt, null=True, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField()


class Removal(models.Model):
    """A deletion done in pieces: of a conversation without a user, or of many messages and entries to forget.

    An import also has one until it is complete, so that an interrupted import is deleted. Ids replace foreign keys,
    because the row outlives the conversation, whose files are deleted last, and still names the owner.
    """

    class Phase(models.TextChoices):
        CHOSEN = "chosen", "messages and entries are to be forgotten"
        BEHIND = "behind", "they are; what requests kept of them and their place in the index go"
        IMPORT = "import", "rows are still being added"
        HIDE = "hide", "the index stops scoring it"
        TRACES = "traces", "what was made of it elsewhere is redacted"
        INDEX = "index", "its postings and documents go"
        ROWS = "rows", "its messages and all other rows go"
        FILES = "files", "its files go"

    LEASE = timedelta(seconds=90)
    """Longer than a worker spends on a removal in one task; each claim renews it."""

    conversation_id = models.UUIDField(unique=True, null=True, help_text="None where messages are `chosen`.")
    chosen = models.JSONField(default=dict, help_text="Ids by kind: of what is left to do in this phase.")
    user_id = models.UUIDField(db_index=True)  # query: the open removals of a user
    phase = models.CharField(max_length=8, choices=Phase)
    forgets = models.BooleanField(default=False, help_text="Redact what was made of it elsewhere.")
    keeps_rows = models.BooleanField(
        default=False, help_text="It goes to the trash: only its place in the index goes."
    )
    raises_tombstones = models.BooleanField(default=False)
    for_good = models.BooleanField(default=False)
    tombstone_count = models.PositiveIntegerField(default=0)
    entries = models.JSONField(default=dict, help_text="Deleted memory entries: text by id, until TRACES.")
    receipt = models.ForeignKey(ForgetReceipt, null=True, on_delete=models.SET_NULL, related_name="+")
    lease_expires_at = models.DateTimeField(db_index=True)  # the sweep: removals that no process holds
    created_at = models.DateTimeField(auto_now_add=True)

    @property
    def home(self) -> UUID:
        """Return the id of the conversation, which must be set."""
        assert self.conversation_id is not None
        return self.conversation_id


class TrashedConversation(models.Model):
    """A conversation in the trash. The conversation has no user meanwhile, so no request, search or run reaches it."""

    class Reason(models.TextChoices):
        BY_HAND = "by_hand", "deleted by its user: what was remembered of it goes with it"
        IDLE = "idle", "cleaned up: what was remembered of it stays"

    conversation = models.OneToOneField(
        "chatapp.Conversation", primary_key=True, on_delete=models.CASCADE, related_name="trashed"
    )
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    reason = models.CharField(max_length=8, choices=Reason)
    entries = models.JSONField(default=list, help_text="Ids of the memory entries that named it.")
    trashed_at = models.DateTimeField()
    purge_at = models.DateTimeField(db_index=True)  # query of the sweep: conversations due for deletion

    class Meta:
        # A user's trash, newest first.
        indexes = [models.Index(fields=["user", "-trashed_at"], name="trash_by_user")]
