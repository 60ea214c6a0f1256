"""Celery's connection to Redis, whose loss ends no worker.

Where Redis goes away, Celery closes the connection in two steps. After the first one the connection has forgotten its
address, yet the messages of running tasks are still to be given back or acknowledged over it. Kombu fails with an
AttributeError there, which stops the worker (Celery and Kombu 5.7.0, while one task runs and another process waits).
Told that the connection is away, the worker goes on. What nobody acknowledged does no harm: the row is the job.
"""

from __future__ import annotations

from typing import Any

from kombu.transport import TRANSPORT_ALIASES, redis
from redis.exceptions import ConnectionError as AwayError


class Channel(redis.Channel):
    def _connparams(self, asynchronous: bool = False) -> dict[str, Any]:
        if self.connection.client is None:
            raise AwayError("The connection that this message came by is closed.")
        parameters: dict[str, Any] = super()._connparams(asynchronous)  # type: ignore[misc] # not in its stubs
        return parameters


class Transport(redis.Transport):
    Channel = Channel


def use_for_redis() -> None:
    """Let every `redis://` and `rediss://` address of a broker be reached this way."""
    TRANSPORT_ALIASES.update(dict.fromkeys(("redis", "rediss"), f"{__name__}:Transport"))
