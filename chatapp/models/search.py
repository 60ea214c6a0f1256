"""The search index (an inverted index per user, as rows), and which daily files are behind their rows.

Terms are kept as 64-bit hashes and no text at all: what is found is read from its source row.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models

from chatapp.models.conversations import Conversation


class StaleDay(models.Model):
    """A day whose file shows what is no longer true. Several rows may name one day: each change adds its own, and
    the writer removes those it had seen before it read the entries."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    day = models.DateField()
    created_at = models.DateTimeField(auto_now_add=True)
