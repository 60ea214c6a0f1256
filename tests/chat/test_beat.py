"""Periodic tasks continue after the clock is set back and on a full disk."""

from __future__ import annotations

import shelve
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from chatapp.operations import clock
from chatapp.operations.serving.embedded import EmbeddedWorker
from chatapp.operations.workers.beat import SteadyScheduler
from chatapp.operations.workers.celery_app import app


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the entries that were sent."""
    names: list[str] = []
    monkeypatch.setattr(
        SteadyScheduler, "apply_entry", lambda self, entry, producer: names.append(entry.name)
    )
    return names


def open_scheduler(folder: Path) -> SteadyScheduler:
    class Unconnected(SteadyScheduler):
        producer = None

    return Unconnected(app, schedule_filename=str(folder / "schedule"))


def tick_until(scheduler: SteadyScheduler, moment: datetime, monkeypatch: pytest.MonkeyPatch) -> float:
    """Tick until no task is due at `moment`, and return the seconds until the next tick."""
    monkeypatch.setattr(app, "now", lambda: moment)
    while not (seconds := scheduler.tick()):
        pass
    return seconds


@pytest.mark.parametrize("is_restarted", [False, True], ids=["going on", "restarted"])
def test_a_task_sent_while_the_clock_was_ahead_is_sent_again_after_its_interval(
    tmp_path: Path, sent: list[str], monkeypatch: pytest.MonkeyPatch, is_restarted: bool
) -> None:
    now = clock.now()
    scheduler = open_scheduler(tmp_path)
    tick_until(scheduler, now + timedelta(days=1), monkeypatch)
    assert set(sent) >= set(app.conf.beat_schedule)
    if is_restarted:
        scheduler.close()
        scheduler = open_scheduler(tmp_path)
    sent.clear()

    shortest = min(entry["schedule"] for entry in app.conf.beat_schedule.values())
    assert tick_until(scheduler, now, monkeypatch) <= shortest
    assert not sent
    tick_until(scheduler, now + timedelta(seconds=shortest + 1), monkeypatch)
    assert "sweep" in sent
    scheduler.close()


def test_a_full_disk_stops_no_task_and_the_schedule_is_written_once_there_is_room(
    tmp_path: Path, sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = clock.now()
    scheduler = open_scheduler(tmp_path)
    with monkeypatch.context() as full:
        full.setattr(shelve.Shelf, "__setitem__", refuse_to_write)
        tick_until(scheduler, now + timedelta(hours=2), monkeypatch)
        scheduler.sync()
    assert "clean-up" in sent
    scheduler.close()
    [sent_at] = [
        entry.last_run_at for entry in open_scheduler(tmp_path).schedule.values() if entry.name == "clean-up"
    ]
    assert sent_at == now + timedelta(hours=2)


def test_embedded_and_production_deployments_use_the_steady_scheduler() -> None:
    embedded = EmbeddedWorker().beat.service.get_scheduler(lazy=True)
    production = app.Beat().Service(app, scheduler_cls=app.Beat().scheduler_cls).get_scheduler(lazy=True)
    assert type(embedded) is type(production) is SteadyScheduler


def refuse_to_write(shelf: Any, key: str, value: Any) -> None:
    raise OSError(28, "No space left on device")
