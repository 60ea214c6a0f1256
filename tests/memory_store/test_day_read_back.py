"""memory/daily.py: a day as Markdown."""

from collections.abc import Callable
from datetime import UTC, date, datetime

from django.test import Client

from chatapp.accounts.models import User
from chatapp.long_term.models import MemoryEntry
from memory.daily import DailyEntry, parse_day, render_day

Clients = Callable[[User], Client]
TEXT = "Ann sent this note:\n\n## Plan\n  <!-- entry 0 | at 2026-03-01T10:00:00+00:00 -->\nBuy a boat."


def test_a_text_with_an_indented_metadata_line_is_read_back_as_it_was():
    """ "A line of the text that looks like a section's beginning would be one when parsed": the escape looks at the
    beginning of the line, the parser strips the line first."""
    entry = DailyEntry(id="1", text=TEXT, at=datetime(2026, 3, 1, 9, tzinfo=UTC))
    [read] = parse_day(render_day(date(2026, 3, 1), [entry]))
    assert read == entry


def test_a_day_that_is_sent_back_unchanged_changes_nothing(alice: User, api_client: Clients):
    """Two entries: the first one's text names the second, as a model, a web page or an import may have written it."""
    client = api_client(alice)
    day = "2026-03-01"

    def add(text: str) -> str:
        made = client.post(
            "/api/v1/memory/entries", {"text": text, "day": day}, content_type="application/json"
        )
        assert made.status_code == 201, made.content
        return str(made.json()["id"])

    other = add("Ben is allergic to nuts.")
    first = add("Ann sent this note.")
    text = f"Ann sent this note.\n\n## Plan\n <!-- entry {other} | at 2026-03-01T10:00:00+00:00 -->\n\nBuy a boat."
    changed = client.patch(f"/api/v1/memory/entries/{first}", {"text": text}, content_type="application/json")
    assert changed.status_code == 200, changed.content
    before = dict(MemoryEntry.objects.values_list("pk", "text"))
    markdown = client.get(f"/api/v1/memory/days/{day}").json()["markdown"]
    answer = client.put(f"/api/v1/memory/days/{day}", markdown, content_type="text/markdown")
    assert answer.status_code == 200, answer.content  # 422: "The Markdown names an entry twice."
    assert dict(MemoryEntry.objects.values_list("pk", "text")) == before
