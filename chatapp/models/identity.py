"""Identifiers: UUID version 7, so that new rows land at the end of an index."""

from __future__ import annotations

import os
import time
import uuid


def new_id() -> uuid.UUID:
    """48 bits of milliseconds, then random bits (RFC 9562, section 5.7)."""
    value = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return uuid.UUID(int=value)
