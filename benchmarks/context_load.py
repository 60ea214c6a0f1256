"""Time to load and assemble a context, by number and size of stored messages, with and without a checkpoint.

python -m benchmarks.context_load [--sizes 100 10000 100000] [--runs 40]
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any


def prepare() -> str:
    folder = tempfile.mkdtemp(prefix="palimpsest-bench-")
    os.environ.update(DATA_DIR=folder, DJANGO_SETTINGS_MODULE="chatapp.settings", LOG_LEVEL="ERROR")
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)
    from chatapp.operations.workers.collector import exempt_loaded_code

    exempt_loaded_code()  # as the server and the worker do
    return folder


def measure(sizes: list[int], runs: int) -> None:
    from chatapp.accounts.models import User
    from chatapp.compaction.models import Compaction
    from chatapp.context.policies import rules_for
    from chatapp.conversations.access import accessible_conversation
    from chatapp.conversations.actions.imports import ImportedMessage, import_conversation
    from chatapp.operations import clock
    from chatapp.providers.actions import ensure_first_model
    from chatapp.providers.selectors import default_model
    from tests.acceptance.conversations import long_history

    ensure_first_model()
    user = User.objects.create_user("bench@example.com")

    def loader(conversation_id: str) -> Callable[[], Any]:
        from chatapp.context.assembly import load_context
        from memory.tokens import text_message

        question = text_message("user", "What was the code of note 17?", kind="question")

        def load() -> Any:
            conversation = accessible_conversation(user, conversation_id)
            assert conversation.branch is not None
            loaded = load_context(
                conversation=conversation,
                branch=conversation.branch,
                before_position=conversation.next_position,
                question=question,
                config=conversation.model or default_model(),
                now=clock.now(),
            )
            return loaded.assemble()

        return load

    budget_tokens = rules_for(default_model()).budget.input_tokens

    def checkpoint(conversation: Any, last_position: int) -> None:
        Compaction.objects.create(
            conversation=conversation,
            branch=conversation.branch,
            first_position=0,
            last_position=last_position,
            message_count=last_position + 1,
            kept_count=0,
            status="done",
            strategy="checkpoint",
            summary="What was said before. " * 100,
            summary_tokens=500,
            # The service stores the model's budget, too. Otherwise a refit would look for an earlier checkpoint.
            budget_tokens=budget_tokens,
            span_tokens=last_position * 60,
            created_at=clock.now(),
            finished_at=clock.now(),
        )

    for padding, kind in ((60, "105 tokens a message"), (12, "36 tokens a message")):
        conversations = []
        for size in sizes:
            notes = (
                ImportedMessage(each["role"], each["content"]) for each in long_history(size, padding=padding)
            )
            conversations.append(import_conversation(user=user, messages=list(notes), now=clock.now()))
        loaders = [loader(str(conversation.pk)) for conversation in conversations]
        print(f"Load and assembly, never compacted, {kind}")
        report(sizes, loaders, runs)
        for size, conversation in zip(sizes, conversations, strict=True):
            checkpoint(conversation, max(0, size - 80))
        print(f"Load and assembly, with a checkpoint before the newest messages, {kind}")
        report(sizes, loaders, runs)


def report(sizes: list[int], loaders: list[Callable[[], Any]], runs: int) -> None:
    """Measure the sizes in turn, so that other work on the machine slows all alike. Print the CPU time, which does not
    depend on other work."""
    walls: list[list[float]] = [[] for _ in loaders]
    cpus: list[list[float]] = [[] for _ in loaders]
    for _ in range(runs + 3):
        for load, wall, cpu in zip(loaders, walls, cpus, strict=True):
            started, worked = time.perf_counter(), time.thread_time()
            load()
            cpu.append((time.thread_time() - worked) * 1000)
            wall.append((time.perf_counter() - started) * 1000)
    medians = [statistics.median(taken[3:]) for taken in cpus]
    for size, load, wall, median_ms in zip(sizes, loaders, walls, medians, strict=True):
        kept = len(load().view.history)
        print(
            f"  {size:9,d} messages {median_ms:8.2f} ms of CPU, {min(wall[3:]):8.2f} ms by the clock at best"
            f"   1 : {median_ms / medians[0]:4.2f}   ({kept} in view)",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 10_000, 100_000])
    parser.add_argument("--runs", type=int, default=40)
    arguments = parser.parse_args()
    folder = prepare()
    try:
        measure(arguments.sizes, arguments.runs)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
