"""What left the context: checkpoints, the entries of the daily files with what they said before, and pauses."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from chatapp.models.agents import Agent
from chatapp.models.conversations import Branch, Conversation
from chatapp.models.identity import new_id
from chatapp.models.model_configs import ModelConfig


class Compaction(models.Model):
    """A checkpoint. Its span is what it adds to `previous`; its summary stands for both.

    It never deletes messages, so it can be edited and undone.
    """

    class Status(models.TextChoices):
        PENDING = "pending"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        UNDONE = "undone"

    ACTIVE = (Status.PENDING, Status.RUNNING)
    CLEARED = "cleared"
    """The strategy of a checkpoint that says nothing: the user wanted a new context."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="compactions")
    branch = models.ForeignKey(Branch, on_delete=models.CASCADE, related_name="+")
    previous = models.ForeignKey("self", null=True, on_delete=models.SET_NULL, related_name="+")
    model = models.ForeignKey(ModelConfig, null=True, on_delete=models.SET_NULL, related_name="+")
    first_position = models.PositiveBigIntegerField()
    last_position = models.PositiveBigIntegerField()
    message_count = models.PositiveIntegerField()
    kept_count = models.PositiveIntegerField()
    status = models.CharField(max_length=10, choices=Status, default=Status.PENDING)
    strategy = models.CharField(max_length=12)
    keep_hint = models.TextField(blank=True, help_text="What the user asked to keep.")
    summary = models.TextField(blank=True)
    summary_tokens = models.PositiveIntegerField(default=0)
    summary_max_tokens = models.PositiveIntegerField(
        default=0, help_text="A hook's own limit; 0 = the policy's."
    )
    is_partial = models.BooleanField(default=False, help_text="The same backlog goes on after it.")
    reminder = models.TextField(blank=True, help_text="What stands behind the summary from now on.")
    fallback_reason = models.TextField(blank=True, help_text="Why the extractive summary took over.")
    error = models.TextField(blank=True)
    budget_tokens = models.PositiveIntegerField(default=0, help_text="The input budget it was made for.")
    span_tokens = models.PositiveIntegerField(default=0)
    covered_tokens = models.PositiveIntegerField(
        default=0, help_text="Its span's and those of the summaries it builds on; 0 where the user cleared."
    )
    tokens_before = models.PositiveIntegerField(default=0)
    tokens_after = models.PositiveIntegerField(default=0)
    usage = models.JSONField(default=dict)
    holder = models.CharField(max_length=100, blank=True)
    fence = models.PositiveIntegerField(default=0)
    lease_expires_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)
    context_kept_at = models.DateTimeField(null=True, help_text="When context.jsonl held what left by it.")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["conversation"],
                condition=Q(status__in=["pending", "running"]),
                name="one_active_compaction",
            ),
            models.UniqueConstraint(
                fields=["branch", "first_position", "last_position"],
                condition=Q(status="done"),
                name="one_summary_per_span",
            ),
            models.CheckConstraint(
                condition=Q(first_position__lte=F("last_position")), name="compaction_span_not_empty"
            ),
        ]
        indexes = [
            # The latest finished checkpoint of a branch.
            models.Index(
                fields=["branch", "-last_position"], condition=Q(status="done"), name="compaction_latest"
            ),
            # The sweep of what is pending too long.
            models.Index(
                fields=["lease_expires_at"],
                condition=Q(status__in=["pending", "running"]),
                name="compaction_active",
            ),
            # The sweep of what left a context and is not in its file yet.
            models.Index(
                fields=["finished_at"],
                condition=Q(status="done", context_kept_at=None),
                name="compaction_not_kept",
            ),
        ]


class MemoryEntry(models.Model):
    """One section of a user's daily file. The row is the truth; the file is rendered from it.

    `conversation` may be gone (retention): the memory outlives it. `written_at` is None until the file holds it,
    `consolidated_at` until the profile took it into account. One that is proposed waits for its user's approval: it is
    in no file, no search, no recall and no profile.
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
        Conversation, null=True, on_delete=models.SET_NULL, related_name="memory_entries"
    )
    compaction = models.OneToOneField(
        Compaction, null=True, on_delete=models.SET_NULL, related_name="memory_entry"
    )
    scope = models.ForeignKey(
        Agent,
        null=True,
        on_delete=models.SET_NULL,
        related_name="shared_entries",
        help_text="The agent whose shared memory it is in, too. It stays its user's own.",
    )
    shared_in = models.UUIDField(
        null=True, help_text="The id of that agent, also when it is deleted: forgetting follows it."
    )
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
            # One day's file; the calendar of days.
            models.Index(fields=["user", "day", "created_at"], name="memory_entry_by_day"),
            # The sweep of entries whose file was not written yet.
            models.Index(fields=["created_at"], condition=Q(written_at=None), name="memory_entry_unwritten"),
            # What the next consolidation of a user's profile reads.
            models.Index(
                fields=["user", "created_at"],
                condition=Q(consolidated_at=None),
                name="memory_entry_unconsolidated",
            ),
        ]


class SharedEntry(MemoryEntry):
    """An entry as the operator of the agent whose memory it is in sees it."""

    class Meta:
        proxy = True
        verbose_name = "entry of a shared memory"
        verbose_name_plural = "shared memory"

    def __str__(self) -> str:
        return f"{self.scope}, {self.day}"  # not the text: the operators' log outlives it


class EntryRevision(models.Model):
    """What an entry said before it was changed, by whose hand."""

    entry = models.ForeignKey(MemoryEntry, on_delete=models.CASCADE, related_name="revisions")
    number = models.PositiveIntegerField()
    text = models.TextField()
    author = models.CharField(max_length=10, choices=MemoryEntry.Author)
    written_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["entry", "number"], name="entry_revision_once")]


class EntrySource(models.Model):
    """Another span that says what an entry says already."""

    entry = models.ForeignKey(MemoryEntry, on_delete=models.CASCADE, related_name="sources")
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="+")
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
    """A time in which nothing is learned: of one conversation, or of everything a user says (`conversation` is None).

    Kept after its end: what was said in it is summarised later, and is not to be remembered then either.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    conversation = models.ForeignKey(Conversation, null=True, on_delete=models.CASCADE, related_name="+")
    began_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
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
