"""Days of many entries take no more statements than days of a few, and are forgotten in pieces."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from chatapp.accounts.models import User
from chatapp.forgetting.actions.forget import ENTRIES
from chatapp.forgetting.models import ForgetReceipt, Removal, Tombstone
from chatapp.forgetting.services import forget_entry, remove_rest
from chatapp.long_term import changes
from chatapp.long_term.actions import days
from chatapp.long_term.models import MemoryEntry
from chatapp.operations import clock
from chatapp.recall.models import SearchDocument, StoredClaim
from memory.bounds import MAX_DAY_CHANGES

Clients = Callable[[User], Client]
DAYS = "/api/v1/memory/days"
FEW, MANY = 4, 40
"""A day of either size is stored in one statement and forgotten in one transaction."""

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def client(alice: User, api_client: Clients) -> Client:
    return api_client(alice)


def say(count: int, word: str) -> str:
    return "\n\n".join(
        f"## {9 + at // 60:02d}:{at % 60:02d}\n\nPebble {word}-{at} lies in drawer {at}."
        for at in range(count)
    )


def put(client: Client, day: str, markdown: str) -> dict[str, Any]:
    answer = client.put(f"{DAYS}/{day}", {"markdown": markdown}, content_type="application/json")
    assert answer.status_code == 200, answer.content
    return dict(answer.json())


def texts(shape: dict[str, Any]) -> list[str]:
    return [entry["text"] for entry in shape["entries"]]


def statements_of_a_life(client: Client, day: str, count: int) -> dict[str, int]:
    """Return how many statements each step takes, from writing a day to emptying it."""
    url, taken = f"{DAYS}/{day}", dict[str, int]()

    def counted(step: str, work: Callable[[], Any]) -> Any:
        with CaptureQueriesContext(connection) as asked:
            done = work()
        taken[step] = len(asked)
        return done

    written = counted("write", lambda: put(client, day, say(count, "Red")))
    assert texts(written) == [f"Pebble Red-{at} lies in drawer {at}." for at in range(count)]
    assert counted("read", lambda: client.get(url).json()) == written
    edited = written["markdown"].replace("Red", "Blue")
    assert len(texts(counted("edit", lambda: put(client, day, edited)))) == count
    replaced = counted("replace", lambda: put(client, day, say(count, "Green")))
    assert texts(replaced) == [f"Pebble Green-{at} lies in drawer {at}." for at in range(count)]
    counted("empty", lambda: client.delete(url))
    assert not MemoryEntry.objects.exists()
    return taken


@pytest.mark.usefixtures("no_files")
def test_new_entries_are_indexed_without_a_lookup_in_the_index(client: Client) -> None:
    with CaptureQueriesContext(connection) as asked:
        put(client, "2026-11-20", say(FEW, "Red"))
    of_index = [each["sql"] for each in asked if "chatapp_searchdocument" in each["sql"]]
    assert len(of_index) == 1
    assert "SELECT" not in of_index[0]


@pytest.mark.usefixtures("no_files")
def test_the_number_of_statements_does_not_grow_with_the_entries_of_a_day(client: Client) -> None:
    statements_of_a_life(client, "2026-11-19", FEW)  # fills the caches of the process
    few = statements_of_a_life(client, "2026-11-20", FEW)
    assert statements_of_a_life(client, "2026-11-21", MANY) == few


def only_first(markdown: str) -> str:
    """Return the text of a day with only its first section."""
    head, first, *_ = markdown.split("\n## ")
    return f"{head}\n## {first}"


@pytest.mark.usefixtures("no_files")
def test_a_day_that_loses_many_entries_keeps_the_remaining_one_and_forgets_the_others(client: Client) -> None:
    day = "2026-11-20"
    written = put(client, day, say(ENTRIES + 2, "Red"))
    left = put(client, day, only_first(written["markdown"]).replace("Red", "Blue"))
    assert texts(left) == ["Pebble Blue-0 lies in drawer 0."]
    assert client.get(f"{DAYS}/{day}").json() == left
    receipt = ForgetReceipt.objects.get()
    assert (receipt.what, receipt.removed["entries"]) == ("entry", ENTRIES + 1)
    assert Tombstone.objects.filter(receipt=receipt).count() == ENTRIES + 1
    assert SearchDocument.objects.count() == MemoryEntry.objects.count() == 1
    put(client, day, "")
    assert client.get(f"{DAYS}/{day}").status_code == 404


@pytest.mark.usefixtures("no_files")
def test_a_line_that_was_moved_stays_while_many_other_entries_are_forgotten_in_pieces(client: Client) -> None:
    day = "2026-11-20"
    both = "Pebble Red-a lies in drawer 1.\nPebble Red-b lies in drawer 2."
    put(client, day, say(ENTRIES + 1, "Grey") + f"\n\n## 23:59\n\n{both}")
    left = put(client, day, "## 10:00\n\nPebble Red-b lies in drawer 2.")
    assert texts(left) == ["Pebble Red-b lies in drawer 2."]
    told = [receipt.removed.get("entries", 0) for receipt in ForgetReceipt.objects.order_by("pk")]
    assert sorted(told) == [0, ENTRIES + 1], "a receipt of its own, as what goes in pieces has"
    assert MemoryEntry.objects.count() == SearchDocument.objects.count() == 1
    assert Tombstone.objects.count() == ENTRIES + 2


@pytest.mark.usefixtures("no_files")
def test_a_day_is_written_though_its_missing_entry_is_forgotten_meanwhile(
    alice: User, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    day = "2026-11-20"
    put(client, day, say(1, "Red"))
    real = days.make_day_changes

    def make_day_changes(**given: Any) -> Any:
        for entry_id in MemoryEntry.objects.values_list("pk", flat=True):
            forget_entry(alice, entry_id, now=clock.now())
        return real(**given)

    monkeypatch.setattr(days, "make_day_changes", make_day_changes)
    assert texts(put(client, day, "## 10:00\n\nPebble Blue lies in drawer 7.")) == [
        "Pebble Blue lies in drawer 7."
    ]


@pytest.mark.sqlite
@pytest.mark.usefixtures("no_files")
def test_writing_a_day_can_change_only_a_limited_number_of_sections(client: Client) -> None:
    day, word = "2026-11-20", "Red"
    lines = [f"Pebble {word}-{at} lies in drawer {at}." for at in range(MAX_DAY_CHANGES)]
    sections = "\n\n".join(f"## 09:00\n\n{line}" for line in lines)
    refused = client.put(
        f"{DAYS}/{day}",
        {"markdown": f"{sections}\n\n## 09:01\n\nOne more."},
        content_type="application/json",
    )
    message = f"This changes {MAX_DAY_CHANGES + 1} sections of a day; at most {MAX_DAY_CHANGES} can be"
    assert refused.status_code == 422
    assert refused.json()["error"]["message"] == f"{message} changed at once."
    assert not MemoryEntry.objects.exists()
    written = put(client, day, sections)
    more = put(client, day, f"{written['markdown']}\n## 09:01\n\nOne more.")
    assert len(more["entries"]) == MAX_DAY_CHANGES + 1, "what stays as it is does not count"
    merged = {"markdown": "\n".join([*lines, "One more."])}
    answer = client.put(f"{DAYS}/{day}", merged, content_type="application/json")
    assert answer.status_code == 422, "each entry whose lines go elsewhere is a change"


@pytest.mark.usefixtures("no_files")
def test_the_sweep_forgets_the_entries_that_a_killed_process_left(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    day = "2026-11-20"
    written = put(client, day, say(ENTRIES + 2, "Red"))
    with monkeypatch.context() as patch:
        patch.setattr(changes, "finish_many", lambda _: None)
        put(client, day, only_first(written["markdown"]).replace("Red", "Blue"))
    late = clock.now() + timedelta(hours=1)
    remove_rest(Removal.objects.get().pk, now=late)
    assert texts(client.get(f"{DAYS}/{day}").json()) == ["Pebble Blue-0 lies in drawer 0."]


@pytest.mark.sqlite
@pytest.mark.usefixtures("no_files")
def test_an_edited_day_has_the_same_claims_as_a_day_written_that_way(
    client: Client, bob: User, api_client: Clients
) -> None:
    """Claims that still hold stay, and others are overwritten. Neither leaves a trace of the earlier text."""
    day = "2026-11-20"
    said = [
        ("I live in Rome. My cat is called Tom.", "My cat is called Tom. I moved to Oslo."),
        ("I moved to Paris. I work at Acme.", "I moved to Paris."),
        ("My cat is called Kit.", "My cat is called Kit. I work at Acme."),
        ("It rains.", "I work at Initech. I moved to Bonn."),
    ]
    before, after = (
        "\n\n".join(f"## 09:{at:02d}\n\n{pair[which]}" for at, pair in enumerate(said)) for which in (0, 1)
    )
    markdown = put(client, day, before)["markdown"]
    for old, new in said:
        markdown = markdown.replace(old, new, 1)
    edited, written = put(client, day, markdown), put(api_client(bob), day, after)
    assert texts(edited) == texts(written) == [new for _, new in said]
    assert [one["superseded"] for one in edited["entries"]] == [
        one["superseded"] for one in written["entries"]
    ]
    mine, others = (
        set(StoredClaim.objects.filter(user__email=email).values_list(*CLAIMED))
        for email in ("alice@example.com", "bob@example.com")
    )
    assert len(mine) > len(said)
    assert mine == others


CLAIMED = (
    "start",
    "end",
    "key",
    "value",
    "replaces",
    "said_at",
    "superseded_by__value",
    "superseded_by__start",
)


@pytest.mark.usefixtures("no_files")
def test_a_claim_superseded_by_a_deleted_entry_is_superseded_by_the_next_one(client: Client) -> None:
    day = "2026-11-20"
    homes = ("I live in Rome.", "I moved to Oslo.", "I moved to Bonn.")
    written = put(client, day, "\n\n".join(f"## 09:{at:02d}\n\n{said}" for at, said in enumerate(homes)))
    ends = [[over["superseded_by"] for over in entry["superseded"]] for entry in written["entries"]]
    assert ends == [["I moved to Oslo."], ["I moved to Bonn."], []]
    assert client.delete(f"/api/v1/memory/entries/{written['entries'][1]['id']}").status_code == 204
    left = client.get(f"{DAYS}/{day}").json()
    assert [[over["superseded_by"] for over in entry["superseded"]] for entry in left["entries"]] == [
        ["I moved to Bonn."],
        [],
    ]
