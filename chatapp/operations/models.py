"""Tables that every package may use."""

from __future__ import annotations

from typing import Any, NoReturn

from django.db import models

from chatapp.operations.database.ids import new_id


class ForgettingCount(models.Model):
    """A count that each forgetting of a user, or in a shared memory, raises (see `forgetting_counts`)."""

    key = models.UUIDField(
        primary_key=True, help_text="The id of a user, or of the agent that shares a memory."
    )
    count = models.PositiveIntegerField(default=0)


class AppendOnly(models.QuerySet["AuditEvent"]):
    """Rows that cannot be changed or deleted. The clean-up of old rows bypasses this."""

    def update(self, **values: Any) -> NoReturn:
        raise TypeError("The audit log is not changed.")

    def delete(self) -> NoReturn:
        raise TypeError("The audit log is not changed.")


class AuditEvent(models.Model):
    """An event that concerns access or rights. Users are stored by id, which says nothing after their deletion."""

    class Kind(models.TextChoices):
        SIGNED_IN = "signed_in", "signed in"
        SIGN_IN_FAILED = "sign_in_failed", "sign-in failed"
        SIGNED_OUT = "signed_out", "signed out"
        PASSWORD_CHANGED = "password_changed", "password changed"
        ADDRESS_CHANGED = "address_changed", "email address changed"
        SECOND_FACTOR_CHANGED = "second_factor_changed", "second factor changed"
        TOKEN_CREATED = "token_created", "token created"
        TOKEN_REVOKED = "token_revoked", "token revoked"
        SESSION_ENDED = "session_ended", "session ended"
        EXPORTED = "exported", "account exported"
        SINGLE_SIGN_ON_CHANGED = "single_sign_on_changed", "single sign-on linked or removed"
        GROUPS_FOLLOWED = "groups_followed", "groups taken from single sign-on"
        LOOKED = "looked", "looked into a conversation"
        INVITED = "invited", "invited"
        INVITATION_WITHDRAWN = "invitation_withdrawn", "invitation withdrawn"
        ACCOUNT_CREATED = "account_created", "account created"
        ACCOUNT_DELETED = "account_deleted", "account deleted"
        CHANGED_IN_ADMIN = "changed_in_admin", "changed in the admin"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    at = models.DateTimeField(db_index=True)  # finds the latest events, and those old enough to be deleted
    kind = models.CharField(max_length=30, choices=Kind)
    user_id = models.UUIDField("account", null=True, db_index=True)  # finds the events of one account
    actor_id = models.UUIDField("by", null=True)
    address = models.CharField("from", max_length=45, blank=True)
    detail = models.JSONField(default=dict)

    objects = AppendOnly.as_manager()

    class Meta:
        ordering = ["-at", "-id"]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S} {self.get_kind_display()}"

    def save(self, *args: Any, **options: Any) -> None:
        if not self._state.adding:
            raise TypeError("The audit log is not changed.")
        super().save(*args, **options)

    def delete(self, *args: Any, **options: Any) -> NoReturn:
        raise TypeError("The audit log is not changed.")


class Edition(models.Model):
    """A token that triggers renew on each write to a table of the configuration (see `editions`)."""

    name = models.CharField(primary_key=True, max_length=20)
    token = models.CharField(max_length=32)


class StoredSetting(models.Model):
    """A setting changed in the admin panel, in the format of the environment (see `changeable_settings`)."""

    name = models.CharField(primary_key=True, max_length=40)
    value_encrypted = models.TextField()
    changed_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name


class UserEdition(models.Model):
    """Tokens that triggers renew on each write to a user's own data (see `editions`). Not a foreign key, because they
    are written while the user is deleted. A trigger deletes them with the user."""

    user_id = models.UUIDField(db_index=True)
    token = models.CharField(max_length=32)
