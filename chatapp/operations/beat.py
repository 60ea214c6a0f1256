"""Celery's beat, which neither a clock that is set back nor a full disk ends."""

from __future__ import annotations

import logging
from typing import Any

from celery.beat import PersistentScheduler

logger = logging.getLogger(__name__)


class SteadyScheduler(PersistentScheduler):
    _store: Any

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Send what is due and return the seconds to wait. What was sent by a clock that was ahead counts as sent now:
        its interval would otherwise begin when the clock is there again, also after a restart."""
        entries = [(entry, entry.default_now()) for entry in self.schedule.values()]
        ahead = [(entry, now) for entry, now in entries if entry.last_run_at and entry.last_run_at > now]
        for entry, now in ahead:
            entry.last_run_at = now
        if ahead:
            self.populate_heap()
        return float(super().tick(*args, **kwargs))

    def sync(self) -> None:
        """Write down when what was sent. Where the disk is full, go on without: the next time may find room."""
        try:
            super().sync()
        except OSError as error:
            logger.warning("The schedule of periodic tasks was not written: %s", error)
            # A shelf that could not be written forgets that it holds what it gave out.
            self._store.writeback = True
