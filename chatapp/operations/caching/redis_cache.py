"""Django's cache in Redis, in which allauth counts sign-ins. During an outage each process uses its own local cache."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from django.core.cache.backends.locmem import LocMemCache
from django.core.cache.backends.redis import RedisCache
from redis.exceptions import RedisError

log = logging.getLogger(__name__)

TIMEOUT_S = 1.0
# How long to skip Redis after a failure. Otherwise every call would wait for the timeout during an outage.
TRY_AGAIN_S = 5.0


def _or_local(method: str) -> Callable[..., Any]:
    """Return a method that calls Redis, or the local cache for TRY_AGAIN_S after Redis failed."""

    def call(self: SharedCache, *args: Any, **kwargs: Any) -> Any:
        if time.monotonic() >= self.away_until:
            try:
                return getattr(RedisCache, method)(self, *args, **kwargs)
            except (RedisError, OSError) as error:
                self.away_until = time.monotonic() + TRY_AGAIN_S
                log.warning("Redis is unavailable (%s); each process keeps its own cache.", error)
        return getattr(self.local, method)(*args, **kwargs)

    return call


class SharedCache(RedisCache):
    def __init__(self, server: str, params: dict[str, Any]) -> None:
        # Without timeouts, a Redis that hangs would block each sign-in.
        timeouts = {"socket_timeout": TIMEOUT_S, "socket_connect_timeout": TIMEOUT_S}
        super().__init__(server, {**params, "OPTIONS": {**timeouts, **params.get("OPTIONS", {})}})
        self.local = LocMemCache("while-redis-is-away", params)
        self.away_until = 0.0

    add = _or_local("add")
    get = _or_local("get")
    set = _or_local("set")
    touch = _or_local("touch")
    delete = _or_local("delete")
    get_many = _or_local("get_many")
    has_key = _or_local("has_key")
    incr = _or_local("incr")
    set_many = _or_local("set_many")
    delete_many = _or_local("delete_many")
    clear = _or_local("clear")
