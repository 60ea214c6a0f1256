"""Checks in batches whether the users of this process's sockets may still read."""

from __future__ import annotations

import asyncio
import logging

from django.conf import settings

from chatapp.accounts.selectors import SignIn, still_signed_in
from chatapp.operations.database.threads import OUTAGE_ERRORS, in_database
from chatapp.realtime.subscriptions import Connection

log = logging.getLogger(__name__)


class RightsWatch:
    """Closes a connection when its user loses the right to it, even if no message about that reached this process."""

    def __init__(self) -> None:
        self._watched: dict[Connection, SignIn] = {}
        self._task: asyncio.Task[None] | None = None

    def add(self, connection: Connection, sign_in: SignIn) -> None:
        self._watched[connection] = sign_in
        loop = asyncio.get_running_loop()
        # A task that failed, or whose loop has ended, does not check any more.
        if self._task is None or self._task.done() or self._task.get_loop() is not loop:
            self._task = loop.create_task(self._check_forever())

    def remove(self, connection: Connection) -> None:
        self._watched.pop(connection, None)
        if not self._watched and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _check_forever(self) -> None:
        while True:
            await asyncio.sleep(settings.SOCKET_CHECK_S)
            try:
                await self._check()
            except OUTAGE_ERRORS:
                log.warning("The rights of sockets could not be checked; trying again.", exc_info=True)
            # Catch everything: if the watch ended, users with revoked rights could read on.
            except Exception:
                log.exception("The rights of sockets could not be checked; trying again.")

    async def _check(self) -> None:
        # Copy it, because sockets come and go during the query.
        watched = dict(self._watched)
        valid = await in_database(still_signed_in)(set(watched.values()))
        for connection, sign_in in watched.items():
            if sign_in not in valid:
                connection.close("signed_out")


rights_watch = RightsWatch()
