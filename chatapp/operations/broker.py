"""A Redis transport for Celery with which the loss of the connection does not end a worker.

When Redis goes away, Celery closes the connection in two steps. After the first one the connection has lost its
address, but messages of running tasks must still be requeued or acknowledged over it. Kombu then raises an
AttributeError, which stops the worker (Celery and Kombu 5.7.0, while one task runs and another process waits). On a
ConnectionError the worker continues. Unacknowledged messages do no harm, because the row is the job.
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
    """Use this transport for all `redis://` and `rediss://` broker URLs."""
    TRANSPORT_ALIASES.update(dict.fromkeys(("redis", "rediss"), f"{__name__}:Transport"))
