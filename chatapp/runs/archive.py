"""How each answer of a user came about, for the archive of the account."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from operator import attrgetter

from chatapp.accounts.archive import ArchiveFile
from chatapp.accounts.models import User
from chatapp.runs.models import Run
from chatapp.runs.selectors import traces_of
from chatapp.runs.shapes import run_shape

RUNS_AT_ONCE = 200


def trace_files(user: User) -> Iterator[ArchiveFile]:
    """Yield a JSON file for each conversation: its runs in their order, as the API shows them, with their traces."""
    rows = Run.objects.filter(conversation__user=user).order_by("conversation_id", "created_at", "pk")
    runs = rows.iterator(chunk_size=RUNS_AT_ONCE)
    for conversation_id, some in groupby(runs, key=attrgetter("conversation_id")):
        yield f"traces/{conversation_id}.json", _pieces(some)


def _pieces(runs: Iterable[Run]) -> Iterator[str]:
    left, before = iter(runs), "["
    while page := list(islice(left, RUNS_AT_ONCE)):
        for run, trace in zip(page, traces_of(page), strict=True):
            yield f"{before}\n{json.dumps(run_shape(run) | trace, ensure_ascii=False, default=str)}"
            before = ","
    yield "\n]\n"
