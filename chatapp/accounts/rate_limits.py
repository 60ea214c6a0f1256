"""Limits messages per user and address, and failed sign-ins per address."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from django.conf import settings
from limits import RateLimitItem, RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage, RedisStorage
from limits.aio.strategies import MovingWindowRateLimiter
from redis.exceptions import RedisError

from chatapp.operations.errors import RateLimited

log = logging.getLogger(__name__)

USERS_BEHIND_ONE_ADDRESS = 50
FAILED_SIGN_INS_PER_MINUTE = 60
REDIS_TIMEOUT_S = 1.0
RETRY_REDIS_AFTER_S = 5.0

# A Redis connection and the locks of the memory storage belong to one event loop.
_counters: WeakKeyDictionary[asyncio.AbstractEventLoop, _Counter] = WeakKeyDictionary()


async def check_message_rate(user_id: Any, address: str = "") -> None:
    """Count one message that a model answers. Raises RateLimited. 0 in the settings = no limit."""
    per_user = settings.MESSAGES_PER_MINUTE
    if not per_user:
        return
    sentence = "You are sending messages faster than this service accepts."
    await _take(RateLimitItemPerMinute(per_user), sentence, "messages", str(user_id))
    if address:
        per_address = RateLimitItemPerMinute(per_user * USERS_BEHIND_ONE_ADDRESS)
        await _take(per_address, sentence, "messages_from", address)


async def check_failed_sign_in(address: str) -> None:
    """Count one token or password that was not valid. Raises RateLimited."""
    sentence = "Too many tokens or passwords from this address were not valid."
    await _take(RateLimitItemPerMinute(FAILED_SIGN_INS_PER_MINUTE), sentence, "failed_sign_ins", address)


async def _take(item: RateLimitItem, sentence: str, *names: str) -> None:
    free_at = await _counter().take(item, names)
    if free_at is not None:
        wait_s = max(1, math.ceil(free_at - time.time()))
        raise RateLimited(f"{sentence} Please wait {wait_s} s.", retry_after_s=wait_s)


def _counter() -> _Counter:
    loop = asyncio.get_running_loop()
    if loop not in _counters:
        _counters[loop] = _Counter()
    return _counters[loop]


class _Counter:
    """Counts in Redis for all processes. While Redis does not answer, each process counts by itself."""

    def __init__(self) -> None:
        self._local = MovingWindowRateLimiter(MemoryStorage())
        self._shared = MovingWindowRateLimiter(_redis()) if settings.REDIS_URL else None
        self._away_until = 0.0

    async def take(self, item: RateLimitItem, names: Sequence[str]) -> float | None:
        """Return None where it was counted; else when the next one is allowed, in seconds since the epoch."""
        if self._shared is not None and time.monotonic() >= self._away_until:
            try:
                async with asyncio.timeout(REDIS_TIMEOUT_S):
                    return await _hit(self._shared, item, names)
            except (OSError, RedisError) as error:
                self._away_until = time.monotonic() + RETRY_REDIS_AFTER_S
                log.warning("Redis is away (%s); each process counts its own requests.", error)
        return await _hit(self._local, item, names)


async def _hit(limiter: MovingWindowRateLimiter, item: RateLimitItem, names: Sequence[str]) -> float | None:
    if await limiter.hit(item, *names):
        return None
    return (await limiter.get_window_stats(item, *names)).reset_time


def _redis() -> RedisStorage:
    return RedisStorage(f"async+{settings.REDIS_URL}", implementation="redispy", key_prefix="palimpsest")
