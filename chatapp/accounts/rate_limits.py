"""Rate limits of messages (per user and address), failed sign-ins (per address) and passwords (per user)."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from limits import RateLimitItem, RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage, RedisStorage
from limits.aio.strategies import MovingWindowRateLimiter

from agents.libraries import Library
from chatapp.operations.errors import RateLimited
from chatapp.operations.http.bodies import Run

if TYPE_CHECKING:
    import redis
else:
    redis = Library("redis")

log = logging.getLogger(__name__)

USERS_BEHIND_ONE_ADDRESS = 50
FAILED_SIGN_INS_PER_MINUTE = 60
PASSWORDS_PER_MINUTE = 10
REDIS_TIMEOUT_S = 1.0
# Otherwise each message would wait for the timeout while Redis is down.
RETRY_REDIS_AFTER_S = 5.0
EXPIRE_EVERY_S = 60.0


@dataclass(frozen=True, slots=True)
class LimitState:
    """The state of a limit after one more request."""

    limit: int
    remaining: int
    reset_at: float
    """When the oldest request leaves the window, in seconds since the epoch."""
    is_refused: bool

    @property
    def reset_s(self) -> int:
        return max(1, math.ceil(self.reset_at - time.time()))


# A context variable, because requests are counted far below the operation that sends the headers.
_taken: ContextVar[list[LimitState] | None] = ContextVar("taken", default=None)
"""The limits that the current request counted against."""

# A Redis connection and the locks of the memory storage belong to one event loop.
_counters: WeakKeyDictionary[asyncio.AbstractEventLoop, _Counter] = WeakKeyDictionary()


async def check_message_rate(user_id: Any, address: str = "") -> None:
    """Count one message or summary that calls a model. Raise RateLimited. 0 in the settings = no limit."""
    per_user = settings.MESSAGES_PER_MINUTE
    if not per_user:
        return
    sentence = "You are sending messages faster than this service accepts."
    await _take(RateLimitItemPerMinute(per_user), sentence, "messages", str(user_id))
    if address:
        per_address = RateLimitItemPerMinute(per_user * USERS_BEHIND_ONE_ADDRESS)
        await _take(per_address, sentence, "messages_from", address)


async def check_failed_sign_in(address: str) -> None:
    """Count one invalid token or password. Raise RateLimited."""
    sentence = "Too many tokens or passwords from this address were not valid."
    await _take(RateLimitItemPerMinute(FAILED_SIGN_INS_PER_MINUTE), sentence, "failed_sign_ins", address)


async def check_password_guess(user_id: Any) -> None:
    """Count a password that a signed-in user entered as confirmation. Raise RateLimited."""
    sentence = "You entered your password too often."
    await _take(RateLimitItemPerMinute(PASSWORDS_PER_MINUTE), sentence, "passwords", str(user_id))


def tell_rate_limits(run: Run) -> Run:
    """Return the operation with `RateLimit-*` headers on each counted response, for the limit closest to exhaustion."""

    @wraps(run)
    async def answer(request: HttpRequest, **path: Any) -> HttpResponseBase:
        found: list[LimitState] = []
        before = _taken.set(found)
        try:
            response = await run(request, **path)
        finally:
            _taken.reset(before)
        if found:
            # Compare shares, because limits have different sizes.
            nearest = min(found, key=lambda taken: taken.remaining / taken.limit)
            response["RateLimit-Limit"] = str(nearest.limit)
            response["RateLimit-Remaining"] = str(nearest.remaining)
            response["RateLimit-Reset"] = str(nearest.reset_s)
        return response

    return answer


async def _take(item: RateLimitItem, sentence: str, *names: str) -> None:
    taken = await _counter().take(item, names)
    if (noted := _taken.get()) is not None:
        noted.append(taken)
    if taken.is_refused:
        message = f"{sentence} Please wait {taken.reset_s} s."
        raise RateLimited(message, retry_after_s=taken.reset_s)


def _counter() -> _Counter:
    loop = asyncio.get_running_loop()
    if loop not in _counters:
        _counters[loop] = _Counter()
    return _counters[loop]


class _LocalStorage(MemoryStorage):
    """Counts in this process, and removes expired entries once a minute: the library would start that with each
    message, and switch to a thread and back for each counted user."""

    _has_rested = False

    async def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        if self.timer is None or self.timer.done():
            # Alternate a sleep and a pass, because the library starts a pass whenever the timer is done.
            self._has_rested = not self._has_rested
            if self._has_rested:
                self.timer = asyncio.create_task(asyncio.sleep(EXPIRE_EVERY_S))
        return await super().acquire_entry(key, limit, expiry, amount)


class _Counter:
    """Counts in Redis for all processes, or in each process while Redis does not respond."""

    def __init__(self) -> None:
        self._local = MovingWindowRateLimiter(_LocalStorage())
        self._shared = MovingWindowRateLimiter(_redis()) if settings.REDIS_URL else None
        self._away_until = 0.0

    async def take(self, item: RateLimitItem, names: Sequence[str]) -> LimitState:
        """Count one request, unless the limit is reached."""
        if self._shared is not None and time.monotonic() >= self._away_until:
            try:
                async with asyncio.timeout(REDIS_TIMEOUT_S):
                    return await _hit(self._shared, item, names)
            except (OSError, redis.RedisError) as error:  # a timeout is an OSError
                self._away_until = time.monotonic() + RETRY_REDIS_AFTER_S
                log.warning("Redis is unavailable (%s); each process counts its own requests.", error)
        return await _hit(self._local, item, names)


async def _hit(limiter: MovingWindowRateLimiter, item: RateLimitItem, names: Sequence[str]) -> LimitState:
    is_refused = not await limiter.hit(item, *names)
    window = await limiter.get_window_stats(item, *names)
    return LimitState(item.amount, 0 if is_refused else window.remaining, window.reset_time, is_refused)


def _redis() -> RedisStorage:
    # The default is coredis, another client, which is not installed.
    return RedisStorage(f"async+{settings.REDIS_URL}", implementation="redispy", key_prefix="palimpsest")
