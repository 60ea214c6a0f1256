"""When the steps of a plan start, which results they get, and that a failure does not stop the others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.plan.scheduler import StepFailed, Steps, run_steps
from agents.plan.steps import PlanStep


def step(id: str, *dependencies: str) -> PlanStep:
    return PlanStep(id, id.upper(), f"Do {id}.", dependencies)


@dataclass
class Bench:
    """Runs steps and keeps a log. `failing` maps a step to the number of its failures."""

    failing: dict[str, int] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    told: dict[str, Steps] = field(default_factory=dict)
    gates: dict[str, asyncio.Event] = field(default_factory=dict)
    most: int = 0
    running: int = 0

    async def work(self, step: PlanStep, dependencies: Steps) -> str:
        self.log.append(f"+{step.id}")
        self.told[step.id] = dependencies
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await (self.gates[step.id].wait() if step.id in self.gates else asyncio.sleep(0))
        finally:
            self.running -= 1
            self.log.append(f"-{step.id}")
        if self.failing.get(step.id, 0) > 0:
            self.failing[step.id] -= 1
            raise StepFailed(f"{step.id} broke")
        return f"result of {step.id}"


async def run_all(steps: Steps, bench: Bench, **options: int) -> dict[str, PlanStep]:
    boards = [board async for board in run_steps(steps, bench.work, **options)]
    return {one.id: one for one in boards[-1]}


@pytest.mark.mechanism("fim.plan-steps")
async def test_independent_steps_overlap_and_a_step_waits_only_for_its_dependencies() -> None:
    bench = Bench(gates={"slow": asyncio.Event()})
    steps = (step("slow"), step("quick"), step("after", "quick"))
    async for board in run_steps(steps, bench.work):
        if {one.id: one.state for one in board}["after"] == "done":
            bench.gates["slow"].set()
    assert bench.log == ["+slow", "+quick", "-quick", "+after", "-after", "-slow"]
    assert bench.told["after"][0].result == "result of quick"


async def test_no_more_steps_run_at_once_than_allowed() -> None:
    bench = Bench()
    await run_all(tuple(step(f"s{number}") for number in range(7)), bench, at_once=3)
    assert bench.most == 3


async def test_a_step_that_fails_once_is_retried() -> None:
    bench = Bench(failing={"a": 1})
    over = await run_all((step("a"), step("b", "a")), bench)
    assert (over["a"].state, over["a"].attempts, over["b"].state) == ("done", 2, "done")


async def test_a_step_that_fails_twice_is_reported_to_its_dependents_and_stops_no_other() -> None:
    bench = Bench(failing={"bad": 2})
    steps = (
        step("bad"),
        step("good"),
        step("both", "bad", "good"),
        step("lost", "bad"),
        step("last", "lost"),
    )
    over = await run_all(steps, bench)
    assert {name: one.state for name, one in over.items()} == {
        "bad": "failed", "good": "done", "both": "done", "lost": "skipped", "last": "skipped",
    }  # fmt: skip
    assert [(one.id, one.state, one.result) for one in bench.told["both"]] == [
        ("bad", "failed", "bad broke"),
        ("good", "done", "result of good"),
    ]
    assert over["bad"].attempts == 2
    assert "bad" in over["lost"].result


async def test_closing_the_scheduler_ends_every_step() -> None:
    bench = Bench(gates={"a": asyncio.Event(), "b": asyncio.Event()})
    board = run_steps((step("a"), step("b")), bench.work)
    await anext(board)
    await asyncio.sleep(0)
    assert bench.running == 2
    await board.aclose()
    assert (bench.running, bench.log) == (0, ["+a", "+b", "-a", "-b"])


async def test_an_unexpected_exception_ends_every_other_step() -> None:
    async def work(step: PlanStep, dependencies: Steps) -> str:
        if step.id == "a":
            raise ZeroDivisionError
        return await bench.work(step, dependencies)

    bench = Bench(gates={"b": asyncio.Event()})
    with pytest.raises(ZeroDivisionError):
        async for _ in run_steps((step("a"), step("b")), work):
            pass
    assert bench.running == 0


@st.composite
def plans(draw: Callable[..., object]) -> tuple[Steps, dict[str, int]]:
    count = draw(st.integers(1, 8))
    steps = tuple(
        step(
            f"s{at}", *draw(st.lists(st.sampled_from([f"s{n}" for n in range(at)]), unique=True, max_size=3))
        )
        if at
        else step("s0")
        for at in range(count)
    )
    return steps, draw(st.dictionaries(st.sampled_from([one.id for one in steps]), st.integers(1, 2)))


@given(plans(), st.integers(1, 4))
def test_every_plan_ends_with_all_steps_over_and_none_started_too_early(
    plan: tuple[Steps, dict[str, int]], at_once: int
) -> None:
    steps, failing = plan
    bench = Bench(failing=dict(failing))
    over = asyncio.run(run_all(steps, bench, at_once=at_once))
    assert all(one.is_over for one in over.values())
    assert bench.most <= at_once
    for name, told in bench.told.items():
        assert all(one.is_over for one in told), name
    for name, one in over.items():
        has_basis = not one.dependencies or any(over[before].state == "done" for before in one.dependencies)
        expected = "skipped" if not has_basis else "failed" if failing.get(name) == 2 else "done"
        assert one.state == expected
