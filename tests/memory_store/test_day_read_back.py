"""A day as Markdown is read back unchanged."""

from collections.abc import Callable
from datetime import UTC, date, datetime

from django.test import Client

from chatapp.accounts.models import User
from chatapp.long_term.models import MemoryEntry
from memory.long_term.daily import DailyEntry, parse_day, render_day

Clients = Callable[[User], Client]
TEXT = "Ann sent this note:\n\n## Plan\n  <!-- entry 0 | at 2026-03-01T10:00:00+00:00 -->\nBuy a boat."


def test_a_text_with_an_indented_metadata_line_is_read_back_unchanged():
    """The parser strips each line first, so indented lines that look like a section's start must be escaped, too."""
    entry = DailyEntry(id="1", text=TEXT, at=datetime(2026, 3, 1, 9, tzinfo=UTC))
    [read] = parse_day(render_day(date(2026, 3, 1), [entry]))
    assert read == entry


def test_a_day_that_is_sent_back_unchanged_changes_nothing(alice: User, api_client: Clients):
    """The text of the first entry names the second, as a text from a model, a web page or an import may do."""
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
    assert answer.status_code == 200, answer.content  # not 422 "The Markdown refers to an entry twice."
    assert dict(MemoryEntry.objects.values_list("pk", "text")) == before
