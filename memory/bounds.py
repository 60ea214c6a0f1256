"""Minimum and maximum of all input: numbers, lengths, dates and depths.

Schemas, settings, forms and database constraints take their limits from here, so that they and the published
description of the API agree.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, Field

# --- Numbers ---------------------------------------------------------------------------------------
MAX_ID = 2**63 - 1
"""The largest integer in an 8-byte column, e.g. a position or a sequence number."""
MAX_NUMBER = 2**31 - 1
"""The largest integer in a 4-byte column, e.g. a revision or a version."""
MAX_TOKENS = 100_000_000
MAX_CHARS = 100_000_000
MAX_TURNS = 100_000
MAX_TEMPERATURE = 2.0
MAX_TIMEOUT_S = 86_400.0
MAX_RETENTION_DAYS = 36_500

MAX_KEPT_MESSAGES = 10_000
MAX_SUMMARY_TOKENS = 32_000
MIN_SUMMARY_TOKENS = 64

Position = Annotated[int, Field(ge=0, le=MAX_ID)]
Number = Annotated[int, Field(ge=1, le=MAX_NUMBER)]
Tokens = Annotated[int, Field(ge=0, le=MAX_TOKENS)]
PageSize = Annotated[int, Field(ge=1, le=100)]
Temperature = Annotated[float, Field(ge=0, le=MAX_TEMPERATURE, allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=0, le=MAX_TIMEOUT_S, allow_inf_nan=False)]

# --- Texts and lists -------------------------------------------------------------------------------
MAX_ID_CHARS = 200
MAX_NAME_CHARS = 150
MAX_TITLE_CHARS = 200
MAX_PASSWORD_CHARS = 1_000
MAX_QUERY_CHARS = 2_000
MAX_PROMPT_CHARS = 32_000
MAX_TEMPLATE_CHARS = 20_000
MAX_HOOK_CHARS = 100_000
MAX_CURSOR_CHARS = 200
MAX_POLICY_FIELDS = 100
MAX_ATTACHMENTS = 20
MAX_PARTS = 100
MAX_HOOKS = 20
MAX_SERVERS = 50
MAX_TOOLS = 200
MAX_IMPORTED = 200_000
MAX_DAY_CHANGES = 1_000
"""Sections of a day that one text may write, edit or merge. This many occupy the database for 30 to 45 ms of CPU."""
MAX_JSON_DEPTH = 64
"""Nesting of lists and objects. Deeper values cannot be written as JSON again."""

# --- Moments ---------------------------------------------------------------------------------------
FIRST_DAY = date(2000, 1, 1)
LAST_DAY = date(2999, 12, 31)
"""Range of a day that is requested or written to."""
FIRST_MOMENT = datetime(1970, 1, 1, tzinfo=UTC)
LAST_MOMENT = datetime(2999, 12, 31, tzinfo=UTC)
"""Range of moments in an export, and of those that a user sets."""
FUTURE_ALLOWED = timedelta(days=1)
"""How far the clock of another machine may be ahead of ours."""

# JSON Schema has no bounds for dates, so the pattern shows them in the published description.
Day = Annotated[date, Field(ge=FIRST_DAY, le=LAST_DAY, json_schema_extra={"pattern": "^2[0-9]{3}-"})]
UtcMoment = Annotated[
    AwareDatetime,
    Field(ge=FIRST_MOMENT, le=LAST_MOMENT),
    # After the bounds, because `astimezone` overflows at both ends of the calendar.
    AfterValidator(lambda moment: moment.astimezone(UTC)),
]
"""A moment in any zone, converted to UTC, because PostgreSQL rejects offsets of 16 hours or more."""
Cursor = Annotated[str | None, Field(max_length=MAX_CURSOR_CHARS)]
Id = Annotated[str, Field(max_length=MAX_ID_CHARS)]


def was_possible(moment: datetime, now: datetime) -> bool:
    """Return whether something can have been said then: not before 1970, and at most a day after `now`."""
    return FIRST_MOMENT <= moment <= now + FUTURE_ALLOWED
