"""The Celery application, for `celery -A chatapp worker` and for processes that send tasks."""

from __future__ import annotations

import os
import time
from typing import Any

from celery import Celery, Task, signals
from kombu.transport import TRANSPORT_ALIASES

from chatapp.operations import telemetry
from chatapp.operations.discovery import import_every

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatapp.settings")
# Django's system checks are for developers. For them, each worker would import every page and the admin.
os.environ.setdefault("CELERY_SKIP_CHECKS", "true")


class SpannedTask(Task):  # type: ignore[type-arg] # it has no parameters at run time
    """A task with an OpenTelemetry span, linked to the requests, runs and tasks that caused it."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        caused_by = getattr(self.request, "caused_by", None) or []
        name = f"task {self.name.removeprefix('chatapp.')}"
        with telemetry.span(name, caused_by=caused_by, task_id=self.request.id or "") as measured:
            try:
                result = self.run(*args, **kwargs)
            except Exception:
                measured.set_attribute("palimpsest.status", "failed")
                raise
            measured.set_attribute("palimpsest.status", "complete")
            return result


# By name, because only processes that use Redis may import it.
TRANSPORT_ALIASES.update(dict.fromkeys(("redis", "rediss"), "chatapp.operations.workers.broker:Transport"))
app = Celery("chatapp", task_cls="chatapp.operations.workers.celery_app:SpannedTask")
app.config_from_object("django.conf:settings", namespace="CELERY")
# Make it the current app in all threads, not only in the one that imports this module.
app.set_default()


@signals.import_modules.connect
def import_tasks(**_: Any) -> None:
    """Import the tasks of every package in workers and beat; other processes send them by name."""
    import_every("tasks")


@signals.setup_logging.connect
def leave_logging_as_it_is(**_: Any) -> None:
    """Keep LOG_LEVEL and LOG_FORMAT in workers and beat: if this signal has a receiver, Celery does not set up logging
    and ignores `--loglevel`."""


@signals.before_task_publish.connect
def note_time(headers: dict[str, Any], **_: Any) -> None:
    """Add the sending time to the task, so that the worker can measure how long it waited."""
    headers["sent_at"] = time.time()
