"""Unused invitations. Signing up deletes the row; the audit log records both."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Lower

from chatapp.operations.database.ids import new_id


class Invitation(models.Model):
    """Lets one address sign up. Only the SHA-256 of the link's token is stored."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    email = models.EmailField(max_length=254)
    token_hash = models.CharField(max_length=64, unique=True)
    invited_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(db_index=True)  # finds old invitations for the clean-up

    class Meta:
        constraints = [models.UniqueConstraint(Lower("email"), name="invitation_once")]

    def __str__(self) -> str:
        return self.email
