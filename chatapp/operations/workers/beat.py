"""A scheduler for Celery's beat that survives a clock set back and a full disk."""

from __future__ import annotations

import logging
from typing import Any

from celery.beat import PersistentScheduler

logger = logging.getLogger(__name__)


class SteadyScheduler(PersistentScheduler):
    _store: Any

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Send due tasks and return the seconds to wait. A last run in the future counts as now. Otherwise, after the
        clock is set back, a task would wait until the clock catches up, even after a restart."""
        entries = [(entry, entry.default_now()) for entry in self.schedule.values()]
        ahead = [(entry, now) for entry, now in entries if entry.last_run_at and entry.last_run_at > now]
        for entry, now in ahead:
            entry.last_run_at = now
        if ahead:
            self.populate_heap()
        return float(super().tick(*args, **kwargs))

    def sync(self) -> None:
        """Save when each task was last sent. Continue if the disk is full, because a later attempt may succeed."""
        try:
            super().sync()
        except OSError as error:
            logger.warning("The schedule of periodic tasks was not written: %s", error)
            # `Shelf.sync` turns `writeback` off while it writes, and leaves it off if it fails.
            self._store.writeback = True
