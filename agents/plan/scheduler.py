"""Run the steps of one round in parallel, each as soon as the steps it depends on have ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import replace

from agents.plan.steps import PARALLEL_STEPS, STEP_ATTEMPTS, PlanStep, StepState

RunStep = Callable[[PlanStep, tuple[PlanStep, ...]], Awaitable[str]]
"""Returns the result of a step, given the step and its dependencies. Raises StepFailed."""
Steps = tuple[PlanStep, ...]


class StepFailed(Exception):
    """A step without a result; the message says why in one sentence. Other steps go on."""


async def run_steps(
    steps: Steps, run_step: RunStep, *, earlier: Sequence[PlanStep] = (), at_once: int = PARALLEL_STEPS
) -> AsyncGenerator[Steps, None]:
    """Yield all steps after each change, until all have ended. `earlier` are those of previous rounds.

    A failed step is retried once. A step that depends on others runs if any of them is done, and learns which are not;
    if none is done, it is skipped. Closing the generator cancels every step, and so does any error of `run_step` other
    than StepFailed.
    """
    states = _StepStates(steps, earlier)
    running: dict[asyncio.Task[str], str] = {}
    try:
        while True:
            states.skip_without_results()
            for step in states.ready()[: at_once - len(running)]:
                started = states.start(step)
                task = asyncio.ensure_future(run_step(started, states.dependencies_of(started)))
                running[task] = started.id
            yield states.steps
            if not running:
                return
            over, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in over:
                states.finish(running.pop(task), task)
    finally:
        # A cancelled `asyncio.wait` leaves its tasks running.
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


class _StepStates:
    """The state of each step of a round."""

    def __init__(self, steps: Steps, earlier: Sequence[PlanStep]) -> None:
        self._steps = {step.id: step for step in steps}
        self._earlier = {step.id: step for step in earlier}

    @property
    def steps(self) -> Steps:
        return tuple(self._steps.values())

    def dependencies_of(self, step: PlanStep) -> Steps:
        return tuple(self._steps.get(one) or self._earlier[one] for one in step.dependencies)

    def ready(self) -> list[PlanStep]:
        return [
            step
            for step in self.steps
            if step.state == "pending" and all(one.is_over for one in self.dependencies_of(step))
        ]

    def start(self, step: PlanStep) -> PlanStep:
        return self._put(replace(step, state="running", attempts=step.attempts + 1))

    def finish(self, step_id: str, task: asyncio.Task[str]) -> None:
        step = self._steps[step_id]
        try:
            self._put(replace(step, state="done", result=task.result()))
        except StepFailed as failed:
            state: StepState = "pending" if step.attempts < STEP_ATTEMPTS else "failed"
            self._put(replace(step, state=state, result=str(failed)))

    def skip_without_results(self) -> None:
        """Skip steps whose dependencies all ended without a result, then those that depend only on skipped steps."""
        while without := [step for step in self.ready() if self._has_nothing(step)]:
            for step in without:
                missing = ", ".join(step.dependencies)
                self._put(
                    replace(
                        step,
                        state="skipped",
                        result=f"The steps it depends on produced no result ({missing}).",
                    )
                )

    def _has_nothing(self, step: PlanStep) -> bool:
        dependencies = self.dependencies_of(step)
        return bool(dependencies) and all(one.state != "done" for one in dependencies)

    def _put(self, step: PlanStep) -> PlanStep:
        self._steps[step.id] = step
        return step
