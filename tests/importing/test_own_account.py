"""Exports of a whole account: after an import by another user, its export is equal except for ids."""

from __future__ import annotations

import json
import random
import re
import zipfile
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from PIL import Image

from chatapp.accounts.api import ARCHIVE_PARTS
from chatapp.accounts.archive import write_account_archive
from chatapp.accounts.models import User
from chatapp.agent_presets.models import Agent
from chatapp.compaction.models import Compaction
from chatapp.conversations.actions.conversations import note_pause
from chatapp.conversations.models import Branch, Conversation, Folder, Message
from chatapp.features.importing import importer
from chatapp.features.importing.actions import store_sources
from chatapp.features.importing.importer import Report, import_file
from chatapp.features.importing.values import Unreadable, key_of_id
from chatapp.features.prompts.models import Prompt
from chatapp.files.attachments import store_image, store_upload
from chatapp.files.models import Attachment, Offload
from chatapp.files.offloads import ConversationOffloads, read_content
from chatapp.long_term.actions.entries import add_entry, edit_entry, note_sources
from chatapp.long_term.actions.profile import write_profile
from chatapp.long_term.actions.tombstones import make_tombstones, store_tombstones
from chatapp.long_term.models import MemoryEntry, ProfileVersion
from chatapp.operations import clock
from chatapp.operations.database.ids import new_id
from chatapp.providers.models import ModelConfig
from memory.bounds import MAX_IMPORTED
from memory.types import ToolResultPart
from tests.memory_store.rows import finished_compaction, new_conversation, say

NOW = datetime(2025, 3, 1, 12, tzinfo=UTC)
ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
OF_THE_ACCOUNT = ("account.json", "README.txt", "usage.csv", "memory/receipts.json")
OF_THE_COPY = ("exported_at", "expires_at", "last_activity_at", "last_seq", "unread")


def export_of(user: User, path: Path) -> Path:
    with write_account_archive(user, ARCHIVE_PARTS) as archive:
        path.write_bytes(archive.read())
    return path


def take_in(user: User, path: Path) -> Report:
    report = Report()
    assert import_file(user=user, path=path, report=report)
    return report


def contents(path: Path) -> Any:
    """Return (name, content) of each file in the archive, with ids replaced by numbers in order of occurrence."""
    numbers: dict[str, str] = {}

    def numbered(text: str) -> str:
        return ID.sub(lambda found: numbers.setdefault(found[0], f"id {len(numbers)}"), text)

    said = []
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name not in OF_THE_ACCOUNT]
        for name in sorted(names, key=lambda name: not name.startswith("conversations/")):
            content = archive.read(name)
            if name.startswith("conversations/"):
                shape = json.loads(content)
                content = json.dumps(
                    {key: shape[key] for key in shape if key not in OF_THE_COPY}, sort_keys=True
                ).encode()
            is_text = name.endswith((".json", ".md", ".txt"))
            said.append((name, numbered(content.decode()) if is_text else content))
    return sorted((numbered(name), content) for name, content in said)


def assert_equal(path: Path, other: Path) -> None:
    """Compare file by file, so that a difference is readable."""
    one, two = contents(path), contents(other)
    assert [name for name, _ in one] == [name for name, _ in two]
    for (name, content), (_, expected) in zip(one, two, strict=True):
        at = next(
            (at for at, pair in enumerate(zip(content, expected, strict=False)) if pair[0] != pair[1]), 0
        )
        assert content == expected, (
            name,
            content[max(0, at - 200) : at + 50],
            expected[max(0, at - 200) : at + 50],
        )


def picture(shade: int) -> bytes:
    drawn = BytesIO()
    Image.new("RGB", (8, 8), (shade, 90, 200)).save(drawn, "JPEG")
    return drawn.getvalue()


def grow_conversation(user: User, seed: int) -> Conversation:
    """Store a conversation with branches, summaries, files and an offloaded result, chosen at random by the seed."""
    chance = random.Random(seed)
    row = new_conversation(user, f"Chat {seed}" if chance.random() < 0.8 else "", NOW)
    Conversation.objects.filter(pk=row.pk).update(
        created_at=NOW - timedelta(days=1) + timedelta(minutes=seed % 100),
        memory=chance.choice(["on", "paused"]),
        mode=chance.choice(["", "react", "plan"]),
        temporary=chance.random() < 0.2,
        context_policy=chance.choice([{}, {"recall_budget": 100}]),
    )
    row.refresh_from_db()
    note_pause(user, row, True, NOW - timedelta(hours=1))
    note_pause(user, row, row.memory == "paused", NOW + timedelta(minutes=1))
    said = say(row, *(f"Words {seed}.{number}" for number in range(chance.randint(4, 8))), at=NOW)
    done = finished_compaction(row, 0, f"Summary {seed}")
    Compaction.objects.filter(pk=done.pk).update(created_at=NOW, finished_at=NOW)
    for number in range(chance.randint(0, 3)):
        fork = chance.choice(said)
        branch = Branch.objects.create(
            conversation=row, lineage=[[str(fork.branch_id), fork.position], *fork.branch.lineage]
        )
        row.branch = branch
        said += say(row, f"Another way {number}", "An answer", at=NOW + timedelta(minutes=number + 1))
        if chance.random() < 0.5:
            Compaction.objects.create(
                conversation=row, branch=branch, first_position=0, last_position=fork.position,
                message_count=fork.position + 1, kept_count=1, status="done", strategy="checkpoint",
                summary=f"Of branch {number}",
                usage={"input_tokens": 5, "output_tokens": 2, "cost": chance.choice([None, 0.25])},
                created_at=NOW + timedelta(seconds=number),
                finished_at=NOW + timedelta(seconds=9),
            )  # fmt: skip
    row.branch = chance.choice(said).branch
    row.save(update_fields=["branch"])
    show_files(user, said, chance)
    offload = ConversationOffloads().offload_tool_result(
        str(row.pk), ToolResultPart("c1", "http_fetch", f"A long page {seed}. " * 20)
    )
    result = {
        "type": "tool_result",
        "call_id": "c1",
        "name": "http_fetch",
        "text": "A long…",
        "is_error": False,
    }
    said[-1].role, said[-1].parts = "tool", [result | {"offload_ref": offload}]
    said[-1].forgotten_at = clock.now() if chance.random() < 0.3 else None
    said[-1].save()
    return row


def show_files(user: User, said: list[Message], chance: random.Random) -> None:
    for message in chance.sample(said[:-1], 2):
        if chance.random() < 0.5:
            file = store_image(
                user=user, name=f"gull  {'long ' * 47}.jpg", content=picture(chance.randint(0, 250))
            )
            part = {"type": "image", "width": file.width, "height": file.height}
        else:
            file = store_upload(
                user=user, name=" notes  of  May.txt", content=f"Notes {chance.random()}".encode()
            )
            part = {"type": "file", "name": file.name, "size_bytes": file.size_bytes}
        message.parts = [*message.parts, part | {"file_id": str(file.pk), "mime_type": file.mime_type}]
        message.save()
        message.attachments.add(file)


def remember(user: User, chats: list[Conversation], seed: int) -> None:
    chance = random.Random(seed)
    for number in range(chance.randint(1, 4)):
        at = NOW + timedelta(minutes=number)
        entry = add_entry(user=user, text=f"Remembered {number}", now=at)
        chat = chance.choice(chats)
        first, last = chat.messages.order_by("position")[:2]
        if chance.random() < 0.7:
            MemoryEntry.objects.filter(pk=entry.pk).update(
                conversation=chat, first_message_id=first.pk, last_message_id=last.pk, author="extraction",
                state=chance.choice(["kept", "proposed"]),
            )  # fmt: skip
        if chance.random() < 0.5:
            edit_entry(user=user, entry_id=str(entry.pk), text=f"Remembered {number}, better")
        note_sources(
            entry_ids=[str(entry.pk)],
            conversation=chat,
            first_message_id=first.pk,
            last_message_id=last.pk,
            at=at,
        )
        write_profile(user_id=user.pk, text=f"- Line {number}", now=at)
    version = ProfileVersion.objects.get(profile=user.pk, number=1)
    version.sources = [[str(entry.pk)]]
    version.save()


@pytest.fixture(autouse=True)
def _model(db: None) -> None:
    """Store a model, because context policies are validated against it."""
    ModelConfig.objects.create(name="Demo", kind=ModelConfig.Kind.DEMO, is_default=True)


@pytest.mark.mechanism("contract.lossless")
@settings(
    max_examples=2,
    deadline=None,
    phases=[Phase.generate],  # shrinking the seed explains nothing
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 10_000))
def test_export_import_export_of_an_account_is_equal(tmp_path: Path, seed: int) -> None:
    alice, bob = (
        User.objects.create_user(email=f"{name}-{new_id()}@example.com", password=None)
        for name in ("alice", "bob")
    )
    chats = [grow_conversation(alice, seed + number) for number in range(3)]
    folder = Folder.objects.create(user=alice, name="Birds", instructions="Be brief.", created_at=NOW)
    Conversation.objects.filter(pk=chats[0].pk).update(folder=folder)
    # Add a file that only the folder has, and some that messages show, too.
    store_upload(user=alice, name="Notes of the  folder.csv", content=b"a,b").folders.add(folder)
    for shown in Attachment.objects.filter(user=alice).exclude(messages=None).order_by("pk")[::2]:
        shown.folders.add(folder)
    remember(alice, chats, seed)
    agent = give_agent_and_prompt(alice)
    Conversation.objects.filter(pk=chats[1].pk).update(agent=agent)
    new_conversation(alice, "Nothing said yet", NOW)
    Folder.objects.create(user=alice, name="Empty", agent=agent, created_at=NOW)
    first = export_of(alice, tmp_path / "first.zip")
    report = take_in(bob, first)
    assert (report.problems, dict(report.left_out)) == ([], {})
    assert_equal(export_of(bob, tmp_path / "second.zip"), first)
    again = take_in(bob, first)
    assert (again.known, again.conversations) == (4, 0)
    assert_equal(export_of(bob, tmp_path / "third.zip"), first)
    assert take_in(alice, first).known == 4
    assert_equal(export_of(alice, tmp_path / "fourth.zip"), first)


def give_agent_and_prompt(user: User) -> Agent:
    Prompt.objects.create(owner=user, name="brief", about="Short", text="Say it in one line: 'Ja'.\nNow.")
    Prompt.objects.filter(owner=user).update(created_at=NOW)
    return Agent.objects.create(
        owner=user, name="Librarian", mode="plan", system_prompt="Cite: sources.\n- always", temperature=0.5,
        model=ModelConfig.objects.get(), greeting="Ahoy", tools=["memory_search"],
        context_policy={"recall_budget": 100},
        hooks=[{"id": "long", "on": "turn_end", "condition": {"type": "message_count", "threshold": 5},
                "action": {"type": "inject_message", "message": "{turn} turns"}}],
    )  # fmt: skip


def test_existing_agents_and_prompts_stay_and_invalid_ones_are_counted(
    archive: Path, alice: User, bob: User
) -> None:
    give_agent_and_prompt(alice)
    path = export_of(alice, archive)
    with zipfile.ZipFile(path, "a") as written:
        written.writestr("agents/odd.yaml", "name: [")
        written.writestr("agents/other.yaml", "name: Other\nmodel: No such model\ntools: [no_such_tool]")
        written.writestr("agents/../escaped.yaml", "name: Escaped")
    good = {"name": "new", "text": "x\0y", "created_at": "2025-01-01T00:00:00Z", "is_mine": False}
    odd = [
        good,
        "x",
        good | {"name": "help"},
        good | {"name": "No Name"},
        good | {"created_at": "9999-01-01"},
    ]
    path = changed(path, prompts=odd)
    Agent.objects.create(owner=bob, name="Librarian", system_prompt="Bob's own")
    report = take_in(bob, path)
    assert report.left_out["agents that cannot be read"] == 1
    assert report.left_out["agent settings not available here"] == 2
    assert report.left_out["prompts that cannot be read"] == 4
    named = dict(Agent.objects.filter(owner=bob).values_list("name", "system_prompt"))
    assert named == {"Librarian": "Bob's own", "Other": ""}
    assert list(Prompt.objects.values_list("owner", "name", "text")) == [
        (alice.pk, "brief", "Say it in one line: 'Ja'.\nNow."),
        (bob.pk, "new", "x\ufffdy"),
    ]


@pytest.fixture
def archive(alice: User, tmp_path: Path) -> Path:
    chat = grow_conversation(alice, 1)
    remember(alice, [chat], 1)
    return export_of(alice, tmp_path / "alice.zip")


def changed(archive: Path, **files: Any) -> Path:
    """Return a copy of the archive with JSON files replaced, named without folder and extension."""
    path = archive.with_name("changed.zip")
    with zipfile.ZipFile(archive) as before, zipfile.ZipFile(path, "w") as after:
        for name in before.namelist():
            stem = Path(name).stem
            after.writestr(name, json.dumps(files[stem]) if stem in files else before.read(name))
    return path


def test_an_archive_repacked_by_macos_is_imported_in_full(archive: Path, bob: User) -> None:
    path = archive.with_name("again.zip")
    with zipfile.ZipFile(archive) as before, zipfile.ZipFile(path, "w") as after:
        after.writestr("palimpsest export/", b"")
        for name in before.namelist():
            folder, _, last = name.rpartition("/")
            after.writestr(f"palimpsest export/{name}", before.read(name))
            after.writestr(f"__MACOSX/palimpsest export/{folder}/._{last}", b"Mac OS X")
    report = take_in(bob, path)
    assert (report.problems, dict(report.left_out)) == ([], {})
    assert_equal(export_of(bob, archive.with_name("bob.zip")), archive)


def test_an_existing_profile_is_not_overwritten(archive: Path, bob: User) -> None:
    write_profile(user_id=bob.pk, text="- Bob's own", now=NOW)
    assert take_in(bob, archive).left_out == {"profiles, because you have one already": 1}
    assert bob.profile.text == "- Bob's own"


def test_tool_results_are_stored_with_their_chat_even_if_the_import_dies(
    alice: User, bob: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grow_conversation(alice, 1)
    path = export_of(alice, tmp_path / "alice.zip")

    class Died(BaseException):
        pass

    def stores_and_dies(**values: Any) -> None:
        store_sources(**values)
        raise Died

    with monkeypatch.context() as patched:
        patched.setattr(importer, "store_sources", stores_and_dies)
        with pytest.raises(Died):
            take_in(bob, path)
    take_in(bob, path)
    stored = Offload.objects.get(conversation__user=bob)
    named = Message.objects.get(conversation=stored.conversation_id, role="tool")
    assert named.parts[0]["offload_ref"] == str(stored.pk)
    assert read_content(stored).decode().startswith("A long page 1. A long")


def test_memory_of_a_chat_forgotten_during_the_import_is_not_imported(
    alice: User, bob: User, tmp_path: Path
) -> None:
    """This includes its entries and the profile lines that were derived from them."""
    chats = {name: new_conversation(alice, name, NOW) for name in ("kept", "gone")}
    lines, sources = [], []
    for name, chat in chats.items():
        first, last = say(chat, name, "Noted.", at=NOW)
        entry = add_entry(user=alice, text=f"Of the {name} one", now=NOW)
        MemoryEntry.objects.filter(pk=entry.pk).update(
            conversation=chat, first_message_id=first.pk, last_message_id=last.pk, author="extraction"
        )
        lines.append(f"- {name}")
        sources.append([str(entry.pk)])
    write_profile(user_id=alice.pk, text="\n".join(lines), now=NOW)
    ProfileVersion.objects.filter(profile=alice.pk).update(sources=sources)
    path = export_of(alice, tmp_path / "alice.zip")
    gone = key_of_id("palimpsest", str(chats["gone"].pk))
    assert import_file(user=bob, path=path, report=Report(), forgotten=lambda: frozenset({gone}))
    assert [row.title for row in Conversation.objects.filter(user=bob)] == ["kept"]
    assert [row.text for row in MemoryEntry.objects.filter(user=bob)] == ["Of the kept one"]
    assert bob.profile.text == "- kept"


def test_imported_entries_need_no_consolidation_and_no_daily_file_update(archive: Path, bob: User) -> None:
    take_in(bob, archive)
    assert not MemoryEntry.objects.filter(user=bob, consolidated_at=None).exists()
    assert not MemoryEntry.objects.filter(user=bob, written_at=None).exists()


def test_unreadable_entries_are_counted_and_the_rest_is_imported(archive: Path, bob: User) -> None:
    with zipfile.ZipFile(archive) as before:
        [good, *_] = json.loads(before.read("memory/entries.json"))
    bad = [{}, "entry", good | {"day": "1000-01-01"}, good | {"text": ""}, good | {"created_at": "yesterday"}]
    report = take_in(bob, changed(archive, entries=[*bad, good]))
    assert report.left_out["entries of the memory and folders that cannot be read"] == 5
    assert MemoryEntry.objects.get(user=bob).text == good["text"]


def test_ids_in_another_spelling_name_the_same_messages(archive: Path, alice: User, bob: User) -> None:
    with zipfile.ZipFile(archive) as before:
        rows = json.loads(before.read("memory/entries.json"))
    names = ("conversation_id", "first_message_id", "last_message_id")
    spelled = [row | {name: row[name] and row[name].upper() for name in names} for row in rows]
    path = changed(archive, entries=spelled)
    take_in(bob, path)
    assert_equal(export_of(bob, archive.with_name("bob.zip")), archive)
    MemoryEntry.objects.filter(user=alice).delete()
    take_in(alice, path)  # into the same conversation
    assert MemoryEntry.objects.filter(user=alice, author="extraction").exclude(first_message_id=None).exists()


def test_an_archive_with_ids_in_another_spelling_loses_nothing(archive: Path, bob: User) -> None:
    path = archive.with_name("spelled.zip")
    with zipfile.ZipFile(archive) as before, zipfile.ZipFile(path, "w") as after:
        for name in before.namelist():
            content = before.read(name)
            if name.endswith(".json"):
                content = ID.sub(lambda found: found[0].upper(), content.decode()).encode()
            after.writestr(ID.sub(lambda found: found[0].upper(), name), content)
    assert not take_in(bob, path).left_out
    assert_equal(export_of(bob, archive.with_name("bob.zip")), archive)


@pytest.mark.parametrize("name", ["memory/entries.json", "folders.json", "prompts.json"])
def test_a_file_with_too_many_rows_is_refused(tmp_path: Path, bob: User, name: str) -> None:
    """Twenty million rows fit the limit in bytes, but reading them takes 1.6 GB and outlasts the worker's lease."""
    path = tmp_path / "many.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("account.json", json.dumps({"format": "palimpsest-account", "version": 1}))
        archive.writestr("conversations/a.json", "{}")
        archive.writestr(name, "[0" + ",0" * MAX_IMPORTED + "]")
    with pytest.raises(Unreadable, match="too many rows"):
        take_in(bob, path)


def test_ids_in_an_archive_give_no_access_to_rows_of_other_users(
    archive: Path, alice: User, bob: User, charlie: User
) -> None:
    """Charlie imports an archive that contains ids of alice's rows."""
    of_alice = MemoryEntry.objects.filter(user=alice).first()
    with zipfile.ZipFile(archive) as before:
        [entry, *_] = json.loads(before.read("memory/entries.json"))
        chat = next(name for name in before.namelist() if name.startswith("conversations/"))
    entry |= {
        "shared_memory_of": "Librarian",
        "conversation_id": str(Conversation.objects.get(user=alice).pk),
    }
    path = changed(archive, entries=[entry], **{Path(chat).stem: {"format": "palimpsest", "messages": []}})
    take_in(charlie, path)
    taken = MemoryEntry.objects.get(user=charlie)
    assert (taken.conversation, taken.scope, taken.first_message_id) == (None, None, None)
    assert of_alice is not None
    of_alice.refresh_from_db()
    assert of_alice.user == alice
    assert not Attachment.objects.filter(user=charlie).exists()


def test_an_old_export_does_not_restore_forgotten_sentences(alice: User, bob: User, tmp_path: Path) -> None:
    entry = add_entry(user=alice, text="My favourite colour is teal.", now=NOW)
    edit_entry(user=alice, entry_id=str(entry.pk), text="My favourite colour is celadon. It rains in Lund.")
    add_entry(user=alice, text="My favourite colour is celadon.", now=NOW)
    write_profile(user_id=alice.pk, text="- My favourite colour is celadon.\n- It rains in Lund.", now=NOW)
    say(new_conversation(alice), "Good morning.", "Hello.")
    path = export_of(alice, tmp_path / "old.zip")
    store_tombstones(make_tombstones(bob.pk, ["My favourite colour is celadon."], clock.now()), for_good=True)
    for _ in range(2):  # the file may be imported once more
        assert not take_in(bob, path).left_out
        [left] = MemoryEntry.objects.filter(user=bob)
        assert left.text == "It rains in Lund."
        assert [row.text for row in left.revisions.all()] == ["My favourite colour is teal."]
        assert [row.text for row in ProfileVersion.objects.filter(profile=bob.pk)] == ["- It rains in Lund."]
