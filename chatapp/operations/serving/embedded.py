"""Embedded mode: the lock on the data folder, and the Celery worker and beat in the server's process."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path
from typing import IO, Any

from celery.beat import EmbeddedService
from celery.worker import WorkController

from chatapp.operations.serving.listener import CannotServe
from chatapp.operations.workers.beat import SteadyScheduler
from chatapp.operations.workers.celery_app import app
from chatapp.operations.workers.process_reports import threads

LOCK_NAME = "serve.lock"
CONCURRENCY = 2
STOP_TIMEOUT_S = 3.0


def lock_folder(folder: Path) -> IO[str]:
    """Lock the folder, and return the lock file. The lock lasts while it is open. Raise CannotServe."""
    # "a+", because opening the file must not erase the id of the holder.
    file = (folder / LOCK_NAME).open("a+")
    try:
        # The system releases the lock with the process, however it ends.
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.seek(0)
        holder = file.read().strip() or "unknown"
        raise CannotServe(
            f"The data folder {folder} is already served by process {holder}: "
            "stop that one, or set DATA_DIR to another folder."
        ) from None
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    return file


class EmbeddedWorker:
    """Runs worker and beat in threads of this process. The sweep finds work that is unfinished at `stop`."""

    def __init__(self) -> None:
        # These talk to other workers and to monitors, which do not exist with a broker in memory.
        options: dict[str, Any] = {"without_gossip": True, "without_mingle": True, "without_heartbeat": True}
        self.worker = WorkController(
            app=app, pool="threads", concurrency=CONCURRENCY, loglevel="WARNING", **options
        )
        self.beat: Any = EmbeddedService(app, thread=True, scheduler_cls=SteadyScheduler)

    def start(self) -> None:
        working = threading.Thread(target=self.worker.start, name="celery-worker", daemon=True)
        working.start()
        threads["worker"] = working.is_alive
        self.beat.daemon = True
        self.beat.start()
        threads["beat"] = self.beat.is_alive

    def stop(self) -> None:
        """Wait some seconds for running tasks. Others end with the process."""
        self.beat.service.stop()
        ending = threading.Thread(target=self.worker.stop, daemon=True)
        ending.start()
        # Celery's thread pool waits for running tasks forever.
        ending.join(STOP_TIMEOUT_S)
