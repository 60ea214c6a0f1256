"""Reads the clock, in one place."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.utils import timezone


def now() -> datetime:
    return timezone.now()


def iso_time(moment: Any) -> str | None:
    """Return a time as the API writes it; None for none."""
    return moment.isoformat().replace("+00:00", "Z") if moment else None
