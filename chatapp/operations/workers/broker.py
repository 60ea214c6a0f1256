"""A Redis transport for Celery whose worker survives the loss of Redis in the middle of a task.

Celery 5.7 closes a lost connection twice. The first time clears the connection's address. The second one, and a later
acknowledgement of the running task, need that address to return or delete the message, and Kombu raises AttributeError,
which stops the worker. After a connection error instead, the worker reconnects. A message that is never acknowledged
does no harm: the database row is the job.
"""

from __future__ import annotations

from typing import Any

from kombu.transport import redis
from redis.exceptions import ConnectionError as AwayError


class Channel(redis.Channel):
    def _connparams(self, asynchronous: bool = False) -> dict[str, Any]:
        if self.connection.client is None:
            raise AwayError("The connection that delivered this message is closed.")
        parameters: dict[str, Any] = super()._connparams(asynchronous)  # type: ignore[misc] # not in its stubs
        return parameters


class Transport(redis.Transport):
    Channel = Channel
