"""Records which texts a run read, so that forgetting finds the copies that the run made of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from uuid import UUID

from django.db import transaction

from chatapp.recall.turn_recall import RecalledTurn
from chatapp.runs.models import Run, RunSource


def note_read(run_id: UUID | str, source_ids: Collection[UUID]) -> None:
    """Record what a tool read for the run, before the run gets the result. Do nothing if the run was deleted."""
    if not run_id or not source_ids:
        return
    rows = [RunSource(run_id=UUID(str(run_id)), source_id=one) for one in sorted(set(source_ids))]
    with transaction.atomic():
        if Run.objects.filter(pk=run_id).exists():
            # A tool may read the same source twice.
            RunSource.objects.bulk_create(rows, ignore_conflicts=True)


def recalled_rows(run_id: UUID, turns: Sequence[RecalledTurn], *, starts_anew: bool) -> Iterator[RunSource]:
    """Yield rows that record which turns were recalled for a question, so that later requests show the same turns."""
    for place, turn in enumerate(turns):
        at = {"run_id": run_id, "place": place, "starts_anew": starts_anew}
        yield RunSource(source_id=turn.source_id, start=turn.start, end=turn.end, **at)
        for newer in turn.newer:
            yield RunSource(
                source_id=newer.source_id, start=newer.start, end=newer.end, until=newer.until, **at
            )
