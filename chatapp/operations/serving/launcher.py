"""Starts and ends a web process: port, lock, schema, server; in embedded mode the worker and beat too."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from contextlib import nullcontext
from typing import IO, NoReturn

from django.conf import settings
from django.core.management import call_command
from django.core.management.commands.migrate import Command as MigrateCommand
from django.core.management.sql import emit_post_migrate_signal
from django.db import DatabaseError, connection

from chatapp.accounts.actions import ensure_setup_link
from chatapp.accounts.socket_auth import find_user_id
from chatapp.operations.database.schema_version import (
    NEWER,
    OLDER,
    ask_version,
    compare_schema,
    one_process_at_a_time,
)
from chatapp.operations.database.threads import in_database
from chatapp.operations.serving import lifecycle
from chatapp.operations.serving.asgi import application
from chatapp.operations.serving.embedded import EmbeddedWorker, lock_folder
from chatapp.operations.serving.listener import CannotServe, browser_address, open_listener
from chatapp.operations.serving.server import Server
from chatapp.operations.serving.server_limits import Limits
from chatapp.operations.storage.private_files import close_exposed, stored_paths
from chatapp.operations.workers.collector import exempt_loaded_code
from chatapp.runs import loops

log = logging.getLogger(__name__)

UPLOAD_PATH = b"/api/v1/files"
FORM_BYTES = 16 * 1024
"""Allowance for the parts of a form besides its one file."""
RESTARTING = 1012
CLOSE_REASON = "The service is restarting; reconnect in a moment."


class WebProcess:
    def __init__(self, host: str, port: int, *, migrates: bool) -> None:
        """Check everything that can fail before anything runs. Raise CannotServe."""
        self.listener = open_listener(host, port)
        # Before the schema, so that two processes that start at once do not both migrate.
        self.lock: IO[str] | None = lock_folder(settings.DATA_DIR) if settings.EMBEDDED else None
        close_exposed(stored_paths())
        prepare_schema(migrates)
        self.address = browser_address(self.listener)
        self.public_address = settings.PUBLIC_URL or self.address
        self.worker = EmbeddedWorker() if settings.EMBEDDED else None
        self.server = Server(
            application,
            self.listener,
            limits=Limits(
                request_bytes=settings.MAX_REQUEST_BYTES,
                frame_bytes=settings.MAX_FRAME_BYTES,
                route_bytes={UPLOAD_PATH: settings.MAX_UPLOAD_BYTES + FORM_BYTES},
                all_users_bytes=8 * settings.MAX_REQUEST_BYTES,
                connections_per_address=settings.CONNECTIONS_PER_ADDRESS,
            ),
            authenticate=find_user_id,
            proxies=settings.TRUSTED_PROXIES,
        )
        self.ending: asyncio.Task[None] | None = None

    def run(self) -> NoReturn:
        loop = self.server.loop
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.begin_end)
        starting = loop.create_task(self.start())
        self.server.run()
        raise SystemExit(f"The server ended by itself; start it again. ({starting})")

    async def start(self) -> None:
        try:
            await lifecycle.start()
            if self.worker:
                self.worker.start()
            link = await in_database(ensure_setup_link)()
            # Last, because everything loaded by now stays as long as the process.
            exempt_loaded_code()
        except Exception:
            log.exception("The service could not start.")
            leave(1)
        public = f", for everybody at {self.public_address}/" if self.public_address != self.address else ""
        print(f"Palimpsest answers at {self.address}/{public}", flush=True)
        if link:
            print(f"Become its admin, once, at {self.public_address}/setup/{link}", flush=True)

    def begin_end(self) -> None:
        """Drain at the first signal, and exit at once at the second."""
        if self.ending:
            leave(1)
        self.ending = self.server.loop.create_task(self.end())

    async def end(self) -> None:
        try:
            await self.server.stop_listening()
            # Sockets are still open, so readers get the rest of running answers.
            await loops.drain(settings.DRAIN_TIMEOUT_S)
            await lifecycle.stop()
            await self.server.close_connections(RESTARTING, CLOSE_REASON)
            if self.worker:
                await asyncio.to_thread(self.worker.stop)
        except Exception:
            log.exception("The service did not end cleanly; what was accepted is stored.")
            leave(1)
        leave(0)


def leave(code: int) -> NoReturn:
    """Exit without Python's shutdown, which waits for threads and, before 3.11.8, crashes on open sockets."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def prepare_schema(migrates: bool) -> None:
    try:
        ask_version()
        with one_process_at_a_time() if migrates else nullcontext():
            schema = compare_schema()
            if schema == "newer":
                raise CannotServe(NEWER)
            if schema == "older" and not migrates:
                raise CannotServe(OLDER)
            if schema == "older":
                # Use Django's own command: ours would wait for the lock that is held here.
                call_command(MigrateCommand(), verbosity=0, interactive=False)
            elif migrates:
                # The last step of `migrate`. The first one, building models from migrations, takes 3 MB and 0.05 s.
                emit_post_migrate_signal(verbosity=0, interactive=False, db=connection.alias)
    except DatabaseError as error:
        raise CannotServe(
            f"The database cannot be used ({str(error).strip()}): check DATABASE_URL."
        ) from None
    finally:
        connection.close()
