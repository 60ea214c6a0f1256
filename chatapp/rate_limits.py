"""How often somebody may do what costs: messages per user and address, failed sign-ins per address."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from typing import Any
from weakref import WeakKeyDictionary

from django.conf import settings
from limits import RateLimitItem, RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage, RedisStorage
from limits.aio.strategies import MovingWindowRateLimiter
from redis.exceptions import RedisError

from chatapp.errors import RateLimited

log = logging.getLogger(__name__)

USERS_BEHIND_ONE_ADDRESS = 50
FAILED_SIGN_INS_PER_MINUTE = 60

# A Redis connection and the locks of the memory storage belong to one event loop.
_limiters: WeakKeyDictionary[asyncio.AbstractEventLoop, MovingWindowRateLimiter] = WeakKeyDictionary()


async def check_message_rate(user_id: Any, address: str = "") -> None:
    """Counts one message that a model will be asked about. Raises RateLimited. 0 in the settings = no limit."""
    per_user = settings.MESSAGES_PER_MINUTE
    if not per_user:
        return
    sentence = "You are sending messages faster than this service accepts."
    await _take(RateLimitItemPerMinute(per_user), sentence, "messages", str(user_id))
    if address:
        per_address = RateLimitItemPerMinute(per_user * USERS_BEHIND_ONE_ADDRESS)
        await _take(per_address, sentence, "messages_from", address)


async def check_failed_sign_in(address: str) -> None:
    """Counts one token that was not valid. Raises RateLimited."""
    sentence = "Too many tokens from this address were not valid."
    await _take(RateLimitItemPerMinute(FAILED_SIGN_INS_PER_MINUTE), sentence, "failed_sign_ins", address)


async def _take(item: RateLimitItem, sentence: str, *names: str) -> None:
    limiter = _limiter()
    try:
        if await limiter.hit(item, *names):
            return
        stats = await limiter.get_window_stats(item, *names)
    except (OSError, RedisError):
        # Redis is away: better answer without counting than not at all.
        log.warning("The rate limit %s could not be counted.", names[0], exc_info=True)
        return
    wait_s = max(1, math.ceil(stats.reset_time - time.time()))
    raise RateLimited(f"{sentence} Please wait {wait_s} s.", retry_after_s=wait_s)


def _limiter() -> MovingWindowRateLimiter:
    loop = asyncio.get_running_loop()
    if loop not in _limiters:
        _limiters[loop] = MovingWindowRateLimiter(_storage())
    return _limiters[loop]


def _storage() -> MemoryStorage | RedisStorage:
    if not settings.REDIS_URL:
        return MemoryStorage()
    return RedisStorage(f"async+{settings.REDIS_URL}", implementation="redispy", key_prefix="palimpsest")
