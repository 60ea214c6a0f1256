"""A scripted model that recognises the caller within a plan, so that parallel steps need no order."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Literal

from agents.plan.prompts import ANALYST_MARK, PLANNER_MARK, STEP_MARK
from tests.servers.behaviour import Behaviour, says
from tests.servers.openai_server import ModelServer
from tests.servers.recording import RecordedRequest

Caller = Literal["planner", "analyst", "step", "answer"]
GOAL_MET = '{"goal_met": true, "confidence": 0.9, "missing": ""}'
NOT_MET = '{"goal_met": false, "confidence": 0.2, "missing": "the price of B"}'
_MARKS: dict[str, Caller] = {PLANNER_MARK: "planner", ANALYST_MARK: "analyst", STEP_MARK: "step"}


def plan_of(**dependencies: str) -> str:
    """`plan_of(a="", b="", c="a b")` returns three steps; c depends on the others. The task of a is “Do a.”."""
    steps = [
        {"id": name, "title": f"Step {name}", "task": f"Do {name}.", "dependencies": before.split()}
        for name, before in dependencies.items()
    ]
    return json.dumps({"steps": steps})


@dataclass
class PlannedServer:
    """Answers each caller from a script and repeats its last entry. Each step has a script of its own, by id."""

    server: ModelServer
    plans: list[str | Behaviour] = field(default_factory=lambda: [plan_of(a="", b="")])
    analyses: list[str | Behaviour] = field(default_factory=lambda: [GOAL_MET])
    answers: list[str | Behaviour] = field(default_factory=lambda: ["The answer."])
    steps: dict[str, list[str | Behaviour]] = field(default_factory=lambda: defaultdict(lambda: ["Found."]))

    def requests(self, caller: Caller, step: str = "") -> list[RecordedRequest]:
        found = [one for one in self.server.requests_of("chat") if caller_of(one) == caller]
        return [one for one in found if not step or step_of(one) == step]

    def wait_for_steps(self, *steps: str) -> None:
        def came(_: ModelServer) -> bool:
            return all(self.requests("step", step) for step in steps)

        self.server.wait_until(came)

    def behave(self, request: RecordedRequest) -> Behaviour:
        caller = caller_of(request)
        if caller == "step":
            script = self.steps[step_of(request)]
        else:
            script = {"planner": self.plans, "analyst": self.analyses, "answer": self.answers}[caller]
        answer = script.pop(0) if len(script) > 1 else script[0]
        return says(answer) if isinstance(answer, str) else answer


def planned_server(server: ModelServer) -> PlannedServer:
    planned = PlannedServer(server)
    server.defaults["chat"] = planned.behave
    return planned


def caller_of(request: RecordedRequest) -> Caller:
    system = str(request.messages[0]["content"])
    return next((caller for mark, caller in _MARKS.items() if system.startswith(mark)), "answer")


def step_of(request: RecordedRequest) -> str:
    """Return the id of the step by its task, the last message that is one; "" if there is none."""
    tasks = [re.fullmatch(r"Do (\S+)\.", str(message.get("content"))) for message in request.messages]
    return next((task[1] for task in reversed(tasks) if task), "")


def tool_call(name: str, **arguments: Any) -> Behaviour:
    call = {"id": "call_1", "name": name, "arguments": json.dumps(arguments)}
    return Behaviour(text="", tool_calls=(call,), finish_reason="tool_calls")
