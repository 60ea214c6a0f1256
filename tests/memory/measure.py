"""Print the CPU time of the parts of the context engine without I/O: `python -m tests.memory.measure`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from memory.budget import TokenBudget
from memory.summaries.extractive import extract_summary
from memory.tokens import estimate_text, text_message
from memory.truncate import smart_truncate
from memory.turns import repair_tool_calls, safe_split
from memory.types import Message
from memory.window.compaction import PlanInputs, plan_span
from memory.window.guard import ContextGuard
from memory.window.policy import DEFAULT_POLICY
from tests.memory.histories import call, reply, result, stored, user
from tests.memory.views import fit

SAMPLES = json.loads((Path(__file__).parent / "fixtures" / "token_counts.json").read_text(encoding="utf-8"))
LENGTH = 10_000


def best_of(work: Callable[[], object], times: int = 5) -> float:
    """Return the CPU seconds of the fastest run, because other processes slow down some runs."""
    spent = []
    for _ in range(times):
        begun = time.process_time()
        work()
        spent.append(time.process_time() - begun)
    return min(spent)


def long_history() -> list[Message]:
    turns = (
        (
            user(f"What about order A-{turn}? " + "word " * (turn % 60)),
            *((call(f"c{turn}"), result(f"c{turn}", "found " * (turn % 300))) if turn % 3 == 0 else ()),
            reply(f"It costs ${turn}. " + "text " * (turn % 120)),
        )
        for turn in range(LENGTH)
    )
    return stored([each for turn in turns for each in turn][:LENGTH])


def measure_views() -> None:
    history = long_history()
    request = [text_message("system", "Hi."), *history, user("And now?")]
    for window in (8_000, 32_000, 128_000, 1_000_000):
        budget = TokenBudget(window, min(64_000, window // 2))
        show(f"fit a view, window {window:,}", best_of(partial(fit, history, budget=budget)))
    show(
        "plan a compaction",
        best_of(lambda: plan_span(PlanInputs(history, None, DEFAULT_POLICY, TokenBudget()))),
    )
    show("smart truncation", best_of(lambda: smart_truncate(request, 60_000, 10)))
    show("guard", best_of(lambda: ContextGuard(DEFAULT_POLICY, TokenBudget()).check(request)))
    show("repair tool calls", best_of(lambda: repair_tool_calls(history)))
    show("a safe split at every message", best_of(lambda: [safe_split(history, at) for at in range(LENGTH)]))


def measure_texts() -> None:
    for kind in dict.fromkeys(sample["kind"] for sample in SAMPLES):
        text = "\n".join(sample["text"] for sample in SAMPLES if sample["kind"] == kind)
        text = (text * (1_000_000 // len(text) + 1))[:1_000_000]
        print(f"estimate {kind:10} {1 / best_of(partial(estimate_text, text)):6.0f} Mchar/s")
    prose = "\n".join(sample["text"] for sample in SAMPLES) * 3
    show("extract from 100,000 characters", best_of(lambda: extract_summary([user(prose[:100_000])], 1_000)))


def show(what: str, seconds: float) -> None:
    print(f"{what:36} {seconds * 1_000:7.1f} ms")


if __name__ == "__main__":
    print(f"{LENGTH:,} messages with tool calls")
    measure_views()
    measure_texts()
