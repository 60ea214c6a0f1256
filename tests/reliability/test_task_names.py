"""Tasks are sent by name only, so a wrong name would be a job that never runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings

from chatapp.operations.workers.celery_app import app

CHATAPP = Path(settings.BASE_DIR) / "chatapp"


def names_passed_to(function: str) -> Iterator[tuple[str, str]]:
    """Yield (file and line, first argument as written) of each call."""
    for path in sorted(CHATAPP.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == function:
                yield f"{path.relative_to(CHATAPP)}:{node.lineno}", ast.unparse(node.args[0]).strip("'\"")


def test_every_name_that_wakes_a_worker_is_a_registered_task() -> None:
    app.loader.import_default_modules()
    calls = [*names_passed_to("wake_worker"), *names_passed_to("wake_for_many")]
    assert len(calls) > 20
    assert [(place, name) for place, name in calls if name not in app.tasks] == []


def test_every_periodic_task_is_registered() -> None:
    app.loader.import_default_modules()
    names = [entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()]
    assert [name for name in names if name not in app.tasks] == []


def test_the_tasks_of_every_package_are_registered() -> None:
    app.loader.import_default_modules()
    with_tasks = {
        ".".join(["chatapp", *path.relative_to(CHATAPP).with_suffix("").parts])
        for path in CHATAPP.rglob("tasks.py")
        if "@shared_task" in path.read_text()
    }
    assert with_tasks == {name.rpartition(".")[0] for name in app.tasks if name.startswith("chatapp.")}
