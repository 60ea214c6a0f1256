"""Users, the API tokens of their programs, and the set-up link."""

from __future__ import annotations

from typing import Any, ClassVar
from zoneinfo import ZoneInfo

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import PermissionsMixin
from django.db import models
from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy

from chatapp.operations.clock import zone_named
from chatapp.operations.database.ids import new_id
from memory.bounds import MAX_PASSWORD_CHARS


class UserManager(BaseUserManager["User"]):
    def create_user(self, email: str, password: str | None = None, **fields: Any) -> User:
        user = self.model(email=self.normalize_email(email).lower(), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> User:
        return self.create_user(email, password, is_staff=True, is_superuser=True, **fields)


class User(AbstractBaseUser, PermissionsMixin):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    email = models.EmailField(max_length=254)
    name = models.CharField(max_length=150, blank=True)
    time_zone = models.CharField(max_length=64, default="UTC", help_text="Where this user's day begins.")
    memory_paused = models.BooleanField(default=False, help_text="Nothing is learned and nothing recalled.")
    reviews_memory = models.BooleanField(default=False, help_text="Entries wait for approval.")
    uses_profile = models.BooleanField(default=True)
    language = models.CharField(
        max_length=16,
        blank=True,
        help_text="The language of the page, such as zh-hans; empty: the browser's language.",
    )
    theme = models.CharField(max_length=16, default="system")
    text_size = models.CharField(max_length=16, default="normal")
    text_width = models.CharField(max_length=16, default="normal")
    send_key = models.CharField(max_length=16, default="enter")
    notifications = models.BooleanField(
        default=True, help_text="Browser notifications, if the browser allows them."
    )
    instructions = models.TextField(blank=True, help_text="Sent to the model in every chat of this user.")
    is_active = models.BooleanField(default=True)
    is_staff = models.BooleanField("operator", default=False)
    date_joined = models.DateTimeField(auto_now_add=True)

    objects = UserManager()

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta:
        constraints = [
            models.UniqueConstraint(
                Lower("email"),
                name="user_email_once",
                violation_error_message=gettext_lazy("There is an account with this email address already."),
            )
        ]

    def __str__(self) -> str:
        return self.email

    def check_password(self, raw_password: str | None) -> bool:
        """Return whether the password is right. Do not hash one that is longer than allowed."""
        return len(raw_password or "") <= MAX_PASSWORD_CHARS and super().check_password(raw_password)

    def personal_settings(self) -> dict[str, Any]:
        """Return the user's settings, as the API returns them and the page starts with them."""
        return {
            "language": self.language or None,
            "theme": self.theme,
            "text_size": self.text_size,
            "text_width": self.text_width,
            "send_key": self.send_key,
            "notifications": self.notifications,
            "instructions": self.instructions,
        }

    @property
    def zone(self) -> ZoneInfo:
        """Return the time zone in which this user's days begin."""
        return zone_named(self.time_zone)

    def get_full_name(self) -> str:
        return self.name or self.email

    def get_short_name(self) -> str:
        return self.name or self.email.split("@")[0]


class ApiToken(models.Model):
    """A program's key. Only its SHA-256 is stored; the owner recognises the key by its `prefix`."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=16)
    token_hash = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "API token"

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class IdempotencyKey(models.Model):
    """What a request with an `Idempotency-Key` created (see `idempotency`). Keys and requests are stored as hashes."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="idempotency_keys")
    key_hash = models.CharField(max_length=64)
    request_hash = models.CharField(max_length=64)
    made_id = models.UUIDField()
    created_at = models.DateTimeField(db_index=True)  # finds expired keys for the clean-up

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "key_hash"], name="idempotency_key_once")]


class SetupLink(models.Model):
    """The one-time link with which the first visitor becomes the admin. At most one row."""

    id = models.SmallIntegerField(primary_key=True, default=1, editable=False)
    token_hash = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="one_setup_link")]
