"""The usage of all users for operators: sums as a file, and as the bars of a chart."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse

from chatapp.operations.http.downloads import plain_cell

COLUMNS = ("calls", "input_tokens", "output_tokens", "cached_tokens", "cost")
MOST_BARS = 100


def csv_response(rows: Sequence[Mapping[str, Any]], group_by: str) -> HttpResponse:
    """Return sums of the ledger as a CSV file. Quote cells that a spreadsheet would read as a formula."""
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="usage-by-{group_by}.csv"'
    lines = csv.writer(response)
    lines.writerow((group_by, *COLUMNS))
    for row in rows:
        lines.writerow(
            (plain_cell(row["key"]), *("" if row[name] is None else row[name] for name in COLUMNS))
        )
    return response


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar, as wide as its share of the largest."""

    row: Mapping[str, Any]
    input_percent: str
    output_percent: str


def bars_of(rows: Sequence[Mapping[str, Any]], group_by: str) -> list[Bar]:
    """Return a bar for each row: days in order, everything else with the largest first."""
    if group_by != "day":
        rows = sorted(rows, key=_tokens, reverse=True)
    # Show the newest days, or the largest of other rows.
    shown = rows[-MOST_BARS:] if group_by == "day" else rows[:MOST_BARS]
    most = max(map(_tokens, shown), default=0) or 1
    return [
        Bar(row, _percent(row["input_tokens"], most), _percent(row["output_tokens"], most)) for row in shown
    ]


def _tokens(row: Mapping[str, Any]) -> int:
    return int(row["input_tokens"] + row["output_tokens"])


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f}"
