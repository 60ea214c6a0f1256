"""Values that no well-behaved client sends, for JSON bodies, paths, queries and headers."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone
from itertools import product
from typing import Any
from uuid import UUID

from chatapp.operations.http.cursors import encode_cursor
from memory.window.policy import ContextPolicy

DEEP = 1_000
ROW_ID = "01a200ef-21de-798c-a040-73104253dc3f"


def _nested(opening: str, closing: str) -> str:
    return opening * DEEP + closing * DEEP


JSON_VALUES = (
    "null",
    "true",
    '""',
    '"' + "x" * 40_000 + '"',
    '"\\u0000\\ud800"',
    '"9999-12-31"',
    f'"{ROW_ID}"',
    "-1",
    "1e308",
    str(2**63),
    "9" * 400,
    "[]",
    "{}",
    '["\\u0000"]',
    '{"\\u0000": "\\ud800"}',
    "[" + ",".join(['"x"'] * 1_000) + "]",
)
"""Sent as values of fields."""

SHORT_BODIES = (b"", b"{}", b"[]", b"null", b'"x"', b"\xff\x00", b'{"": ""}')
BODIES = (
    *SHORT_BODIES,
    b"NaN",
    b'{"a": -Infinity}',
    b"{",
    b"[" * 100_000,
    b"9" * 5_000,
    b"1e999",
    b'"\\ud800"',
    _nested("[", "]").encode(),
    _nested('{"a":', "}").replace(":}", ":1}", 1).encode(),
)
"""Sent as whole bodies."""

CONTENT_TYPES = {
    "": b"{}",
    "x": b"{}",
    "application/x-www-form-urlencoded": b"a=%00",
    "application/yaml": b"[" * 1_000,
    "text/markdown": b"\xff\x00",
    "multipart/form-data": b"x",
    "multipart/form-data; boundary=b": b'--b\r\nContent-Disposition: form-data; name="file"\r\n\r\nx\r\n--b--',
}

NAMES = ("\0", "\u0663", "-1", "9" * 400, "9999-12-31", "x" * 5_000)
"""Sent in paths."""

TEXTS = (
    *NAMES,
    "",
    "\U0010ffff",
    "1e400",
    "NaN",
    str(2**63),
    "9" * 5_000,
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59.999999-23:59",
    ROW_ID,
    "%s'\"<>;--",
)
"""Sent in queries, headers and forms."""


PLAIN_JSON = frozenset(("null", "true", '""', f'"{ROW_ID}"', "[]", "{}", JSON_VALUES[-1]))
PLAIN_TEXTS = frozenset(("\u0663", "", "9" * 5_000, ROW_ID, "%s'\"<>;--"))
"""Values that all databases store and compare alike, so that SQLite is enough to try them."""


def json_values(vendor: str) -> list[str]:
    """Return the JSON values to try on this database: all on SQLite, on others only those that they may reject."""
    return [value for value in JSON_VALUES if vendor == "sqlite" or value not in PLAIN_JSON]


def texts(vendor: str) -> list[str]:
    return [text for text in TEXTS if vendor == "sqlite" or text not in PLAIN_TEXTS]


def cursors() -> Iterator[str]:
    """Yield valid cursors of moments at both ends of the range of datetime."""
    for moment in (
        datetime.max.replace(tzinfo=UTC),
        datetime.min.replace(tzinfo=UTC),
        datetime.max.replace(tzinfo=timezone(-timedelta(hours=23))),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=23))),
    ):
        yield encode_cursor(moment, UUID(ROW_ID))


def policies() -> Iterator[str]:
    """Yield context policies with one odd value each."""
    values = ("null", '"x"', "-1", "1e308", "9" * 400, "[]")
    for field in ContextPolicy.model_fields:
        for value in values:
            yield f'{{"{field}": {value}}}'


HOOK: Mapping[str, Any] = {
    "id": "h",
    "on": "turn_end",
    "condition": {"type": "message_count", "threshold": 5},
    "action": {"type": "module_action", "module": "clock", "action": "now", "params": {}},
    "cooldown": 1.0,
}
COMPACTING: Mapping[str, Any] = {
    **HOOK,
    "action": {"type": "compact_context", "keep_recent": 1, "summary_max_tokens": 64},
}


def hooks() -> Iterator[str]:
    """Yield lists of one hook with one odd value each."""
    values = ("null", "-1", "9" * 400, '"\\u0000"')
    for hook, value in product((HOOK, COMPACTING), values):
        for name, inner in hook.items():
            yield f"[{with_field(hook, name, value)}]"
            for key in inner if isinstance(inner, dict) else ():
                yield f"[{with_field(hook, name, with_field(inner, key, value))}]"


def with_field(whole: Mapping[str, Any], name: str, raw: str) -> str:
    """Return the object as JSON, with `raw` as the value of one name."""
    return with_fields(whole, [name], raw)


def with_fields(whole: Mapping[str, Any], names: Collection[str], raw: str) -> str:
    """Return the object as JSON, with `raw` as the value of each of these names."""
    fields = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in whole.items() if key not in names]
    return "{" + ", ".join([*fields, *(f"{json.dumps(name)}: {raw}" for name in names)]) + "}"
