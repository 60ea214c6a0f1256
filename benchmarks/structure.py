"""The effort of reading and changing the code: files, lines, levels, and the path of an operation through the code.

python -m benchmarks.structure [--write]

Prints the tables of docs/architecture.md. `--write` updates the page, `--show "one recall"` prints a walk's functions.

A walk is the list of functions that a reader meets when following one operation. The operation runs once in this
process (SQLite, a scripted model) under `sys.setprofile`, which records each of our functions at its first call.
"files" counts the files of these functions, "returns" how often the next function is in a file that was left before.
Loops and waiting add nothing. A walk begins with the function in WALKS, after the checks of tokens and limits.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import contextvars
import inspect
import re
import shutil
import sys
import threading
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("chatapp", "agents", "memory")
# The function that a walk begins with, and its file if several functions have this name. They are not imported, so that
# the same command can measure an older tree.
WALKS = {
    "one message stored": ("send_message", ""),
    "one message answered": ("_answer_claimed", "runner.py"),
    "one compaction": ("compact", "compactor.py"),
    "one recall": ("recall_turns", ""),
    "one message forgotten": ("forget_message", ""),
}
CHANGES = ("a field on a conversation", "a strategy", "an event", "a feature folder")
# Measured with this file at commit ad7ea56, which had a folder for each layer. The changes were counted manually.
BEFORE = {
    "Python files of the product": "405",
    "lines of product Python, without migrations": "43,661",
    "entries at the root of `chatapp`": "74",
    "levels of the import contract": "23",
    "one message stored": "15 / 7",
    "one message answered": "102 / 190",
    "one compaction": "81 / 114",
    "one recall": "29 / 52",
    "one message forgotten": "51 / 61",
    "a field on a conversation": "7",
    "a strategy": "10",
    "an event": "5",
    "a feature folder": "16 in 7 folders",
}
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- structure: python -m benchmarks.structure --write -->\n", "<!-- /structure -->"

# A run has its own context, in which no walk is set, so the default is the walk of answering.
current_walk: contextvars.ContextVar[str] = contextvars.ContextVar(
    "current_walk", default="one message answered"
)


def product_files() -> list[Path]:
    """Return our Python files without migrations."""
    found = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return sorted(path for path in found if "migrations" not in path.parts)


def count_levels() -> int:
    """Return the number of levels in chatapp's longest import contract."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    return max(len(each.get("layers", ())) for each in contracts if "chatapp" in each.get("containers", ()))


def recipe_steps(title: str) -> dict[str, str]:
    """Return the numbered steps of a recipe in docs/recipes.md, in order, by the file that each begins with."""
    page = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
    recipe = re.split(rf"^## {title}$", page, flags=re.MULTILINE | re.IGNORECASE)[1].split("\n## ")[0]
    return {match[1]: match[0] for match in re.finditer(r"^\d+\. `([^`]+)`.*$", recipe, re.MULTILINE)}


@dataclass
class Recorder:
    """Records each of our functions at its first call, separately for each walk."""

    walks: dict[str, list[CodeType]] = field(default_factory=lambda: {name: [] for name in WALKS})
    seen: dict[str, set[CodeType]] = field(default_factory=lambda: {name: set() for name in WALKS})
    begun: dict[str, FrameType] = field(default_factory=dict)
    """The frame that each active walk began with."""
    is_ours: dict[CodeType, bool] = field(default_factory=dict)

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        walk = current_walk.get()
        if walk not in WALKS or not self._is_ours(frame.f_code):
            return
        if event == "call":
            self._take(frame, walk)
        is_coroutine = frame.f_code.co_flags & inspect.CO_COROUTINE  # A coroutine "returns" at each await.
        if event == "return" and self.begun.get(walk) is frame and not is_coroutine:
            del self.begun[walk]

    def _take(self, frame: FrameType, walk: str) -> None:
        name, file = WALKS[walk]
        code = frame.f_code
        if not self.walks[walk] and code.co_name == name and code.co_filename.endswith(file):
            self.begun[walk] = frame
        if walk in self.begun and code not in self.seen[walk]:
            self.seen[walk].add(code)
            self.walks[walk].append(code)

    def _is_ours(self, code: CodeType) -> bool:
        if code not in self.is_ours:
            parts = Path(code.co_filename).parts[len(ROOT.parts) :]
            inside = code.co_filename.startswith(f"{ROOT}/") and parts[0] in PACKAGES
            self.is_ours[code] = inside and not code.co_name.startswith("<")
        return self.is_ours[code]

    def files(self, walk: str) -> list[str]:
        """Return the files of the functions in the order of their first calls. Merge equal neighbours."""
        found: list[str] = []
        for code in self.walks[walk]:
            file = str(Path(code.co_filename).relative_to(ROOT))
            if not found or found[-1] != file:
                found.append(file)
        return found


@contextlib.contextmanager
def walking(name: str) -> Iterator[None]:
    token = current_walk.set(name)
    try:
        yield
    finally:
        current_walk.reset(token)


def carry_context() -> None:
    """Let database threads see the walk of their caller, because the event loop does not pass the context on."""
    original = asyncio.BaseEventLoop.run_in_executor

    def run_in_executor(
        loop: asyncio.BaseEventLoop, executor: Any, call: Callable[..., Any], *args: Any
    ) -> Any:
        return original(loop, executor, contextvars.copy_context().run, call, *args)

    setattr(asyncio.BaseEventLoop, "run_in_executor", run_in_executor)  # noqa: B010


async def walk_all(user: Any, recorder: Recorder) -> None:
    from tests.context_engine.chatting import chatting

    with walking("none"):  # Excludes background work of the service and the requests of this function.
        async with chatting(user, count=60, padding=12) as chat:
            question = "Which code has note 3?"
            # Run once without recording: what a process does only for its first request is not part of a walk.
            await chat.ask("My piano is a Bechstein of 1911.")
            await chat.see(question)
            sys.setprofile(recorder)
            with walking("one message stored"):
                sent = await chat.program.post(
                    f"conversations/{chat.conversation}/messages",
                    {"prefer": "respond-async"},
                    content="The tuner is called Aurelio Vantongeren.",
                )
            assert sent.status_code == 202, sent.content
            await until_complete(chat.program, sent.json()["run_id"])
            with walking("one compaction"):
                await chat.compact()
            with walking("one recall"):
                assert (await chat.see(question))["recalled"]
            with walking("one message forgotten"):
                forgotten = await chat.program.post("memory/forget", message_id=sent.json()["message_id"])
            assert forgotten.status_code == 200, forgotten.content
            sys.setprofile(None)


async def until_complete(program: Any, run_id: str) -> None:
    async with asyncio.timeout(60):
        while (await program.get(f"runs/{run_id}")).json()["status"] != "complete":  # noqa: ASYNC110
            await asyncio.sleep(0.1)


def measure_walks() -> Recorder:
    from benchmarks.context_load import prepare
    from tests.environment import clean_environment

    recorder = Recorder()
    clean_environment()
    carry_context()
    folder = prepare()
    try:
        from django.apps import apps

        user = apps.get_model("chatapp", "User").objects.create_user("bench@example.com")
        threading.setprofile(recorder)
        asyncio.run(walk_all(user, recorder))
    finally:
        threading.setprofile(None)
        shutil.rmtree(folder, ignore_errors=True)
    return recorder


def count_sizes() -> dict[str, str]:
    """Return the sizes of the tree, by description."""
    files = product_files()
    entries = [path for path in (ROOT / "chatapp").iterdir() if path.name != "__pycache__"]
    return {
        "Python files of the product": f"{len(files):,}",
        "lines of product Python, without migrations": f"{count_lines(files):,}",
        "entries at the root of `chatapp`": str(len(entries)),
        "levels of the import contract": str(count_levels()),
    }


def count_lines(files: list[Path]) -> int:
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)


def count_walks() -> dict[str, str]:
    """Return "files / returns" of each walk."""
    recorder = measure_walks()
    counts = {}
    for name in WALKS:
        visited = recorder.files(name)
        assert visited, f"{WALKS[name][0]} was not called: see WALKS"
        counts[name] = f"{len(set(visited))} / {len(visited) - len(set(visited))}"
    return counts


def write_table(head: str, now: dict[str, str]) -> str:
    """Return a Markdown table of these figures beside those of BEFORE."""
    rows = [f"| {name} | {BEFORE[name]} | {value} |" for name, value in now.items()]
    return "\n".join([f"| {head} | before | now |", "|---|---|---|", *rows]) + "\n"


def show_walk(name: str) -> None:
    """Print the functions of a walk in the order of their first calls, a line for each visit to a file."""
    file = ""
    for code in measure_walks().walks[name]:
        if code.co_filename != file:
            file = code.co_filename
            print(f"\n{Path(file).relative_to(ROOT)}:", end="")
        print(f" {code.co_name}", end="")
    print()


def main(writes: bool) -> None:
    recipes = (ROOT / "docs" / "recipes.md").exists()  # an older tree has none
    tables = [
        write_table("size", count_sizes()),
        write_table("walk: files / returns", count_walks()),
        write_table("files that a change touches", {name: str(len(recipe_steps(name))) for name in CHANGES})
        if recipes
        else "",
    ]
    print("\n".join(tables))
    if writes:
        before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
        PAGE.write_text(before + BEGIN + "\n".join(tables) + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--show", choices=WALKS)
    chosen = parser.parse_args()
    if chosen.show:
        show_walk(chosen.show)
    else:
        main(chosen.write)
