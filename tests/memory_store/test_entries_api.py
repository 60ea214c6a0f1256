"""Entries over the API: added by users, changed with a history, deleted for good, and edited as whole days."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client

from chatapp.accounts.models import User
from chatapp.compaction.models import Compaction
from chatapp.conversations.models import Conversation
from chatapp.long_term import files as memory_files
from chatapp.long_term.actions.entries import add_entry, note_sources, record_entry
from chatapp.long_term.models import EntryRevision, MemoryEntry
from chatapp.long_term.selectors.tombstones import tombstones_of
from chatapp.recall.user_search import search_memory
from memory.long_term.daily import parse_day
from tests.memory_store.rows import NOW, finished_compaction, new_conversation, say

Clients = Callable[[User], Client]
ENTRIES = "/api/v1/memory/entries"


@pytest.fixture
def client(alice: User, api_client: Clients) -> Client:
    return api_client(alice)


def add(client: Client, text: str, **fields: str) -> dict[str, Any]:
    answer = client.post(ENTRIES, {"text": text, **fields}, content_type="application/json")
    assert answer.status_code == 201, answer.content
    return dict(answer.json())


def change(client: Client, entry: dict[str, Any], text: str, **fields: int) -> Any:
    body = {"text": text, **fields}
    return client.patch(f"{ENTRIES}/{entry['id']}", body, content_type="application/json")


def history(client: Client, entry: dict[str, Any]) -> list[tuple[int, str, str]]:
    items = client.get(f"{ENTRIES}/{entry['id']}/history").json()["items"]
    return [(item["revision"], item["text"], item["author"]) for item in items]


def found(user: User, query: str) -> list[str]:
    return [item.text for item in search_memory(user_id=user.pk, query=query, limit=10, now=NOW, zone=UTC)]


def file_of(user: User, entry: dict[str, Any]) -> list[str]:
    path = memory_files.day_path(user.pk, datetime.fromisoformat(entry["day"]).date())
    return [section.text for section in parse_day(path.read_text())] if path.exists() else []


def extracted(conversation: Conversation, text: str, number: int = 0) -> tuple[Compaction, MemoryEntry]:
    row = finished_compaction(conversation, number)
    return row, extract(row, text)


def extract(row: Compaction, text: str) -> MemoryEntry:
    said = list(row.conversation.messages.order_by("position")) or say(row.conversation, "Hello.", "Hello!")
    first, last = said[0].pk, said[-1].pk
    entry = record_entry(compaction=row, text=text, first_message_id=first, last_message_id=last, at=NOW)
    assert entry is not None
    return entry


def test_an_entry_added_by_its_user_is_searchable_and_in_its_file_at_once(alice: User, client: Client):
    entry = add(client, " The spare key lies under the plum tree. ")
    assert entry["text"] == "The spare key lies under the plum tree."
    assert entry["author"] == "user"
    assert entry["conversation_id"] is None
    assert found(alice, "where is the spare key?") == [entry["text"]]
    assert file_of(alice, entry) == [entry["text"]]


@pytest.mark.mechanism("memory.day")
def test_a_new_entry_belongs_to_the_current_day_in_the_users_time_zone(alice: User, client: Client):
    client.patch("/api/v1/me", {"time_zone": "Pacific/Kiritimati"}, content_type="application/json")
    ahead = add(client, "Far ahead.")
    client.patch("/api/v1/me", {"time_zone": "Pacific/Pago_Pago"}, content_type="application/json")
    behind = add(client, "Far behind.")
    assert ahead["day"] > behind["day"], "25 hours lie between the two"


def test_an_entry_added_to_another_day_is_dated_on_that_day(client: Client):
    entry = add(client, "The wedding.", day="2020-05-16")
    assert entry["day"] == "2020-05-16"
    assert entry["created_at"].startswith("2020-05-16")


@pytest.mark.parametrize(
    "body", [{}, {"text": " \n "}, {"text": "x" * 100_001}, {"text": "x", "day": "soon"}]
)
def test_an_entry_with_an_invalid_text_or_day_is_refused(client: Client, body: dict[str, str]):
    assert client.post(ENTRIES, body, content_type="application/json").status_code in (413, 422)
    assert not MemoryEntry.objects.exists()


@pytest.mark.mechanism("memory.revisions")
def test_a_change_is_searchable_at_once_and_the_old_text_becomes_history(alice: User, client: Client):
    entry = add(client, "The dentist is on Monday.")
    changed = change(client, entry, "The dentist is on Thursday.").json()
    assert changed["revision"] == 2
    assert found(alice, "Thursday") == ["The dentist is on Thursday."]
    assert found(alice, "Monday") == []
    assert file_of(alice, entry) == ["The dentist is on Thursday."]
    assert history(client, entry) == [
        (2, "The dentist is on Thursday.", "user"),
        (1, "The dentist is on Monday.", "user"),
    ]


@pytest.mark.mechanism("memory.revisions")
def test_a_revert_creates_a_new_revision(alice: User, client: Client):
    entry = add(client, "Tea.")
    change(client, entry, "Coffee.")
    answer = client.post(f"{ENTRIES}/{entry['id']}/revert", {"revision": 1}, content_type="application/json")
    assert answer.json()["text"] == "Tea."
    assert [text for _, text, _ in history(client, entry)] == ["Tea.", "Coffee.", "Tea."]
    assert found(alice, "tea") == ["Tea."]
    missing = client.post(f"{ENTRIES}/{entry['id']}/revert", {"revision": 9}, content_type="application/json")
    assert missing.status_code == 404


def test_a_revert_can_be_reverted_and_every_text_stays_in_the_history(alice: User, client: Client):
    entry = add(client, "Tea.")
    change(client, entry, "Coffee.")
    for revision, text in ((1, "Tea."), (2, "Coffee."), (1, "Tea.")):
        path = f"{ENTRIES}/{entry['id']}/revert"
        answer = client.post(path, {"revision": revision}, content_type="application/json")
        assert answer.json()["text"] == text
        assert file_of(alice, entry) == [text]
    said = ["Tea.", "Coffee.", "Tea.", "Coffee.", "Tea."]
    assert [(number, text) for number, text, _ in history(client, entry)] == list(enumerate(said, 1))[::-1]
    assert found(alice, "coffee") == []


def test_changing_an_entry_that_was_changed_meanwhile_is_a_conflict(client: Client):
    entry = add(client, "One.")
    assert change(client, entry, "Two.", revision=1).status_code == 200
    late = change(client, entry, "Three.", revision=1)
    assert late.status_code == 409
    assert late.json()["error"]["details"] == {"revision": 2}
    assert change(client, entry, "Two.").json()["revision"] == 2, "the same words are no revision"


def test_a_deleted_entry_is_gone_with_its_history(alice: User, client: Client):
    entry = add(client, "The heliotrope password.")
    change(client, entry, "The heliotrope pass phrase.")
    assert client.delete(f"{ENTRIES}/{entry['id']}").status_code == 204
    assert client.get(f"{ENTRIES}/{entry['id']}").status_code == 404
    assert not EntryRevision.objects.exists()
    assert found(alice, "heliotrope") == []
    assert file_of(alice, entry) == []


@pytest.mark.mechanism("memory.one-entry")
def test_an_edit_survives_a_repeated_job_and_a_repeated_compaction(alice: User, client: Client):
    conversation = new_conversation(alice)
    row, entry = extracted(conversation, "Alice has a dog.")
    change(client, {"id": entry.pk}, "Alice has a cat.")
    extract(row, "Alice has a dog.")
    Compaction.objects.update(status=Compaction.Status.UNDONE)
    extract(finished_compaction(conversation), "Alice has a dog, a big one.")
    assert MemoryEntry.objects.get().text == "Alice has a cat."


@pytest.mark.mechanism("memory.one-entry")
def test_a_span_that_is_summarised_again_stays_one_entry_with_a_history(alice: User, client: Client):
    conversation = new_conversation(alice)
    _, entry = extracted(conversation, "Alice has a dog.")
    Compaction.objects.update(status=Compaction.Status.UNDONE)
    extract(finished_compaction(conversation), "Alice has a big dog.")
    assert MemoryEntry.objects.get().text == "Alice has a big dog."
    assert history(client, {"id": entry.pk})[1] == (1, "Alice has a dog.", "extraction")


def test_an_edit_survives_the_loss_of_its_file(alice: User, client: Client):
    _, entry = extracted(new_conversation(alice), "Alice has a dog.")
    change(client, {"id": entry.pk}, "Alice has a cat.")
    memory_files.day_path(alice.pk, entry.day).unlink()
    memory_files.rebuild_files(alice.pk)
    assert file_of(alice, {"day": entry.day.isoformat()}) == ["Alice has a cat."]


@pytest.mark.mechanism("memory.markdown")
def test_a_day_file_that_could_not_be_written_is_written_by_the_sweep(alice: User, client: Client):
    entry = add(client, "First.")
    in_the_way = memory_files.user_folder(alice.pk) / f".{entry['day']}.md.new"
    in_the_way.mkdir()
    assert change(client, entry, "Second.").status_code == 200
    assert file_of(alice, entry) == ["First."]
    in_the_way.rmdir()
    memory_files.sweep_unwritten()
    assert file_of(alice, entry) == ["Second."]


class TestWholeDays:
    DAY = "/api/v1/memory/days/2026-11-21"

    @pytest.fixture(autouse=True)
    def two_entries(self, client: Client) -> None:
        add(client, "One.", day="2026-11-21")
        add(client, "Two.", day="2026-11-21")

    def put(self, client: Client, markdown: str, **headers: str) -> Any:
        return client.put(
            self.DAY, {"markdown": markdown}, content_type="application/json", headers=headers or None
        )

    def test_a_changed_section_is_an_edit_and_a_missing_one_is_forgotten(self, alice: User, client: Client):
        before = client.get(self.DAY).json()
        one, two = before["entries"]
        head, _, second = before["markdown"].partition("One.\n\n")
        after = self.put(client, f"{head}Uno.\n").json()
        assert [(entry["id"], entry["text"]) for entry in after["entries"]] == [(one["id"], "Uno.")]
        assert history(client, one) == [(2, "Uno.", "user"), (1, "One.", "user")]
        assert client.get(f"{ENTRIES}/{two['id']}").status_code == 404
        assert "Two." in second
        assert file_of(alice, one) == ["Uno."]

    def test_a_missing_section_is_forgotten_like_a_deleted_entry(self, alice: User, client: Client):
        before = client.get(self.DAY).json()["markdown"]
        self.put(client, before.replace("Two.", "Grows heliotrope in Lisbon."))
        put_profile = {"markdown": "- Grows heliotrope in Lisbon."}
        client.put("/api/v1/memory/profile", put_profile, content_type="application/json")
        self.put(client, "# 2026-11-21\n")
        assert client.get("/api/v1/memory/profile").json()["markdown"] == ""
        assert tombstones_of(alice.pk).cover("In Lisbon she grows heliotrope.")

    def test_a_line_that_was_moved_to_another_section_is_not_forgotten(self, alice: User, client: Client):
        before = client.get(self.DAY).json()["markdown"]
        first, second = "Grows heliotrope in Lisbon.", "Repairs old clocks for neighbours."
        two = self.put(
            client, before.replace("One.", first).replace("Two.", f"{second}\nWears a red hat.")
        ).json()
        head, _, _ = two["markdown"].partition(first)
        after = self.put(client, f"{head}{first}\n{second}\n").json()
        assert [entry["text"] for entry in after["entries"]] == [f"{first}\n{second}"]
        assert found(alice, "clocks") == [f"{first}\n{second}"]
        assert not tombstones_of(alice.pk).cover(second)
        assert tombstones_of(alice.pk).cover("Wears a red hat."), "what was not moved is"

    def test_an_added_section_becomes_a_new_entry_at_its_time(self, alice: User, client: Client):
        client.patch("/api/v1/me", {"time_zone": "Asia/Tokyo"}, content_type="application/json")
        before = client.get(self.DAY).json()["markdown"]
        after = self.put(client, f"{before}\n## 14:05 · Dentist\n\nBring the card.\n").json()
        new = next(entry for entry in after["entries"] if "Bring" in entry["text"])
        assert new["text"] == "Dentist\n\nBring the card."
        assert new["created_at"] == "2026-11-21T05:05:00Z"
        assert [entry["revision"] for entry in after["entries"]] == [1, 1, 1]
        assert found(alice, "dentist card") == ["Dentist\n\nBring the card."]

    def test_sending_a_day_back_unchanged_changes_nothing(self, client: Client):
        before = client.get(self.DAY)
        after = self.put(client, before.json()["markdown"])
        assert after.json() == before.json()
        assert after["ETag"] == before["ETag"]

    @pytest.mark.sqlite
    def test_a_day_can_be_read_and_written_as_raw_markdown(self, client: Client):
        raw = client.get(self.DAY, headers={"accept": "text/markdown"})
        assert raw["Content-Type"] == "text/markdown; charset=utf-8"
        changed = raw.content.decode().replace("One.", "Eins. ÄÖÜ")
        answer = client.put(self.DAY, changed, content_type="text/markdown")
        assert answer.status_code == 200, answer.content
        assert "Eins. ÄÖÜ" in [entry["text"] for entry in answer.json()["entries"]]
        assert client.put(self.DAY, b"\xff", content_type="text/markdown").status_code == 400

    def test_writing_a_day_that_was_changed_meanwhile_is_a_conflict(self, client: Client):
        before = client.get(self.DAY)
        add(client, "Three.", day="2026-11-21")
        late = self.put(client, "# 2026-11-21\n", **{"if-match": before["ETag"]})
        assert late.status_code == 409
        day = client.get(self.DAY)
        assert len(day.json()["entries"]) == 3
        assert self.put(client, "# 2026-11-21\n", **{"if-match": day["ETag"]}).json()["entries"] == []

    @pytest.mark.sqlite
    @pytest.mark.parametrize("whose", ["nobody's", "charlie's", "another day's"])
    def test_an_entry_of_another_day_or_user_is_refused_and_nothing_changes(
        self, client: Client, charlie: User, api_client: Clients, whose: str
    ):
        owner = api_client(charlie) if whose == "charlie's" else client
        other = add(owner, "Other.", day="2020-01-01")["id"]
        if whose == "nobody's":
            other = "0190aaaa-0000-7000-8000-000000000000"
        markdown = client.get(self.DAY).json()["markdown"]
        forged = f"{markdown}\n## 10:00\n<!-- entry {other} | at 2026-11-21T10:00:00+00:00 -->\n\nMine now.\n"
        assert self.put(client, forged).status_code == 409
        assert client.get(self.DAY).json()["markdown"] == markdown
        assert not MemoryEntry.objects.filter(text="Mine now.").exists()

    def test_an_entry_named_twice_or_with_a_broken_comment_is_refused(self, client: Client):
        markdown = client.get(self.DAY).json()["markdown"]
        assert self.put(client, f"{markdown}\n{markdown}").status_code == 422
        assert self.put(client, markdown.replace("| at 2026", "| at soon")).status_code == 422
        assert client.get(self.DAY).json()["markdown"] == markdown

    def test_a_deleted_day_is_gone(self, alice: User, client: Client):
        assert client.delete(self.DAY).status_code == 204
        assert client.get(self.DAY).status_code == 404
        assert client.delete(self.DAY).status_code == 404
        assert not MemoryEntry.objects.exists()
        assert file_of(alice, {"day": "2026-11-21"}) == []

    def test_another_users_day_is_untouched(self, client: Client, charlie: User, api_client: Clients):
        other = api_client(charlie)
        assert other.get(self.DAY).status_code == 404
        assert other.delete(self.DAY).status_code == 404
        assert self.put(other, "## 09:00\n\nCharlie's own.").status_code == 200
        assert [entry["text"] for entry in client.get(self.DAY).json()["entries"]] == ["One.", "Two."]


@pytest.mark.mechanism("memory.day")
def test_a_day_begins_at_midnight_in_the_users_time_zone(alice: User):
    User.objects.filter(pk=alice.pk).update(time_zone="Asia/Tokyo")
    alice.refresh_from_db()
    conversation = new_conversation(alice)
    _, entry = extracted(conversation, "Said at five in the morning of the 22nd, in Tokyo.")
    assert datetime(2026, 11, 21, 20, 0, tzinfo=UTC) == NOW
    assert entry.day.isoformat() == "2026-11-22"


def test_a_read_only_token_cannot_change_entries(alice: User, api_client: Any, client: Client):
    entry = add(client, "Mine.")
    reader = api_client(alice, ["read"])
    assert reader.get(f"{ENTRIES}/{entry['id']}").status_code == 200
    for answer in (
        reader.post(ENTRIES, {"text": "x"}, content_type="application/json"),
        change(reader, entry, "x"),
        reader.delete(f"{ENTRIES}/{entry['id']}"),
        reader.put("/api/v1/memory/days/2026-11-21", {"markdown": ""}, content_type="application/json"),
        reader.delete("/api/v1/memory/days/2026-11-21"),
    ):
        assert answer.status_code == 403


def test_an_entry_lists_later_spans_that_repeat_it_as_sources(alice: User, api_client: Clients):
    entry = add_entry(user=alice, text="I like celadon.", now=NOW)
    later = new_conversation(alice)
    first, last = say(later, "I like celadon.", "Noted.")
    note_sources(
        entry_ids=[str(entry.pk)],
        conversation=later,
        first_message_id=first.pk,
        last_message_id=last.pk,
        at=NOW,
    )
    [source] = api_client(alice).get(f"/api/v1/memory/entries/{entry.pk}").json()["sources"]
    assert source == {
        "conversation_id": str(later.pk),
        "first_message_id": str(first.pk),
        "last_message_id": str(last.pk),
        "created_at": "2026-11-21T20:00:00Z",
    }
