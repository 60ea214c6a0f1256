"""Access to an agent's shared memory: users read it, operators also correct and remove, and no author is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.db import connection, transaction
from django.db.models import Model
from django.db.models.signals import post_save
from django.test import Client

from chatapp.accounts.models import User
from chatapp.agent_presets.models import Agent
from chatapp.conversations.models import Conversation, Message
from chatapp.forgetting.models import ForgetReceipt
from chatapp.forgetting.services import forget_chosen, take_out_of_shared
from chatapp.long_term import files as memory_files
from chatapp.long_term.models import MemoryEntry
from chatapp.operations.database.threads import in_database
from tests.context_engine.chatting import on_a_loop
from tests.forgetting.everywhere import tables_with
from tests.forgetting.lives import read_elsewhere
from tests.memory_store.rows import NOW, say
from tests.memory_store.test_shared_memory import ASKED, SAID, house, recalled

pytestmark = [pytest.mark.django_db(transaction=True)]

Clients = Callable[..., Client]
SHARED = "/api/v1/memory/shared"
PANEL = "/admin/chatapp/sharedentry/"


@pytest.fixture
def porter() -> Agent:
    return Agent.objects.create(name="Porter", shares_memory=True)


def share(user: User, agent: Agent, text: str, **fields: Any) -> MemoryEntry:
    values = {"day": NOW.date(), "created_at": NOW, "scope": agent, "shared_in": agent.pk} | fields
    return MemoryEntry.objects.create(user=user, text=text, **values)


@pytest.mark.mechanism("memory.shared-pages")
def test_users_of_an_agent_read_its_shared_memory_page_by_page(
    alice: User, bob: User, porter: Agent, api_client: Clients
) -> None:
    mine, theirs = share(alice, porter, "Mine."), share(bob, porter, "Theirs.")
    share(bob, porter, "Waits for approval.", state=MemoryEntry.State.PROPOSED)
    MemoryEntry.objects.create(user=bob, text="Private.", day=NOW.date(), created_at=NOW)
    client = api_client(alice)
    assert client.get(SHARED).json()["items"] == [
        {"agent_id": str(porter.pk), "agent": "Porter", "entry_count": 2}
    ]
    first = client.get(f"{SHARED}/{porter.pk}?limit=1").json()
    rest = client.get(f"{SHARED}/{porter.pk}?limit=1&cursor={first['next_cursor']}").json()
    assert rest["next_cursor"] is None
    seen = [(item["id"], item["text"], item["is_mine"]) for item in first["items"] + rest["items"]]
    assert seen == [(str(theirs.pk), "Theirs.", False), (str(mine.pk), "Mine.", True)]
    assert set(first["items"][0]) == {"id", "day", "text", "is_mine", "created_at"}, "and not whose, or where"


@pytest.mark.parametrize("how", ["closed", "switched off", "never opened", "unknown"])
def test_a_shared_memory_that_is_not_open_returns_404(
    alice: User, bob: User, porter: Agent, api_client: Clients, how: str
) -> None:
    share(bob, porter, "Theirs.")
    if how == "closed":
        Agent.objects.update(shares_memory=False)
    elif how == "switched off":
        Agent.objects.update(enabled=False)
    asked: object = porter.pk
    if how == "never opened":
        asked = Agent.objects.create(name="Other").pk
    elif how == "unknown":
        asked = "nonsense"
    assert api_client(alice).get(f"{SHARED}/{asked}").status_code == 404
    if how in ("closed", "switched off"):
        assert api_client(alice).get(SHARED).json()["items"] == []


def test_reading_shared_memory_needs_a_token_with_the_read_scope(
    alice: User, porter: Agent, api_client: Clients, client: Client
) -> None:
    assert client.get(SHARED).status_code == 401
    assert api_client(alice, ["chat"]).get(f"{SHARED}/{porter.pk}").status_code == 403
    assert api_client(alice, ["read"]).get(f"{SHARED}/{porter.pk}").status_code == 200


def test_an_operator_can_correct_an_entry_and_its_history_names_the_operator(
    bob: User, porter: Agent, admin_client: Client, api_client: Clients
) -> None:
    entry = share(bob, porter, "The gate code is 1234.")
    private = MemoryEntry.objects.create(user=bob, text="Private heliotrope.", day=NOW.date(), created_at=NOW)
    listed = admin_client.get(PANEL).content.decode()
    assert "The gate code is 1234." in listed
    assert "heliotrope" not in listed
    assert bob.email not in listed
    assert admin_client.get(f"{PANEL}{private.pk}/change/").status_code == 302, "not in any shared memory"
    page = admin_client.get(f"{PANEL}{entry.pk}/change/").content.decode()
    assert bob.email not in page
    sent = {"text": "The gate code is 7731-heliotrope.", "revision": 1}
    saved = admin_client.post(f"{PANEL}{entry.pk}/change/", sent)
    assert saved.status_code == 302
    theirs = api_client(bob).get(f"/api/v1/memory/entries/{entry.pk}/history").json()["items"]
    assert [(item["text"], item["author"]) for item in theirs] == [
        ("The gate code is 7731-heliotrope.", "operator"),
        ("The gate code is 1234.", "extraction"),
    ]
    assert "7731" in memory_files.day_path(bob.pk, entry.day).read_text()
    assert "heliotrope" not in str(list(LogEntry.objects.values()))


def opened_form(client: Client, entry: MemoryEntry) -> dict[str, str]:
    """Return the fields that a browser sends back from the entry's form, the hidden ones too."""
    form = client.get(f"{PANEL}{entry.pk}/change/").context["adminform"].form
    return {name: str(form[name].value()) for name in form.fields}


@pytest.mark.mechanism("memory.shared-pages")
@pytest.mark.parametrize("missing", ["revision", None])
def test_an_operators_stale_form_does_not_bring_back_a_forgotten_line(
    bob: User, porter: Agent, admin_client: Client, missing: str | None
) -> None:
    entry = share(bob, porter, f"- Tea is served in Oslo.\n- {SAID}")
    sent = opened_form(admin_client, entry)
    sent["text"] = sent["text"].replace("Oslo", "Bergen")
    sent.pop(missing or "", None)
    what = ForgetReceipt.What.ENTRY
    forget_chosen(bob, [], [entry.pk], what=what, now=NOW, lines={entry.pk: [SAID]}, for_good=True)
    answer = admin_client.post(f"{PANEL}{entry.pk}/change/", sent)
    assert answer.status_code == 200
    assert answer.context["adminform"].form.errors, "the operator is told, and sees what was typed"
    assert tables_with("heliotrope") == []
    again = opened_form(admin_client, entry) | {"text": "Tea is served in Bergen."}
    assert admin_client.post(f"{PANEL}{entry.pk}/change/", again).status_code == 302
    entry.refresh_from_db()
    assert entry.text == "Tea is served in Bergen."


def test_the_file_is_written_after_the_commit_of_the_operators_view(
    bob: User, porter: Agent, admin_client: Client
) -> None:
    """Before the commit, another writer could overwrite the file with the old text, and the file would stay stale."""
    entry = share(bob, porter, "The old words.")
    path = memory_files.day_path(bob.pk, entry.day)
    memory_files.write_day(bob.pk, entry.day)
    seen = []

    def look(**_: object) -> None:
        seen.append((connection.in_atomic_block, "The old words." in path.read_text()))

    with signals_of(LogEntry, look):
        sent = {"text": "The new words.", "revision": 1}
        assert admin_client.post(f"{PANEL}{entry.pk}/change/", sent).status_code == 302
    assert seen == [(True, True)]
    assert "The new words." in path.read_text()


def test_other_users_files_change_after_the_commit_that_removes_a_shared_entry(
    alice: User, bob: User, porter: Agent
) -> None:
    entry = share(bob, porter, SAID)
    chat = read_elsewhere(alice, [entry.pk]).conversation
    Conversation.objects.filter(pk=chat.pk).update(scope=porter, shared_in=porter.pk)
    [found] = say(chat, "", role="tool")
    parts = [{"type": "tool_result", "call_id": "1", "name": "memory_search", "text": SAID}]
    Message.objects.filter(pk=found.pk).update(parent=chat.messages.get(position=1), parts=parts)
    learned = share(alice, porter, SAID, conversation=chat)
    MemoryEntry.objects.filter(pk=learned.pk).update(first_message_id=found.pk, last_message_id=found.pk)
    path = memory_files.day_path(alice.pk, NOW.date())
    memory_files.write_day(alice.pk, NOW.date())
    with transaction.atomic():
        take_out_of_shared(entry.pk, now=NOW)
        assert SAID in path.read_text()
    assert not path.exists()


@contextmanager
def signals_of(model: type[Model], listener: Callable[..., None]) -> Iterator[None]:
    post_save.connect(listener, sender=model)
    try:
        yield
    finally:
        post_save.disconnect(listener, sender=model)


@pytest.mark.mechanism("memory.shared-pages")
@pytest.mark.parametrize("way", ["its page", "the list"])
@on_a_loop
async def test_an_entry_that_an_operator_removes_leaves_other_users_but_stays_with_its_user(
    alice: User, bob: User, admin_client: Client, way: str
) -> None:
    async with house() as porter:
        chat = await porter.tell(bob)
        other = await porter.chat(alice)
        await other.ask(ASKED)
        assert "7731" in str(await recalled(other))
        entry = await MemoryEntry.objects.aget(user=bob)
        if way == "its page":
            path, sent = f"{PANEL}{entry.pk}/delete/", {"post": "yes"}
        else:
            path = PANEL
            sent = {"action": "delete_selected", "_selected_action": str(entry.pk), "post": "yes"}
        assert (await in_database(admin_client.post)(path, sent)).status_code == 302
        assert await recalled(other) == []
        listed = (await in_database(admin_client.get)(PANEL)).content.decode()
        assert "heliotrope" not in listed
        read = await chat.program.get(f"memory/entries/{entry.pk}")
        assert "7731-heliotrope" in read.json()["text"]
        assert read.json()["shared_memory_of"] is None
        await in_database(forget_all_of)(bob, alice)


def forget_all_of(bob: User, alice: User) -> None:
    """Delete bob, and check that the word is gone, because only his own rows still had it."""
    bob.delete()
    assert tables_with("heliotrope") == []


@pytest.mark.mechanism("memory.shared-pages")
@pytest.mark.parametrize("may", [(), ("view",), ("view", "change"), ("view", "delete")], ids=str)
def test_staff_users_can_do_only_what_their_permissions_allow(
    bob: User, porter: Agent, charlie: User, client: Client, may: tuple[str, ...]
) -> None:
    entry = share(bob, porter, SAID)
    User.objects.filter(pk=charlie.pk).update(is_staff=True)
    charlie.refresh_from_db()
    for name in may:
        charlie.user_permissions.add(Permission.objects.get(codename=f"{name}_sharedentry"))
    client.force_login(charlie)
    assert client.get(PANEL).status_code == (200 if may else 403)
    change = client.post(f"{PANEL}{entry.pk}/change/", {"text": "Other words.", "revision": 1})
    assert change.status_code == (302 if "change" in may else 403)
    delete = client.post(f"{PANEL}{entry.pk}/delete/", {"post": "yes"})
    assert delete.status_code == (302 if "delete" in may else 403)
    entry.refresh_from_db()
    assert (entry.text == "Other words.") is ("change" in may)
    assert (entry.scope is None) is ("delete" in may)


def test_users_who_are_not_staff_get_404_in_the_admin(
    alice: User, bob: User, porter: Agent, browser_client: Clients
) -> None:
    entry = share(bob, porter, SAID)
    for path in ("", f"{entry.pk}/change/", f"{entry.pk}/delete/"):
        assert browser_client(alice).get(f"{PANEL}{path}").status_code == 404
