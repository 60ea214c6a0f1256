"""Overhead of the tool loop, and how well independent steps of a plan overlap.

python -m benchmarks.agents [--database sqlite|postgres] [--skip-plans]
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import statistics
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from websockets.sync.client import connect

from agents.chat_models.dialect import guess_dialect, write_body
from agents.chat_models.wire import encode_body
from agents.loop.react import CallFinished, run_react
from agents.ports import RequestedCall, ToolUse
from agents.requests.context import AssembledContext, ContextInputs
from agents.tools.protocol import ToolCaller, ToolOutput, ToolTraits
from agents.types import (
    Finished,
    ModelEndpoint,
    ModelItem,
    ModelRequest,
    RequestSent,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
    ToolSpec,
)
from benchmarks.stage import ModelProcess, model_server, prepared_database, running_service
from chatapp.operations.database.threads import in_database
from memory.budget import TokenBudget
from memory.tokens import text_message
from memory.types import Message, TextPart
from memory.window.policy import ContextPolicy
from tests.servers.service import Service

WINDOW, OUTPUT = 128_000, 16_000
ITERATIONS = 30
STEPS = 6
STEP_S = 0.4
WORDS = "the quick brown fox jumps over a lazy dog near 42 rivers and tells nobody about it "


@dataclass
class EchoTool:
    """A tool with a schema of typical size that answers at once."""

    number: int
    size_chars: int
    traits: ToolTraits = field(default_factory=ToolTraits)

    @property
    def spec(self) -> ToolSpec:
        properties = {
            name: {"type": "string", "description": f"The {name} to look for, as the user wrote it."}
            for name in ("query", "place", "since")
        }
        schema = {"type": "object", "properties": properties, "required": ["query"]}
        return ToolSpec(f"tool_{self.number}", f"Looks up number {self.number} of many things.", schema)

    async def call(self, arguments: Mapping[str, Any], caller: ToolCaller) -> ToolOutput:
        text = f"{arguments['query']}: " + WORDS * (self.size_chars // len(WORDS))
        return ToolOutput(text)


@dataclass
class CallingModel:
    """A model without delay that calls a tool `calls` times, then answers. Requests are encoded as in production."""

    calls: int
    name: str = "instant"
    asked: int = 0
    written_s: float = 0.0
    sizes: list[int] = field(default_factory=list)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelItem, None]:
        self.asked += 1
        self.sizes.append(sum(message.tokens for message in request.messages))
        started = time.process_time()
        endpoint = ModelEndpoint("instant", "http://127.0.0.1:1/v1")
        dialect = guess_dialect(endpoint)
        body = write_body(request, "instant", dialect)
        sent = RequestSent(request, body, encode_body(body), dialect.style)
        self.written_s += time.process_time() - started
        yield sent
        if self.asked <= self.calls and request.tools:
            arguments = f'{{"query": "number {self.asked}"}}'
            yield ToolCallDelta(0, f"c{self.asked}", f"tool_{self.asked % len(request.tools)}", arguments)
            yield Finished("tool_calls", TokenUsage(1, 1))
        else:
            yield TextDelta("Done.")
            yield Finished("stop", TokenUsage(1, 1))


def make_history(tokens: int, message_tokens: int) -> list[Message]:
    """Return stored messages with about `tokens` tokens in total."""
    text = WORDS * max(1, message_tokens // 20)
    one = text_message("user", text)
    count = max(2, tokens // one.tokens // 2 * 2)
    roles = ("user", "assistant")
    return [
        Message(roles[at % 2], (TextPart(f"{at}: {text}"),), one.tokens, id=f"m{at}", position=at)  # type: ignore[arg-type]
        for at in range(count)
    ]


def assemble(history: list[Message], tools: list[EchoTool]) -> AssembledContext:
    policy = ContextPolicy(max_steps=ITERATIONS + 1, trigger=0.9)
    inputs = ContextInputs(
        system=text_message("system", "You are a helpful assistant."),
        checkpoint=None,
        messages=history,
        question=text_message("user", "What of all this?", kind="question", pinned=True),
        policy=policy,
        budget=TokenBudget(WINDOW, OUTPUT, 4_000),
        tools=tuple(tool.spec for tool in tools),
    )
    return AssembledContext(inputs, inputs.fit())


@dataclass(frozen=True)
class LoopRun:
    """One run of the loop. `iterations` are wall-clock milliseconds, which other work on the machine affects."""

    iterations: list[float]
    cpu_ms: float
    written_ms: float
    tokens: int

    @property
    def median(self) -> float:
        return statistics.median(self.iterations)

    @property
    def most(self) -> float:
        return statistics.quantiles(self.iterations, n=10)[-1]


@dataclass(frozen=True)
class Stage:
    """The caller of the tools, and the ports besides the tools."""

    caller: ToolCaller = field(default_factory=lambda: ToolCaller("u", "c", "r"))
    ports: Mapping[str, Any] = field(default_factory=dict)


async def measure_loop(history: list[Message], tools: list[EchoTool], stage: Stage) -> LoopRun:
    """Measure the loop with a model and tools that take no time, so that all time is the loop's own."""
    context = assemble(history, tools)
    model = CallingModel(ITERATIONS)
    use = ToolUse(tools, stage.caller, **stage.ports)
    ends, worked_s = [time.perf_counter()], time.process_time()
    async for step in run_react(model, context, tool_use=use):
        if isinstance(step, CallFinished):
            ends.append(time.perf_counter())
    assert model.asked == ITERATIONS + 1, model.asked
    cpu_ms = (time.process_time() - worked_s) * 1_000 / model.asked
    passed = [(after - before) * 1_000 for before, after in itertools.pairwise(ends)]
    return LoopRun(passed[1:], cpu_ms, model.written_s * 1_000 / model.asked, max(model.sizes))


async def report_loop(repeats: int) -> None:
    print(
        f"\nThe loop, an iteration with one tool call ({ITERATIONS} iterations, median of {repeats} runs)\n"
    )
    print("| context | tools | median ms | 9 of 10 | CPU ms | of it writing the request | largest request |")
    print("|---|---|---|---|---|---|---|")
    few, many = [EchoTool(0, 200)], [EchoTool(at, 200) for at in range(100)]
    full = make_history(90_000, 100)
    cases: dict[str, tuple[list[Message], list[EchoTool], Callable[[], Stage]]] = {
        "short": (make_history(500, 100), few, Stage),
        "short, many tools": (make_history(500, 100), many, Stage),
        "full, long messages": (make_history(90_000, 1_000), many, Stage),
        "full, short messages": (full, many, Stage),
        "the same, recorded": (full, many, stage_with_records),
    }
    for name, (history, tools, stage) in cases.items():
        runs = [await measure_loop(history, tools, await in_database(stage)()) for _ in range(repeats)]
        middle = sorted(runs, key=lambda run: run.median)[len(runs) // 2]
        print(
            f"| {name} | {len(tools)} | {middle.median:.2f} | {middle.most:.2f} | {middle.cpu_ms:.2f} |"
            f" {middle.written_ms:.2f} | {middle.tokens:,} tokens |"
        )


def stage_with_records() -> Stage:
    """Return a stage that records calls, results and usage like the service, in a new conversation."""
    from chatapp.accounts.models import User
    from chatapp.conversations.actions.conversations import create_conversation
    from chatapp.operations import clock
    from chatapp.providers.actions import ensure_first_model
    from chatapp.providers.selectors import default_model
    from chatapp.providers.usage import CallTimes, CallUsage
    from chatapp.runs.actions.runs import claim_run
    from chatapp.runs.actions.sending import NewMessage, send_message
    from chatapp.runs.tool_ports import ToolPorts

    ensure_first_model()
    config = default_model()
    user, _ = User.objects.get_or_create(email="bench@example.com")
    conversation = create_conversation(user=user, now=clock.now())
    sent = send_message(
        user=user,
        conversation_id=str(conversation.pk),
        new=NewMessage("What of all this?"),
        model=config,
        now=clock.now(),
    )
    lease = claim_run(run_id=UUID(sent.run_id), holder="bench", model_name="instant", now=clock.now())
    assert lease is not None
    numbers = itertools.count(1)

    class Desk(ToolPorts):
        async def record_calls(self, calls: Sequence[RequestedCall]) -> None:
            times = CallTimes(clock.now(), first_token_ms=0, duration_ms=0, request_n=next(numbers))
            self.unrecorded.append(CallUsage(config, "chat", 1, 1, times=times))
            await super().record_calls(calls)

    caller = ToolCaller(str(user.pk), str(conversation.pk), sent.run_id)
    desk = Desk(lease, caller, [])
    return Stage(caller, {"records": desk, "consents": desk, "inbox": desk, "store": desk})


# --- Plans, through the whole service --------------------------------------------------------------------


def plan_of(count: int) -> str:
    steps = [{"id": f"s{at}", "title": f"Part {at}", "task": f"Find part {at}."} for at in range(count)]
    return json.dumps({"steps": steps})


def steps_s(service: Service, model: ModelProcess, token: str, conversation: str, count: int) -> float:
    """Return the seconds from the first step's start to the last step's end, as a reader of the socket sees them."""
    model.script(chat=[{"text": plan_of(count)}])
    begun = 0.0
    with connect(service.ws_url, additional_headers={"Authorization": f"Bearer {token}"}) as socket:
        page = service.client(token).get(f"/api/v1/conversations/{conversation}").json()
        socket.send(
            json.dumps({"type": "subscribe", "conversation_id": conversation, "after_seq": page["last_seq"]})
        )
        send = {"type": "message.send", "client_id": f"{conversation}{page['last_seq']}", "mode": "plan"}
        socket.send(json.dumps({**send, "conversation_id": conversation, "content": "Find all parts."}))
        passed = 0.0
        while True:
            event = json.loads(socket.recv(timeout=60))
            if event["type"] == "plan":
                states = {step["state"] for step in event["steps"]}
                begun = begun or time.perf_counter()
                if states == {"done"} and not passed:
                    passed = time.perf_counter() - begun
            elif event["type"] == "run.finished":
                assert event["status"] == "complete", event
                assert passed, "the steps were not all done"
                return passed


def report_plans(repeats: int) -> None:
    with model_server("--delay", str(STEP_S), "--text", "Found.") as model:
        with running_service(model.url, people=1) as (service, [(token, conversation)]):
            steps_s(service, model, token, conversation, 1)  # the first answer of a process loads modules
            one = [steps_s(service, model, token, conversation, 1) for _ in range(repeats)]
            six = [steps_s(service, model, token, conversation, STEPS) for _ in range(repeats)]
    ratio = statistics.median(six) / statistics.median(one)
    print(f"\nSteps of a plan through the service, each {STEP_S:g} s at the model, median of {repeats}\n")
    print("| 1 step | 6 independent steps | ratio |")
    print("|---|---|---|")
    print(f"| {statistics.median(one):.3f} s | {statistics.median(six):.3f} s | {ratio:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--skip-plans", action="store_true")
    arguments = parser.parse_args()
    with prepared_database(arguments.database):
        asyncio.run(report_loop(arguments.repeats))
    if not arguments.skip_plans:
        report_plans(arguments.repeats)


if __name__ == "__main__":
    main()
