"""Large work rests while answers need the whole process."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from chatapp.operations.database import work_budget
from chatapp.operations.database.threads import BEGINS_FOR_S
from chatapp.operations.database.work_budget import YIELD_AT_MOST_S, YIELD_STEP_S, yield_to_answers


@dataclass
class FakeTime:
    """A process whose other threads use its core for the first `busy_s` seconds."""

    busy_s: float
    now: float = 0.0

    def monotonic(self) -> float:
        return self.now

    def process_time(self) -> float:
        return min(self.now, self.busy_s)

    def thread_time(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize(
    ("busy_s", "rested_s"),
    [(0.0, YIELD_STEP_S), (0.5, 0.5 + YIELD_STEP_S), (60.0, YIELD_STEP_S + YIELD_AT_MOST_S)],
    ids=["idle", "busy for a while", "busy for ever"],
)
def test_large_work_rests_while_the_process_is_busy(
    busy_s: float, rested_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeTime(busy_s)
    monkeypatch.setattr(work_budget, "time", fake)
    monkeypatch.setattr(work_budget, "calls_waiting", lambda: 0)
    monkeypatch.setattr(work_budget, "answers_begin", lambda: False)
    yield_to_answers(YIELD_STEP_S)
    assert fake.now == pytest.approx(rested_s, abs=1.5 * YIELD_STEP_S)


def test_large_work_rests_while_an_answer_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeTime(busy_s=0.0)
    monkeypatch.setattr(work_budget, "time", fake)
    monkeypatch.setattr(work_budget, "calls_waiting", lambda: 0)
    monkeypatch.setattr(work_budget, "answers_begin", lambda: fake.now < BEGINS_FOR_S)
    yield_to_answers(YIELD_STEP_S)
    assert fake.now == pytest.approx(BEGINS_FOR_S, abs=1.5 * YIELD_STEP_S)
