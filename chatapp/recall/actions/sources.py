"""Note what a run read elsewhere: forgetting follows these rows to the copies that the run made."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from uuid import UUID

from django.db import transaction

from chatapp.recall.turn_recall import RecalledTurn
from chatapp.runs.models import Run, RunSource


def note_read(run_id: UUID | str, source_ids: Collection[UUID]) -> None:
    """Note what a tool read for the run. To be called before the run gets the result. Does nothing for a run that was
    deleted."""
    if run_id:
        run = UUID(str(run_id))
        _note(run, [RunSource(run_id=run, source_id=one) for one in sorted(set(source_ids))])


def recalled_rows(run_id: UUID, turns: Sequence[RecalledTurn], *, starts_anew: bool) -> Iterator[RunSource]:
    """Yield the rows that note which turns were recalled for a question; a later request shows the same turns from
    these."""
    for place, turn in enumerate(turns):
        at = {"run_id": run_id, "place": place, "starts_anew": starts_anew}
        yield RunSource(source_id=turn.source_id, start=turn.start, end=turn.end, **at)
        for newer in turn.newer:
            yield RunSource(
                source_id=newer.source_id, start=newer.start, end=newer.end, until=newer.until, **at
            )


def _note(run_id: UUID, rows: Sequence[RunSource]) -> None:
    if not rows:
        return
    with transaction.atomic():
        if Run.objects.filter(pk=run_id).exists():
            # A tool may read the same source again.
            RunSource.objects.bulk_create(rows, ignore_conflicts=True)
