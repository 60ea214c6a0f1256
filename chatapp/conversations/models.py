"""Conversations, their branches and their messages."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import Group
from django.core.validators import MaxValueValidator
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext, ngettext

from chatapp.agent_presets.models import Agent
from chatapp.operations.database.ids import new_id
from memory.bounds import MAX_RETENTION_DAYS

TEMPORARY_DAYS = 30
"""A temporary conversation is deleted after so many days without a message, even if others are kept for longer: it is
in no list, so its user could not find it to delete it."""
_NULLABLE: dict[str, Any] = {"null": True}
"""Hides the null from the type checker, because only imports and removals see a conversation without a user."""


class OwnedConversations(models.Manager["Conversation"]):
    """The conversations that have a user. Those without are being imported or deleted, or in the trash."""

    def get_queryset(self) -> models.QuerySet[Conversation]:
        return super().get_queryset().filter(user__isnull=False)


class Folder(models.Model):
    """A group of conversations of one user, with a name, instructions and a default agent in common."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=150)
    instructions = models.TextField(blank=True)
    agent = models.ForeignKey(Agent, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "name"], name="folder_name_once")]

    def __str__(self) -> str:
        return str(self.id)  # not the name: operators see this


# Shared by indexes and queries, because a conditional index is used only if the query has the same condition.
IS_BEHIND = Q(temporary=False, indexed_below__lt=F("next_position"))
"""Matches conversations with messages that are not in the search index yet, or are still being written."""
IS_UNREAD = Q(next_position__gt=F("read_count"))


class Conversation(models.Model):
    """One thread of one user; without a user while it is imported or deleted (see `Removal`) or in the trash.

    `next_position` and `last_seq` are the counters behind gapless positions and event numbers; they change only while
    this row is locked.
    """

    class Memory(models.TextChoices):
        ON = "on"
        PAUSED = "paused"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="conversations", **_NULLABLE
    )
    title = models.CharField(max_length=200, blank=True)
    title_made_of = models.PositiveBigIntegerField(
        null=True, editable=False, help_text="The last position that its generated title was made of."
    )
    model = models.ForeignKey("chatapp.ModelConfig", null=True, blank=True, on_delete=models.SET_NULL)
    agent = models.ForeignKey(
        "chatapp.Agent", null=True, blank=True, on_delete=models.SET_NULL, related_name="conversations"
    )
    scope = models.ForeignKey(
        "chatapp.Agent",
        null=True,
        blank=True,
        editable=False,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="The agent whose shared memory it was started in: it never uses the user's own memory.",
    )
    shared_in = models.UUIDField(
        null=True,
        editable=False,
        db_index=True,  # query of forgetting: conversations that knew what another user forgets
        help_text="The id of that agent, also when it is deleted: forgetting follows it.",
    )
    folder = models.ForeignKey(Folder, null=True, on_delete=models.SET_NULL, related_name="conversations")
    mode = models.CharField(max_length=10, blank=True, choices=Agent.Mode, help_text="Empty: the agent's.")
    branch = models.ForeignKey("Branch", null=True, on_delete=models.SET_NULL, related_name="+")
    hook_state = models.JSONField(
        default=dict, blank=True, help_text="When each hook fired last, and what they left for the next turn."
    )
    context_policy = models.JSONField(default=dict, blank=True)
    named_windows = models.JSONField(default=dict, blank=True, editable=False)
    """By model: the context window that its provider reported when it refused a request of this conversation."""
    hooks = models.JSONField(
        default=list, blank=True, help_text="Its own, after the deployment's and the agent's."
    )
    summary_waits = models.BooleanField(
        default=False, help_text="Something left its context that waits for more, to be summarised with it."
    )
    next_position = models.PositiveBigIntegerField(default=0)
    last_seq = models.PositiveBigIntegerField(default=0)
    read_count = models.PositiveBigIntegerField(
        default=0, editable=False, help_text="How many messages it had when a page in view showed it last."
    )
    indexed_below = models.PositiveBigIntegerField(
        default=0, editable=False, help_text="Messages below this position are in the search index."
    )
    last_ordinal = models.IntegerField(
        default=-1, editable=False, help_text="Of its newest document in the search index; -1: none."
    )
    last_activity_at = models.DateTimeField()
    kept_since = models.DateTimeField(
        null=True, editable=False, help_text="When it was imported: the clean-up counts no earlier day."
    )
    pinned = models.BooleanField(default=False)
    archived = models.BooleanField(default=False)
    temporary = models.BooleanField(default=False)
    memory = models.CharField(max_length=6, choices=Memory, default=Memory.ON)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = OwnedConversations()
    with_unowned: models.Manager[Conversation] = models.Manager()

    class Meta:
        indexes = [
            # The sidebar: newest first, by keyset.
            models.Index(
                fields=["user", "-last_activity_at", "-id"],
                condition=Q(archived=False),
                name="conversation_sidebar",
            ),
            # The same for archived ones. On SQLite, boolean filters do not use a column of an index.
            models.Index(
                fields=["user", "-last_activity_at", "-id"],
                condition=Q(archived=True),
                name="conversation_archived",
            ),
            # The same for one folder.
            models.Index(
                fields=["folder", "-last_activity_at", "-id"],
                condition=Q(folder__isnull=False),
                name="conversation_in_folder",
            ),
            # Recall: a user's conversations that are not fully indexed, the most recently used first.
            models.Index(
                fields=["user", "-last_activity_at", "-id"],
                condition=IS_BEHIND,
                name="conversation_behind",
            ),
            # The sweep: the same for all users.
            models.Index(fields=["last_activity_at"], condition=IS_BEHIND, name="conversation_overlooked"),
            # The clean-up: conversations idle for too long.
            models.Index(fields=["last_activity_at"], condition=Q(pinned=False), name="conversation_idle"),
            models.Index(
                fields=["last_activity_at"],
                condition=Q(pinned=False, temporary=True),
                name="conversation_temporary",
            ),
            # A user's unread conversations.
            models.Index(
                fields=["user", "-last_activity_at", "-id"],
                condition=IS_UNREAD,
                name="conversation_unread",
            ),
            # The sweep: quiet conversations with something still to be summarised.
            models.Index(
                fields=["last_activity_at"],
                condition=Q(summary_waits=True),
                name="conversation_summary_waits",
            ),
        ]

    @property
    def owner_id(self) -> UUID:
        """Return the id of the user. Only imports and removals see a conversation without a user."""
        assert self.user_id is not None
        return self.user_id

    @property
    def forgetting_keys(self) -> list[UUID]:
        """Return the keys of the forgetting counts that apply to what is known in the conversation."""
        return self.forgetting_keys_of(self.owner_id)

    def forgetting_keys_of(self, user_id: UUID) -> list[UUID]:
        """Return the keys for the former user of a conversation that has none now."""
        return [user_id, *([self.shared_in] if self.shared_in else [])]

    @property
    def uses_memory(self) -> bool:
        """Return whether the conversation is remembered, and recalls other conversations."""
        agent = self.agent
        return not self.temporary and (agent is None or not agent.enabled or agent.uses_memory)

    def __str__(self) -> str:
        return str(self.id)  # not the title: operators see this, and a title shows what was said


class Branch(models.Model):
    """One line of a conversation. `lineage` lists the visible part of its ancestors, nearest first: `[[branch_id,
    last_visible_position], …]`; its own messages come after those."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="branches")
    lineage = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)


class Message(models.Model):
    class Role(models.TextChoices):
        USER = "user"
        ASSISTANT = "assistant"
        TOOL = "tool"
        SYSTEM = "system"

    class Kind(models.TextChoices):
        MESSAGE = "message"
        INJECTED = "injected", "sent while an answer was being written"
        EDITED = "edited", "an answer in its user's own words"

    class Status(models.TextChoices):
        STREAMING = "streaming"
        COMPLETE = "complete"
        CUT = "cut", "ended at a limit"
        STOPPED = "stopped"
        FAILED = "failed"
        INTERRUPTED = "interrupted"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    # Both are the first column of an index below.
    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="messages", db_index=False
    )
    branch = models.ForeignKey(Branch, on_delete=models.CASCADE, related_name="messages", db_index=False)
    # Also stored here, because sends are unique per user, and a constraint can only use columns of one table.
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    parent = models.ForeignKey("self", null=True, on_delete=models.SET_NULL, related_name="children")
    position = models.PositiveBigIntegerField()
    role = models.CharField(max_length=10, choices=Role)
    kind = models.CharField(max_length=10, choices=Kind, default=Kind.MESSAGE)
    parts = models.JSONField(default=list)
    pinned = models.BooleanField(default=False)
    token_estimate = models.PositiveIntegerField(default=0)
    status = models.CharField(max_length=12, choices=Status, default=Status.COMPLETE)
    model_name = models.CharField(max_length=200, blank=True)
    usage = models.JSONField(null=True)
    client_id = models.CharField(max_length=200, null=True)
    request_hash = models.CharField(max_length=64, blank=True)
    forgotten_at = models.DateTimeField(null=True, help_text="When its text, or part of it, was forgotten.")
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["conversation", "position"], name="message_position_once"),
            # Idempotent sends: one message per key and user.
            models.UniqueConstraint(
                fields=["user", "client_id"],
                condition=Q(client_id__isnull=False),
                name="message_client_id_once",
            ),
        ]
        indexes = [
            # Loading a context and paging: messages of one branch, by position.
            models.Index(fields=["branch", "position"], name="message_branch_position"),
            # No query uses this index: drop it with the next change of this table.
            models.Index(
                fields=["conversation", "forgotten_at"],
                condition=Q(forgotten_at__isnull=False),
                name="message_forgotten",
            ),
            # The pinned messages of a branch.
            models.Index(fields=["branch", "position"], condition=Q(pinned=True), name="message_pinned"),
        ]


class GroupRetention(models.Model):
    """The retention period of a group's members, instead of RETENTION_DAYS; of several groups the longest applies."""

    group = models.OneToOneField(Group, on_delete=models.CASCADE, related_name="retention")
    days = models.PositiveIntegerField(
        validators=[MaxValueValidator(MAX_RETENTION_DAYS)],
        help_text="Conversations nobody wrote to for so many days are cleaned up; 0 = never.",
    )

    class Meta:
        verbose_name = "clean-up period"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(days__gte=0, days__lte=MAX_RETENTION_DAYS),
                name="groupretention_days_in_range",
            )
        ]

    def __str__(self) -> str:
        told = ngettext("%(days)d day", "%(days)d days", self.days) if self.days else gettext("for ever")
        return told % {"days": self.days}
