"""Django's cache in Redis, such as allauth's counts of sign-ins. While Redis is away each process keeps its own."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from django.core.cache.backends.locmem import LocMemCache
from django.core.cache.backends.redis import RedisCache
from redis.exceptions import RedisError

log = logging.getLogger(__name__)

PATIENCE_S = 1.0
TRY_AGAIN_S = 5.0


def _or_here(method: str) -> Callable[..., Any]:
    def call(self: SharedCache, *args: Any, **kwargs: Any) -> Any:
        if time.monotonic() >= self.away_until:
            try:
                return getattr(RedisCache, method)(self, *args, **kwargs)
            except (RedisError, OSError) as error:
                self.away_until = time.monotonic() + TRY_AGAIN_S
                log.warning("Redis is away (%s); each process keeps its own cache.", error)
        return getattr(self.here, method)(*args, **kwargs)

    return call


class SharedCache(RedisCache):
    def __init__(self, server: str, params: dict[str, Any]) -> None:
        patience = {"socket_timeout": PATIENCE_S, "socket_connect_timeout": PATIENCE_S}
        super().__init__(server, {**params, "OPTIONS": {**patience, **params.get("OPTIONS", {})}})
        self.here = LocMemCache("while-redis-is-away", params)
        self.away_until = 0.0

    add = _or_here("add")
    get = _or_here("get")
    set = _or_here("set")
    touch = _or_here("touch")
    delete = _or_here("delete")
    get_many = _or_here("get_many")
    has_key = _or_here("has_key")
    incr = _or_here("incr")
    set_many = _or_here("set_many")
    delete_many = _or_here("delete_many")
    clear = _or_here("clear")
