"""The tables of long-term memory: entries with their revisions and sources, pauses, the profile, consolidations."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import models
from django.db.models import Q

from chatapp.operations.database.ids import new_id
from chatapp.operations.workers.leases import is_out_of_lease

ENTRY_PREVIEW_CHARS = 200
"""Characters of an entry that events and messages show."""


class MemoryEntry(models.Model):
    """One section of a user's daily file. The row is authoritative; the file is rendered from it.

    The entry outlives its `conversation`, which may be deleted (retention). `written_at` is None until the file
    contains it, `consolidated_at` until the profile took it into account. A proposed entry waits for its user's
    approval: it is in no file, search, recall or profile.
    """

    class State(models.TextChoices):
        KEPT = "kept"
        PROPOSED = "proposed"

    class Author(models.TextChoices):
        EXTRACTION = "extraction"
        USER = "user"
        OPERATOR = "operator"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memory_entries"
    )
    day = models.DateField()
    conversation = models.ForeignKey(
        "chatapp.Conversation", null=True, on_delete=models.SET_NULL, related_name="memory_entries"
    )
    compaction = models.OneToOneField(
        "chatapp.Compaction", null=True, on_delete=models.SET_NULL, related_name="memory_entry"
    )
    scope = models.ForeignKey(
        "chatapp.Agent",
        null=True,
        on_delete=models.SET_NULL,
        related_name="shared_entries",
        help_text="The agent whose shared memory it is in, too. It stays its user's own.",
    )
    shared_in = models.UUIDField(
        null=True, help_text="The id of that agent, also when it is deleted: forgetting follows it."
    )
    # No foreign keys: the entry outlives the messages.
    first_message_id = models.UUIDField(null=True)
    last_message_id = models.UUIDField(null=True)
    text = models.TextField()
    author = models.CharField(max_length=10, choices=Author, default=Author.EXTRACTION)
    revision = models.PositiveIntegerField(default=1, help_text="The number of the text as it is now.")
    state = models.CharField(max_length=10, choices=State, default=State.KEPT)
    written_at = models.DateTimeField(null=True)
    consolidated_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        indexes = [
            # The file of one day, and the list of days.
            models.Index(fields=["user", "day", "created_at"], name="memory_entry_by_day"),
            # The sweep of entries whose file was not written yet.
            models.Index(fields=["created_at"], condition=Q(written_at=None), name="memory_entry_unwritten"),
            # The entries that the next consolidation of a profile reads.
            models.Index(
                fields=["user", "created_at"],
                condition=Q(consolidated_at=None),
                name="memory_entry_unconsolidated",
            ),
            # The entries that wait for their user's approval, newest first.
            models.Index(
                fields=["user", "-created_at", "-id"],
                condition=Q(state="proposed"),
                name="memory_entry_proposed",
            ),
        ]


class SharedEntry(MemoryEntry):
    """An entry of a shared memory, as an operator sees it."""

    class Meta:
        proxy = True
        verbose_name = "entry of a shared memory"
        verbose_name_plural = "shared memory"

    def __str__(self) -> str:
        return f"{self.scope}, {self.day}"  # no text, because the admin log outlives the entry


class EntryRevision(models.Model):
    """A former text of an entry, and who wrote it."""

    entry = models.ForeignKey(MemoryEntry, on_delete=models.CASCADE, related_name="revisions")
    number = models.PositiveIntegerField()
    text = models.TextField()
    author = models.CharField(max_length=10, choices=MemoryEntry.Author)
    written_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["entry", "number"], name="entry_revision_once")]


class EntrySource(models.Model):
    """Another span that repeats an entry."""

    entry = models.ForeignKey(MemoryEntry, on_delete=models.CASCADE, related_name="sources")
    conversation = models.ForeignKey("chatapp.Conversation", on_delete=models.CASCADE, related_name="+")
    first_message_id = models.UUIDField()
    last_message_id = models.UUIDField()
    created_at = models.DateTimeField()

    class Meta:
        ordering = ("created_at", "pk")
        constraints = [
            models.UniqueConstraint(
                fields=["entry", "first_message_id", "last_message_id"], name="entry_source_once"
            )
        ]


class MemoryPause(models.Model):
    """A period in which nothing is learned from one conversation, or from all of a user's if `conversation` is None.

    It is kept after its end: messages of the period are summarised later, and must not be learned then either.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    conversation = models.ForeignKey(
        "chatapp.Conversation", null=True, on_delete=models.CASCADE, related_name="+"
    )
    began_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            # Two constraints, because NULLs are not equal: a single one would allow several open pauses.
            models.UniqueConstraint(
                fields=["user"],
                condition=Q(ended_at=None, conversation=None),
                name="one_open_pause_of_user",
            ),
            models.UniqueConstraint(
                fields=["conversation"],
                condition=Q(ended_at=None, conversation__isnull=False),
                name="one_open_pause_of_conversation",
            ),
        ]


class Profile(models.Model):
    """A user's profile as contexts show it. The row is authoritative; `MEMORY.md` shows version `written_version`."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, primary_key=True, on_delete=models.CASCADE, related_name="profile"
    )
    text = models.TextField(blank=True)
    sources = models.JSONField(
        default=list, help_text="For each line, the ids of the entries it was made of; a user's own has none."
    )
    version = models.PositiveIntegerField(default=0)
    written_version = models.PositiveIntegerField(default=0)

    class Meta:
        indexes = [
            # The sweep of stale profile files.
            models.Index(
                fields=["version"],
                condition=~Q(version=models.F("written_version")),
                name="profile_unwritten",
            )
        ]


class ProfileVersion(models.Model):
    """The text of the profile from `created_at` on, and who wrote it. Numbered from 1 per user."""

    class Author(models.TextChoices):
        USER = "user"
        CONSOLIDATION = "consolidation"
        FORGETTING = "forgetting"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    profile = models.ForeignKey(Profile, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    text = models.TextField(blank=True)
    sources = models.JSONField(default=list, help_text="Like the profile's, of that version.")
    author = models.CharField(max_length=13, choices=Author)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["profile", "number"], name="profile_version_once")]


class Consolidation(models.Model):
    """One pass that adds new entries to the profile. The row is stored before the work begins.

    `night` is the user's day that begins with it; None if the user requested the pass or it continues another one.
    """

    class Status(models.TextChoices):
        PENDING = "pending"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        SKIPPED = "skipped", "no language model is configured"

    ACTIVE = (Status.PENDING, Status.RUNNING)
    LEASE = timedelta(seconds=300)
    """Longer than a model call and its one retry take, because the lease is not renewed."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    night = models.DateField(null=True)
    status = models.CharField(max_length=10, choices=Status, default=Status.PENDING)
    # Not written any more: the ledger has the calls.
    model = models.ForeignKey("chatapp.ModelConfig", null=True, on_delete=models.SET_NULL, related_name="+")
    entry_count = models.PositiveIntegerField(default=0)
    version = models.PositiveIntegerField(
        null=True, help_text="The version it created; empty if nothing was new."
    )
    error = models.TextField(blank=True)
    fence = models.PositiveIntegerField(default=0)
    lease_expires_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user"],
                condition=Q(status__in=["pending", "running"]),
                name="one_active_consolidation",
            ),
            models.UniqueConstraint(
                fields=["user", "night"], condition=Q(night__isnull=False), name="one_consolidation_a_night"
            ),
        ]
        indexes = [
            # The sweep of consolidations that are pending too long.
            models.Index(
                fields=["lease_expires_at"],
                condition=Q(status__in=["pending", "running"]),
                name="consolidation_active",
            ),
        ]

    @classmethod
    def is_abandoned(cls, now: datetime) -> Q:
        """Return a condition for running consolidations whose lease no living worker holds."""
        return Q(is_out_of_lease(now, cls.LEASE), status=cls.Status.RUNNING)


class StaleDay(models.Model):
    """A day whose file is stale. Each change adds its own row, and the writer deletes the rows that existed before it
    read the entries."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    day = models.DateField()
    created_at = models.DateTimeField(auto_now_add=True)
