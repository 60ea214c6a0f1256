"""The cost of one turn: statements and CPU time of each call in a database thread, all in one process.

python -m benchmarks.turn [--turns 30] [--database postgres] [--statements] [--profile]
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import os
import pstats
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from benchmarks.stage import prepared_database
from tests.servers.behaviour import Behaviour
from tests.servers.openai_server import ModelServer
from tests.servers.waiting import wait_for

CONTROL = ("BEGIN", "SAVEPOINT", "RELEASE")
WARM_UP = 5


@dataclass
class Meter:
    """Counts calls, CPU seconds and statements of the database threads while `is_on`."""

    is_on: bool = False
    profiles: list[cProfile.Profile] | None = None
    seconds: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    statements: list[tuple[str, str]] = field(default_factory=list)
    thread: threading.local = field(default_factory=threading.local)

    def watch(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Run a call in a database thread and measure it."""
        from django.db import connection, connections

        database = connections[connection.alias]
        if self.note not in database.execute_wrappers:
            database.execute_wrappers.append(self.note)
        named = getattr(call, "func", call)
        name = self.thread.name = getattr(named, "__qualname__", repr(named))
        profile = cProfile.Profile(time.thread_time) if self.is_on and self.profiles is not None else None
        began = time.thread_time()
        try:
            return profile.runcall(call, *args, **kwargs) if profile else call(*args, **kwargs)
        finally:
            if self.is_on:
                self.seconds[name] += time.thread_time() - began
                self.calls[name] += 1
            if profile and self.profiles is not None:
                self.profiles.append(profile)

    def note(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if self.is_on:
            self.statements.append((self.thread.name, sql.strip()))
        return execute(sql, params, many, context)


async def take_turns(meter: Meter, turns: int) -> float:
    """Run the turns. Return the CPU seconds of the whole process, including the model server."""
    from chatapp.accounts.models import User
    from chatapp.conversations.actions.conversations import create_conversation
    from chatapp.operations import clock
    from chatapp.operations.database.threads import in_database, in_writer
    from chatapp.realtime.hub import hub
    from chatapp.runs import runner
    from chatapp.runs.actions.sending import NewMessage, send_message

    await hub.start()
    user = await in_database(User.objects.create_user)("bench@example.com")
    began = 0.0
    for number in range(WARM_UP + turns):
        if number == WARM_UP:
            meter.is_on, began = True, time.process_time()
        conversation = await in_database(create_conversation)(user=user, now=clock.now())
        await in_writer(send_message)(
            user=user,
            conversation_id=str(conversation.pk),
            new=NewMessage(f"load-{number}", client_id=str(number)),
            model=None,
            now=clock.now(),
            claim=runner.claim_here(),
        )
        await asyncio.to_thread(wait_for, lambda: not runner.active_count(), what="the turn is over")
    meter.is_on = False
    return time.process_time() - began


def print_costs(meter: Meter, turns: int, process_s: float, asked: argparse.Namespace) -> None:
    made = [(name, sql) for name, sql in meter.statements if name != "create_conversation"]
    plain = [name for name, sql in made if not sql.startswith(CONTROL)]
    begun = [name for name, sql in made if sql.startswith("BEGIN")]
    print(f"One turn, {asked.database}, mean of {turns}")
    print(
        f"  {len(plain) / turns:.1f} statements, {len(begun) / turns:.1f} transactions begun by a statement"
    )
    print(f"  {process_s / turns * 1000:.1f} ms of CPU, the model server in the same process included")
    for name, seconds in meter.seconds.most_common():
        if name != "create_conversation":
            print(
                f"  {name:30s} {seconds / turns * 1000:7.2f} ms  {plain.count(name) / turns:5.1f} statements"
            )
    if asked.statements:
        for name, sql in made[-len(made) // turns :]:
            print(f"  {name:22s} {' '.join(sql.split())[:200]}")
    if meter.profiles:
        stats = pstats.Stats(meter.profiles[0])
        for profile in meter.profiles[1:]:
            stats.add(profile)
        stats.sort_stats("cumtime").print_stats(60)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=30)
    parser.add_argument("--database", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--statements", action="store_true", help="print those of the last turn")
    parser.add_argument(
        "--profile", action="store_true", help="print where the time goes; it makes all slower"
    )
    asked = parser.parse_args()
    with ModelServer(default=Behaviour(tokens=100)) as model:
        environment = {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "none", "LLM_MODEL": "test-model"}
        with prepared_database(asked.database, environment):
            from chatapp.operations.database import threads as database
            from chatapp.providers.actions import ensure_first_model

            ensure_first_model()
            meter = Meter(profiles=[] if asked.profile else None)
            run = database._with_connection
            database._with_connection = lambda call, *args, **kwargs: run(meter.watch, call, *args, **kwargs)
            process_s = asyncio.run(take_turns(meter, asked.turns))
            print_costs(meter, asked.turns, process_s, asked)
    os._exit(0)


if __name__ == "__main__":
    main()
