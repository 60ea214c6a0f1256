"""The Celery application: `celery -A chatapp worker`, and what wakes workers from the other processes."""

from __future__ import annotations

import os
import time
from typing import Any

from celery import Celery, Task, signals

from chatapp.operations import broker, telemetry

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatapp.settings")
# Django's checks of the code are for its authors. Each worker would import every page and the admin for them.
os.environ.setdefault("CELERY_SKIP_CHECKS", "true")


class SpannedTask(Task):  # type: ignore[type-arg] # it has no parameters at run time
    """A task that is a span for OpenTelemetry, linked to the requests, runs and tasks that woke it."""

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


broker.use_for_redis()
app = Celery("chatapp", task_cls="chatapp.operations.celery_app:SpannedTask")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(
    [
        f"chatapp.{package}"
        for package in (
            "agent_presets",
            "compaction",
            "features.importing",
            "features.titles",
            "features.webhooks",
            "forgetting",
            "long_term",
            "operations",
            "recall",
        )
    ]
)
# Threads other than the one that imports this find it as the current app, too.
app.set_default()


@signals.setup_logging.connect
def leave_logging_as_it_is(**_: Any) -> None:
    """Let LOG_LEVEL and LOG_FORMAT hold in workers and beat too: with a receiver Celery sets up no logging of its own,
    whatever its `--loglevel` says."""


@signals.before_task_publish.connect
def note_time(headers: dict[str, Any], **_: Any) -> None:
    """Let a task know when it was sent: how long it waited is measured where it begins."""
    headers["sent_at"] = time.time()
