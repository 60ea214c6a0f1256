"""Forgetting removes a text and everything derived from it, and nothing else."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from chatapp.accounts.models import User
from chatapp.compaction import tasks
from chatapp.compaction.models import Compaction
from chatapp.compaction.rewriting import waiting_rewrites
from chatapp.conversations.models import Message
from chatapp.files import attachments
from chatapp.files.actions import delete_unshared_attachments
from chatapp.forgetting.models import ForgetReceipt
from chatapp.long_term import files as memory_files
from chatapp.long_term.actions.entries import record_entry
from chatapp.long_term.models import MemoryEntry, Profile
from chatapp.operations import clock
from chatapp.realtime.event_log import read_after
from tests.context_engine.chatting import make_model
from tests.forgetting.everywhere import files_with, tables_with
from tests.forgetting.lives import KEPT, SAID, SECRET, Life, live, look_up
from tests.memory_store.rows import NOW, finished_compaction, new_conversation, say
from tests.servers.behaviour import Behaviour, says
from tests.servers.openai_server import ModelServer

Clients = Callable[..., Client]
FORGET = "/api/v1/memory/forget"


def post(client: Client, path: str, **body: object) -> dict:
    answer = client.post(path, json.dumps(body), content_type="application/json")
    assert answer.status_code == 200, answer.content
    return answer.json()


def forget(client: Client, **wish: object) -> dict:
    return post(client, FORGET, **wish)


def confirm(client: Client, answer: dict) -> dict | None:
    """Confirm all proposed items, as the page preselects them. Return None if nothing is proposed."""
    proposal = answer.get("proposal")
    if proposal is None:
        return None
    ids = [item["id"] for item in proposal["items"]]
    return post(client, f"{FORGET}/confirm", proposal_id=proposal["proposal_id"], item_ids=ids)


def wishes(life: Life) -> dict[str, dict[str, object]]:
    return {
        "entry": {"entry_id": str(life.entry.pk)},
        "message": {"message_id": str(life.told.pk)},
        "conversation": {"conversation_id": str(life.conversation.pk)},
        "day": {"day": NOW.date().isoformat()},
        "everything": {"everything": True},
    }


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("no_files")
@pytest.mark.parametrize("what", ["entry", "message", "conversation", "day", "everything"])
def test_a_forgotten_text_is_in_no_table_and_no_file(alice: User, api_client: Clients, what: str):
    life = live(alice)
    look_up(life.elsewhere, SAID)
    assert {"chatapp_message", "chatapp_memoryentry", "chatapp_entryrevision"} <= set(tables_with(SECRET))
    assert files_with(SECRET)
    receipt = forget(api_client(alice), **wishes(life)[what])
    assert receipt["what"] == what
    assert receipt["removed"]
    assert SECRET not in json.dumps(receipt["removed"])
    confirm(api_client(alice), receipt)
    assert tables_with(SECRET) == []
    assert files_with(SECRET) == []


def test_messages_that_repeat_a_confirmed_item_are_proposed_next(alice: User, api_client: Clients):
    client, locker, boat = api_client(alice), "LCK-4471", "BT-8820"
    told, _ = say(new_conversation(alice), f"My locker has the code {locker}.", "Noted.")
    say(new_conversation(alice), f"The codes are {locker} and, of my boat, {boat}.", "Noted.")
    say(new_conversation(alice), "Which one opens the boat?", f"It is {boat}.")
    proposed = forget(client, message_id=str(told.pk))
    assert [boat in item["preview"] for item in proposed["proposal"]["items"]] == [True]
    again = confirm(client, proposed)
    assert [item["preview"] for item in again["proposal"]["items"]] == [f"It is {boat}."]
    assert confirm(client, again)["proposal"] is None
    assert tables_with(locker) == tables_with(boat) == []


def test_messages_that_repeat_the_result_of_a_forget_request_are_proposed_next(
    alice: User, api_client: Clients
):
    client = api_client(alice)
    say(new_conversation(alice), "My locker at the harbour has the code LCK-4471.", "Noted.")
    say(new_conversation(alice), "Which one was it?", "LCK-4471, I think.")
    found = post(client, f"{FORGET}/propose", query="my locker at the harbour")
    again = confirm(client, {"proposal": found})
    assert [item["preview"] for item in again["proposal"]["items"]] == ["LCK-4471, I think."]


def test_unrelated_text_stays_after_a_forgetting(alice: User, api_client: Clients):
    life = live(alice)
    forget(api_client(alice), message_id=str(life.told.pk))
    assert KEPT in life.conversation.compactions.get().summary
    alice.profile.refresh_from_db()
    assert alice.profile.text == "- Has a plum tree"
    life.messages[2].refresh_from_db()
    assert life.messages[2].parts[0]["text"] == KEPT
    assert KEPT in MemoryEntry.objects.get().text
    assert KEPT in memory_files.day_path(alice.pk, NOW.date()).read_text()


DENTIST = "My dentist is Dr Quillfeather in Elm Street 14."
TREES = "Elm trees grow slowly and live for three hundred years."
CONTRACT = "My contract ends in 2027."


def test_a_summary_is_an_extract_of_the_remaining_text_until_a_model_rewrites_it(
    alice: User, api_client: Clients
) -> None:
    conversation = new_conversation(alice)
    rows = say(conversation, "Tell me of trees.", TREES, DENTIST, "Noted.", CONTRACT, "I see.")
    first = finished_compaction(conversation, summary=f"{TREES} Their dentist is Dr Quillfeather.")
    Compaction.objects.filter(pk=first.pk).update(last_position=3, message_count=4, summary_tokens=200)
    later = finished_compaction(conversation, 4, summary=f"Dr Quillfeather. {CONTRACT}")
    Compaction.objects.filter(pk=later.pk).update(last_position=5, previous=first, summary_tokens=200)
    forget(api_client(alice), message_id=str(rows[2].pk))
    assert tables_with("Quillfeather") == []
    for row, said in ((first, TREES), (later, CONTRACT)):
        row.refresh_from_db()
        assert said in row.summary
        assert row.fallback_reason
        assert row.rewrite_since is not None
    with ModelServer(summary_default=says(f"{TREES} {CONTRACT}")) as server:
        make_model(server, name="Main", is_default=True)
        for _ in range(2):
            for compaction_id in waiting_rewrites(clock.now() + timedelta(minutes=1)):
                tasks.rewrite_summary(str(compaction_id))
    later.refresh_from_db()
    assert later.summary == f"{TREES} {CONTRACT}"
    assert (later.rewrite_since, later.fallback_reason) == (None, "")


@pytest.mark.django_db(transaction=True)
def test_text_forgotten_while_a_summary_is_rewritten_is_not_in_it(alice: User, api_client: Clients) -> None:
    conversation = new_conversation(alice)
    rows = say(conversation, DENTIST, "Noted.", CONTRACT, "I see.")
    row = finished_compaction(conversation, summary=f"{DENTIST} {CONTRACT}")
    Compaction.objects.filter(pk=row.pk).update(last_position=3, message_count=4, summary_tokens=200)
    forget(api_client(alice), message_id=str(rows[0].pk))

    client = api_client(alice)

    def forget_beside() -> None:
        forget(client, message_id=str(rows[2].pk))
        connection.close()

    def forget_meanwhile(_: object) -> Behaviour:
        other = threading.Thread(target=forget_beside)
        other.start()
        other.join()
        return says("Their contract ends in 2027.")

    with ModelServer(summary_default=forget_meanwhile) as server:
        make_model(server, name="Main", is_default=True)
        tasks.rewrite_summary(str(row.pk))
    assert tables_with("contract ends") == []


def test_forgetting_an_entry_keeps_messages_that_only_share_a_number_with_it(
    alice: User, api_client: Clients
) -> None:
    conversation = new_conversation(alice)
    rows = say(
        conversation, "The plum tree blooms in March 2027.", "Noted.", "My contract ends in 2027.", "I see."
    )
    entry = record_entry(
        compaction=finished_compaction(conversation),
        text="- The plum tree blooms in March 2027.",
        first_message_id=rows[0].pk,
        last_message_id=rows[3].pk,
        at=NOW,
    )
    assert entry
    answer = forget(api_client(alice), entry_id=str(entry.pk))
    assert "proposal" not in answer or answer["proposal"] is None
    left = [row.parts[0]["text"] if row.parts else "" for row in conversation.messages.order_by("position")]
    assert left == ["", "Noted.", "My contract ends in 2027.", "I see."]


def test_forgetting_an_entry_removes_its_source_sentences_and_proposes_paraphrases(
    alice: User, api_client: Clients
):
    """Only exact copies in the entry's own span are removed unasked; the user decides about paraphrases."""
    life = live(alice)
    answer = forget(api_client(alice), entry_id=str(life.entry.pk))
    said = [
        row.parts[0]["text"] if row.parts else "" for row in life.conversation.messages.order_by("position")
    ]
    assert said == [SAID, "Noted.", "", "How lovely.", "And now?", "Now we wait."]
    assert [item["id"] for item in answer["proposal"]["items"]] == [str(life.told.pk)]


def test_answers_that_recalled_the_text_are_proposed_and_not_changed_unasked(
    alice: User, api_client: Clients
):
    """This holds for answers in any words, even if they are not indexed."""
    life = live(alice)
    recited = life.elsewhere.messages.get(position=1)
    Message.objects.filter(pk=recited.pk).update(parts=[{"type": "text", "text": "Es ist Seladon."}])
    answer = forget(api_client(alice), message_id=str(life.told.pk))
    assert [item["id"] for item in answer["proposal"]["items"]] == [str(recited.pk)]
    recited.refresh_from_db()
    assert recited.parts
    confirm(api_client(alice), answer)
    recited.refresh_from_db()
    assert recited.parts == []


def test_a_message_elsewhere_that_repeats_an_identifier_is_proposed(alice: User, api_client: Clients):
    [told, _] = say(new_conversation(alice), "Our invoice is INV-20418.", "Noted.")
    [_, recited] = say(new_conversation(alice), "Which one is open?", "That one, inv-20418, is open.")
    say(new_conversation(alice), "And INV-2041?", "It is paid.")
    answer = forget(api_client(alice), message_id=str(told.pk))
    assert [item["id"] for item in answer["proposal"]["items"]] == [str(recited.pk)]


def test_forgetting_removes_profile_lines_and_consolidates_their_other_sources_again(
    alice: User, api_client: Clients
):
    life = live(alice)
    other = MemoryEntry.objects.create(
        user=alice, text="They paint.", day=NOW.date(), created_at=NOW, consolidated_at=NOW
    )
    sources = [[str(life.entry.pk), str(other.pk)], [str(other.pk)]]
    Profile.objects.update(text="- Paints in green\n- Paints at night", sources=sources)
    forget(api_client(alice), message_id=str(life.told.pk))
    profile = Profile.objects.get()
    assert (profile.text, profile.sources) == ("- Paints at night", [[str(other.pk)]])
    other.refresh_from_db()
    assert other.consolidated_at is None


def test_a_forgotten_message_stays_at_its_position_empty_and_marked(alice: User, api_client: Clients):
    life = live(alice)
    path = f"/api/v1/conversations/{life.conversation.pk}/messages"
    assert api_client(alice).delete(f"{path}/{life.told.pk}").status_code == 204
    shapes = api_client(alice).get(path).json()["items"]
    assert [shape["position"] for shape in shapes] == list(range(6))
    assert (shapes[0]["content"], shapes[0]["forgotten"]) == ("", True)
    assert not shapes[1]["forgotten"]


def test_forgetting_a_message_appends_an_event_without_a_gap_in_the_sequence(
    alice: User, api_client: Clients
):
    life = live(alice)
    forget(api_client(alice), message_id=str(life.told.pk))
    [told] = [event for event in read_after(life.conversation.pk, 0) if event["type"] == "message.forgotten"]
    assert told["message"]["id"] == str(life.told.pk)
    assert told["message"]["content"] == ""
    seqs = list(life.conversation.events.order_by("seq").values_list("seq", flat=True))
    life.conversation.refresh_from_db()
    assert seqs == list(range(1, life.conversation.last_seq + 1))


def test_a_message_that_repeats_the_text_is_proposed_and_forgotten_once_confirmed(
    alice: User, api_client: Clients
):
    conversation = new_conversation(alice)
    [told, recited, other, _] = say(conversation, SAID, f"You say: {SAID} Right?", KEPT, "How lovely.")
    answer = forget(api_client(alice), message_id=str(told.pk))
    [item] = answer["proposal"]["items"]
    assert (item["kind"], item["id"]) == ("message", str(recited.pk))
    assert SECRET in item["preview"]
    confirmed = post(
        api_client(alice),
        f"{FORGET}/confirm",
        proposal_id=answer["proposal"]["proposal_id"],
        item_ids=[str(recited.pk)],
    )
    assert confirmed["what"] == "chosen"
    assert tables_with(SECRET) == []
    other.refresh_from_db()
    assert other.parts


def test_receipts_are_listed_newest_first_and_only_to_their_user(
    alice: User, charlie: User, api_client: Clients
):
    life = live(alice)
    first = forget(api_client(alice), message_id=str(life.told.pk))
    second = forget(api_client(alice), everything=True)
    rows = api_client(alice).get("/api/v1/memory/receipts?limit=1").json()
    assert [row["id"] for row in rows["items"]] == [second["id"]]
    rest = api_client(alice).get(f"/api/v1/memory/receipts?cursor={rows['next_cursor']}").json()
    assert [row["id"] for row in rest["items"]] == [first["id"]]
    assert api_client(charlie).get("/api/v1/memory/receipts").json()["items"] == []


def test_users_cannot_forget_data_of_other_users(alice: User, charlie: User, api_client: Clients):
    life = live(alice)
    for what, wish in wishes(life).items():
        answer = api_client(charlie).post(FORGET, json.dumps(wish), content_type="application/json")
        assert answer.status_code == (200 if what == "everything" else 404)
    assert Message.objects.get(pk=life.told.pk).parts
    assert MemoryEntry.objects.filter(user=alice).count() == 1
    assert not ForgetReceipt.objects.filter(user=alice).exists()


@pytest.mark.parametrize(
    "wish", [{}, {"everything": False}, {"day": "2026-11-21", "everything": True}, {"day": "tomorrow"}]
)
def test_a_forget_request_without_exactly_one_valid_target_returns_422(
    alice: User, api_client: Clients, wish: dict
):
    answer = api_client(alice).post(FORGET, json.dumps(wish), content_type="application/json")
    assert answer.status_code == 422


def test_an_image_that_no_other_message_shows_is_deleted_with_its_message(alice: User, api_client: Clients):
    life = live(alice)
    path = attachments.content_path(life.image.sha256)
    assert path.exists()
    receipt = forget(api_client(alice), message_id=str(life.told.pk))
    assert receipt["removed"]["files"] == 1
    assert not path.exists()


@pytest.mark.sqlite
def test_deleting_the_files_of_messages_reads_no_links_of_other_messages(alice: User) -> None:
    life = live(alice)
    with CaptureQueriesContext(connection) as asked:
        assert delete_unshared_attachments([life.told.pk]) == (life.image.sha256,)
    read = [query["sql"] for query in asked if query["sql"].startswith("SELECT")]
    with connection.cursor() as cursor:
        plans = [cursor.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall() for sql in read]
    steps = [step for plan in plans for *_, step in plan]
    assert not [step for step in steps if "SCAN" in step]


def test_forgetting_a_day_removes_its_messages_and_entries(alice: User, api_client: Clients):
    life = live(alice)
    forget(api_client(alice), day=NOW.date().isoformat())
    assert not Message.objects.filter(conversation=life.conversation).exclude(parts=[]).exists()
    assert not memory_files.day_path(alice.pk, NOW.date()).exists()
    assert tables_with(KEPT) == []


def test_removing_a_section_from_a_day_forgets_its_entry(alice: User, api_client: Clients):
    live(alice)
    day = f"/api/v1/memory/days/{NOW.date().isoformat()}"
    body = json.dumps({"markdown": f"# {NOW.date().isoformat()}\n"})
    answer = api_client(alice).put(day, body, content_type="application/json")
    assert answer.status_code == 200, answer.content
    assert ForgetReceipt.objects.get().what == "entry"
    assert not MemoryEntry.objects.exists()
    assert Profile.objects.get().text == "- Has a plum tree"


@pytest.mark.mechanism("forgetting.stale-page")
def test_a_stale_page_cannot_restore_the_former_profile(alice: User, api_client: Clients):
    life = live(alice)
    client, path = api_client(alice), "/api/v1/memory/profile"
    stale = client.get(path)
    forget(client, message_id=str(life.told.pk))
    body = json.dumps({"markdown": stale.json()["markdown"]})
    refused = client.put(path, body, content_type="application/json", headers={"If-Match": stale["ETag"]})
    assert refused.status_code == 409
    now = client.get(path).json()
    assert (now["author"], now["version"]) == ("forgetting", stale.json()["version"] + 1)
    forget(client, everything=True)
    refused = client.put(path, body, content_type="application/json", headers={"If-Match": stale["ETag"]})
    assert refused.status_code == 409
    assert tables_with(SECRET) == []


def test_forgetting_a_conversation_proposes_repetitions_and_redacts_tool_results_elsewhere(
    alice: User, api_client: Clients
):
    life = live(alice)
    [recited] = say(life.elsewhere, f"You told me: {SAID}", role="assistant")
    answered = life.elsewhere.messages.get(position=1)
    [result] = say(life.elsewhere, "", role="tool")
    parts = [{"type": "tool_result", "call_id": "1", "name": "memory_search", "text": SAID}]
    Message.objects.filter(pk=result.pk).update(parent=answered, parts=parts)
    answer = forget(api_client(alice), conversation_id=str(life.conversation.pk))
    assert {item["id"] for item in answer["proposal"]["items"]} == {str(recited.pk), str(answered.pk)}
    assert SECRET not in str(Message.objects.get(pk=result.pk).parts)


@pytest.mark.parametrize("what", ["message", "conversation"])
def test_entries_learned_from_tool_results_elsewhere_lose_the_forgotten_text(
    alice: User, api_client: Clients, what: str
):
    """The span of the entry contains the tool result. What the user said in the same span stays."""
    life = live(alice)
    ferry = "The ferry to Oslo leaves at nine."
    [asked] = say(life.elsewhere, ferry, role="user")
    [result] = say(life.elsewhere, "", role="tool")
    parts = [{"type": "tool_result", "call_id": "1", "name": "memory_search", "text": SAID}]
    Message.objects.filter(pk=result.pk).update(parent=life.elsewhere.messages.get(position=1), parts=parts)
    entry = record_entry(
        compaction=finished_compaction(life.elsewhere),
        text=f"- {SAID}\n- {ferry}",
        first_message_id=asked.pk,
        last_message_id=result.pk,
        at=NOW,
    )
    assert entry is not None
    receipt = forget(api_client(alice), **wishes(life)[what])
    entry.refresh_from_db()
    assert entry.text == f"- {ferry}"
    assert receipt["removed"]["entries_redacted"] >= 1
