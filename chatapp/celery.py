"""The Celery application: `celery -A chatapp worker`, and what wakes workers from the other processes."""

from __future__ import annotations

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatapp.settings")

app = Celery("chatapp")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(
    [
        f"chatapp.{package}"
        for package in ("agent_presets", "compaction", "forgetting", "long_term", "operations", "recall")
    ]
)
# Threads other than the one that imports this find it as the current app, too.
app.set_default()
