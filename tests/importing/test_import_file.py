"""Imports of the export files of other programs."""

from __future__ import annotations

import contextlib
import io
import json
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from chatapp.accounts.models import User
from chatapp.conversations.models import Conversation, Message
from chatapp.conversations.selectors.conversations import idle_conversations
from chatapp.features.importing import importer, stream, tree
from chatapp.features.importing.importer import Report, import_file
from chatapp.features.importing.values import Unreadable
from chatapp.forgetting.models import Removal
from chatapp.forgetting.services import forget_whole_conversation
from chatapp.forgetting.trash.services import move_to_trash, restore
from chatapp.operations import clock
from chatapp.operations.database.work_budget import Budget, Pace
from tests.importing.exports import chatgpt, claude, gpt_node, librechat, open_webui

ONE_BY_ONE = Pace(seconds=float("inf"), budget=Budget(rows=1))


@pytest.fixture
def alice_client(api_client: Callable[..., Client], alice: User) -> Client:
    return api_client(alice)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "export.json"


def write(file: Path, *items: Any) -> Path:
    file.write_text(json.dumps(list(items)))
    return file


def take_in(user: User, path: Path) -> Report:
    report = Report()
    assert import_file(user=user, path=path, report=report)
    return report


def only(user: User) -> Conversation:
    return Conversation.objects.get(user=user)


def shown(client: Client, conversation: Conversation) -> list[tuple[str, Any]]:
    items = client.get(f"/api/v1/conversations/{conversation.pk}/messages").json()["items"]
    return [(item["role"], item["content"]) for item in items]


@pytest.mark.mechanism("ours.import")
def test_a_chatgpt_import_keeps_all_branches_and_shows_the_open_one(
    alice: User, alice_client: Client, file: Path
) -> None:
    report = take_in(alice, write(file, chatgpt()))
    assert (report.source, report.conversations, report.messages) == ("chatgpt", 1, 6)
    assert report.left_out == {"steps of tools": 1}
    chat = only(alice)
    assert (chat.title, chat.archived, chat.created_at.timestamp()) == (
        "Gulls and terns",
        True,
        1_700_000_000,
    )
    items = alice_client.get(f"/api/v1/conversations/{chat.pk}/messages").json()["items"]
    assert [item["content"] for item in items] == ["Where do terns sleep?", "In colonies.", "Together?"]
    texts = {str(row.pk): row.parts[0]["text"] for row in Message.objects.all()}
    siblings = [[texts[one] for one in item["siblings"] or ()] for item in items]
    assert siblings == [
        ["Where do gulls sleep?", "Where do terns sleep?"],
        ["On sand.", "In colonies."],
        [],
    ]
    other = Message.objects.get(parts__0__text="On roofs.")
    assert (other.model_name, other.branch_id == chat.branch_id) == ("gpt-x", False)
    assert other.parent is not None
    assert other.parent.branch_id == other.branch_id


def test_the_formats_of_claude_open_webui_and_librechat_are_detected(
    alice: User, alice_client: Client, file: Path
) -> None:
    report = take_in(alice, write(file, claude(), open_webui(), librechat()))
    assert (report.conversations, report.problem_count) == (3, 0)
    chats = {chat.title: chat for chat in Conversation.objects.all()}
    knots, stars, bread = (shown(alice_client, chats[title]) for title in ("Knots", "Stars", "Bread"))
    assert knots == [
        ("user", "Which knot for a fender?\n\n[Attached file: list.txt]\nbowline, clove hitch"),
        ("assistant", "A clove hitch.\n\n[A file that was not imported: knot.png]"),
    ]
    assert stars == [("user", "Name a star."), ("assistant", "Vega.")]
    assert chats["Stars"].pinned
    assert chats["Stars"].branches.count() == 2
    assert bread == [("user", "What goes into the bread?"), ("assistant", "Rye, water, salt.")]
    assert report.left_out == {"images and other files": 1, "steps of tools, and reasoning": 3}


def test_a_chat_in_the_trash_is_reported_as_a_problem(alice: User, file: Path) -> None:
    write(file, chatgpt(), claude())
    assert take_in(alice, file).conversations == 2
    chat, now = Conversation.objects.get(title="Gulls and terns"), clock.now()
    move_to_trash(alice, str(chat.pk), days=30, now=now)
    report = take_in(alice, file)
    assert (report.conversations, report.known, report.problem_count) == (0, 1, 1)
    assert "in your trash" in report.problems[0]["reason"]
    restore(alice, str(chat.pk), now=now)
    report = take_in(alice, file)
    assert (report.known, report.problem_count) == (2, 0)


def test_chatgpt_attachments_beside_the_text_are_named_and_counted(
    alice: User, alice_client: Client, file: Path
) -> None:
    image = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-1"}
    nodes = [
        gpt_node(
            "q",
            None,
            "user",
            content={"content_type": "multimodal_text", "parts": [image, "What are these?"]},
            metadata={
                "attachments": [
                    {"id": "file-1", "name": "gull.png", "mime_type": "image/png"},
                    {"id": "file-2", "name": "terns.pdf", "mime_type": "application/pdf"},
                ]
            },
        ),
        gpt_node("a", "q", "assistant", "Birds."),
        gpt_node("q2", "a", "user", "", metadata={"attachments": [{"id": "file-3"}, "odd"]}),
    ]
    report = take_in(alice, write(file, chatgpt(mapping={node["id"]: node for node in nodes})))
    assert [text for _, text in shown(alice_client, only(alice))] == [
        "[A file that was not imported]\nWhat are these?\n\n[A file that was not imported: terns.pdf]",
        "Birds.",
        "[A file that was not imported: file]",
    ]
    assert report.left_out == {"images and other files": 3}


def test_citation_marks_become_links_or_are_removed(alice: User, alice_client: Client, file: Path) -> None:
    marks = ["\ue200cite\ue202turn0search3\ue201", "\ue200cite\ue202turn0search4\ue201"]
    link = {
        "matched_text": marks[0],
        "alt": "([Terns](https://example.com/terns))",
        "type": "grouped_webpages",
    }
    nodes = [
        gpt_node("q", None, "user", f"What is {marks[1]}?"),
        gpt_node(
            "a",
            "q",
            "assistant",
            f"On sand. {marks[0]} In colonies {marks[1]}. An open one: \ue200cite",
            metadata={"content_references": [link, {"matched_text": " ", "alt": "all of them"}, "odd"]},
        ),
    ]
    report = take_in(alice, write(file, chatgpt(mapping={node["id"]: node for node in nodes})))
    assert [text for _, text in shown(alice_client, only(alice))] == [
        f"What is {marks[1]}?",
        "On sand. ([Terns](https://example.com/terns)) In colonies. An open one: \ue200cite",
    ]
    assert report.left_out == {"citations": 1}


def test_imported_system_messages_are_quoted(alice: User, alice_client: Client, file: Path) -> None:
    nodes = [
        gpt_node("s", None, "system", "Obey.\nAlways."),
        gpt_node("q", "s", "user", "Hello?"),
    ]
    take_in(alice, write(file, chatgpt(mapping={node["id"]: node for node in nodes}, current_node="q")))
    [told, asked] = shown(alice_client, only(alice))
    assert told == ("user", "(A system message of the imported chat, quoted:)\n\n> Obey.\n> Always.")
    assert asked == ("user", "Hello?")


def test_a_single_conversation_and_a_zip_can_be_imported(alice: User, tmp_path: Path) -> None:
    alone = tmp_path / "one.json"
    alone.write_text(json.dumps(librechat()))
    assert take_in(alice, alone).conversations == 1
    packed = tmp_path / "export.zip"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("user.json", "{}")
        archive.writestr("export/conversations.json", json.dumps([chatgpt(), claude()]))
    assert take_in(alice, packed).conversations == 2


def test_a_second_import_of_a_file_adds_only_deleted_conversations(alice: User, file: Path) -> None:
    path = write(file, chatgpt(), claude(), claude(uuid="", name="No id"))
    assert take_in(alice, path).conversations == 3
    again = take_in(alice, path)
    assert (again.conversations, again.known, Conversation.objects.count()) == (0, 3, 3)
    forget_whole_conversation(alice, Conversation.objects.get(title="Knots").pk, now=clock.now())
    assert take_in(alice, path).conversations == 1


def test_another_user_can_import_the_same_file(alice: User, bob: User, file: Path) -> None:
    path = write(file, chatgpt())
    assert take_in(alice, path).conversations == take_in(bob, path).conversations == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.mechanism("ours.import")
def test_an_import_after_a_crash_adds_the_rest(alice: User, file: Path, monkeypatch: Any) -> None:
    path = write(file, *(chatgpt(conversation_id=f"c{number}", title=f"T{number}") for number in range(5)))
    report = Report()
    assert not import_file(
        user=alice, path=path, report=report, tell=lambda told, _: told.conversations < 2, pace=ONE_BY_ONE
    )
    assert Conversation.objects.count() == 2

    class Killed(BaseException):
        pass

    def die(*_: Any, **__: Any) -> None:
        raise Killed

    with monkeypatch.context() as patched:  # die after storing the rows of the third, before completing it
        patched.setattr("chatapp.conversations.actions.imports._complete_import", die)
        with pytest.raises(Killed):
            import_file(user=alice, path=path, report=Report(), pace=ONE_BY_ONE)
    assert (Conversation.objects.count(), Removal.objects.count()) == (2, 1), "half of it is seen by nobody"
    went_on = take_in(alice, path)
    assert (went_on.conversations, went_on.known) == (3, 2)
    assert sorted(Conversation.objects.values_list("title", flat=True)) == ["T0", "T1", "T2", "T3", "T4"]


def test_unreadable_conversations_are_reported_by_index_and_the_rest_is_imported(
    alice: User, file: Path
) -> None:
    empty = chatgpt(conversation_id="e", title="Empty", mapping={"r": gpt_node("r", None)})
    path = write(file, "text", {"a": 1}, empty, chatgpt(mapping=[]), chatgpt())
    report = take_in(alice, path)
    assert report.conversations == 1
    assert [(each["index"], each["title"]) for each in report.problems] == [
        (0, ""),
        (1, ""),
        (2, "Empty"),
        (3, ""),
    ]
    assert report.problems[2]["reason"] == "It has no messages with text."


def test_a_truncated_file_is_imported_up_to_the_cut(alice: User, file: Path) -> None:
    whole = json.dumps([chatgpt(), claude()])
    file.write_text(whole[:-40])
    report = take_in(alice, file)
    assert (report.conversations, report.problem_count) == (1, 1)
    assert report.problems[0]["index"] == 1
    assert report.problems[0]["reason"].startswith(
        "The rest of the file is not valid JSON: the file is cut off"
    )


def test_both_parsers_read_a_list_alike(file: Path, monkeypatch: Any) -> None:
    one, other = json.dumps(chatgpt(title="Möwe \U0001f426")), json.dumps(claude(), ensure_ascii=False)
    sources = [
        f" [ {one} ,\n{other}, {other}] ",
        f"[{one}, null, {one}]",
        f"[{one} {one}]",
        f"[{one}, {one},]",
        f"[{one}, {one}] x",
        f'[{one}, {{"a": NaN}}, {one}]',
        f"[{one}, [{one}], {one}",
        f"[{one}, {one}",
        one,
        "[]",
    ]
    contents = [source.encode() for source in sources]
    contents += [f"[{other}, {other}".encode()[:-1] + b"\xe9", b"[" + other.encode() + b', {"a": "\xff"}]']
    for content in contents:
        file.write_bytes(content)
        with monkeypatch.context() as patched:
            patched.setattr(stream, "READ_AT_ONCE", 777)
            quickly = list(stream.entries(file, stream.Progress()))
        with monkeypatch.context() as patched:
            patched.setattr(stream._Ahead, "next_object", lambda _: None)
            value_by_value = list(stream.entries(file, stream.Progress()))
        assert quickly == value_by_value, content[:200]


@pytest.mark.django_db(transaction=True)
def test_a_chat_stored_by_a_concurrent_import_is_not_duplicated(
    alice: User, file: Path, monkeypatch: Any
) -> None:
    path = write(file, *(chatgpt(conversation_id=f"c{number}", title=f"T{number}") for number in range(3)))
    take_in(alice, write(file.with_name("other.json"), chatgpt(conversation_id="c1", title="T1")))
    monkeypatch.setattr(importer, "known_conversations", lambda *_: {})  # the lookup misses the other import
    report = take_in(alice, path)
    assert (report.conversations, report.known) == (2, 1)
    assert sorted(Conversation.objects.values_list("title", flat=True)) == ["T0", "T1", "T2"]
    assert Message.objects.count() == 18


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"12", b"no json"], ids=repr)
def test_a_file_that_is_no_export_is_reported(alice: User, file: Path, content: bytes) -> None:
    file.write_bytes(content)
    report = take_in(alice, file)
    assert (report.problem_count, Conversation.objects.count()) == (1, 0)


def test_a_zip_without_conversations_is_refused(alice: User, file: Path) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("photo.txt", "hello")
    with pytest.raises(Unreadable, match=r"no conversations\.json"):
        take_in(alice, file)


def test_a_zip_that_lists_too_many_files_is_refused_before_its_list_is_read(alice: User, file: Path) -> None:
    """Reading the directory of a 2 GB zip can take 20 GB of memory and kill one worker after another."""
    small = io.BytesIO()
    with zipfile.ZipFile(small, "w") as archive:
        archive.writestr("a", "")
    at, end = (small.getvalue().index(mark) for mark in (b"PK\x01\x02", b"PK\x05\x06"))
    one = small.getvalue()[at:end]
    count = stream.MAX_LIST_BYTES // len(one) + 1
    size = count * len(one)
    # The end of a Zip64 file: the 64-bit end record, its locator and the 32-bit end record.
    ends = [
        struct.pack("<4sQ2H2I4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, size, 0),
        struct.pack("<4sIQI", b"PK\x06\x07", 0, size, 1),
        struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0),
    ]
    file.write_bytes(one * count + b"".join(ends))
    with pytest.raises(Unreadable, match="too many files"):
        take_in(alice, file)


ACCOUNT = {
    "account.json": '{"format": "palimpsest-account", "version": 1}',
    "memory/entries.json": "[]",
    "conversations/a.json": "{}",
}


def damaged(content: bytes, how: str, name: str) -> bytes:
    """Return the zip with the file `name`, or the directory of the zip, damaged."""
    changed = bytearray(content)
    here, listed = content.index(b"PK\x03\x04"), content.index(b"PK\x01\x02")
    while content[here + 30 : here + 30 + len(name)] != name.encode():
        here = content.index(b"PK\x03\x04", here + 1)
    while content[listed + 46 : listed + 46 + len(name)] != name.encode():
        listed = content.index(b"PK\x01\x02", listed + 1)
    match how:
        case "encrypted":
            changed[here + 6] |= 1
            changed[listed + 8] |= 1
        case "packed in an unknown way":
            changed[here + 8] = changed[listed + 10] = 99
        case "with other bytes":
            at = here + 30 + len(name)
            changed[at : at + 12] = bytes(byte ^ 0xFF for byte in changed[at : at + 12])
        case "with its table elsewhere":
            end = content.rindex(b"PK\x05\x06")
            changed[end + 16 : end + 20] = b"\xff\xff\xff\x7f"
    return bytes(changed)


@pytest.mark.parametrize("packing", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
@pytest.mark.parametrize("name", ["conversations.json", "account.json"])
def test_a_zip_with_a_false_file_size_uses_no_more_memory(
    alice: User, file: Path, packing: int, name: str
) -> None:
    """A gigabyte of spaces shrinks to a megabyte with deflate, and to less than a kilobyte with bzip2."""
    with zipfile.ZipFile(file, "w", packing) as archive:
        archive.writestr(name, ACCOUNT["account.json"] + " " * 24 * 2**20)
    content = bytearray(file.read_bytes())
    at = content.index(b"PK\x01\x02")
    content[at + 24 : at + 28] = struct.pack("<I", 100)
    file.write_bytes(content)
    tracemalloc.start()
    try:
        with contextlib.suppress(Unreadable):
            take_in(alice, file)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 20 * 2**20


@pytest.mark.parametrize("packing", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
@pytest.mark.parametrize(
    "how", ["encrypted", "packed in an unknown way", "with other bytes", "with its table elsewhere"]
)
@pytest.mark.parametrize("name", ["conversations.json", "account.json", "memory/entries.json"])
def test_a_damaged_zip_is_reported_in_a_sentence(
    alice: User, file: Path, packing: int, how: str, name: str
) -> None:
    files = ACCOUNT if name != "conversations.json" else {name: json.dumps([claude()] * 20)}
    with zipfile.ZipFile(file, "w", packing) as archive:
        for each, content in files.items():
            archive.writestr(each, content)
    file.write_bytes(damaged(file.read_bytes(), how, name))
    try:
        said = [problem["reason"] for problem in take_in(alice, file).problems]
    except Unreadable as unreadable:
        said = [str(unreadable)]
    assert any(" cannot be unpacked: " in each for each in said), said
    assert not Conversation.objects.exists()


def test_imports_enforce_length_size_and_depth_limits(
    alice: User, file: Path, settings: Any, monkeypatch: Any
) -> None:
    settings.MAX_MESSAGE_CHARS = 30
    monkeypatch.setattr(stream, "MAX_DEPTH", 200)
    monkeypatch.setattr(stream, "MAX_COST", 60_000)
    odd = [
        gpt_node("a", None, "user", "Kept.", 9e18),
        gpt_node("b", "a", "assistant", "x" * 31),
        gpt_node("c", "b", "user", "After a long one.\x00", -5.0),
        gpt_node("d", "d", "user", "In a circle."),
    ]
    strange = chatgpt(title="T" * 5_000, create_time=-1, update_time=1e300)
    strange |= {"mapping": {node["id"]: node for node in odd}, "current_node": "nowhere"}
    large = chatgpt(conversation_id="large", title="y" * 60_000)
    deep = '{"conversationId": "deep", "messages": ' + "[" * 300 + "]" * 300 + "}"
    file.write_text(f"[{json.dumps(strange)}, {json.dumps(large)}, {deep}]")
    report = take_in(alice, file)
    chat = only(alice)
    texts = chat.messages.order_by("position").values_list("parts__0__text", flat=True)
    assert set(texts) == {"Kept.", "In a circle.", "After a long one.\ufffd"}
    assert len(chat.title) == 200
    assert chat.created_at > clock.now() - timedelta(minutes=10), "a date that cannot be is none"
    assert report.left_out["impossible dates"] >= 3
    assert report.left_out["messages of more than 30 characters"] == 1
    assert [(each["index"], each["reason"]) for each in report.problems] == [
        (1, "It is too large."),
        (2, "It is too large."),
    ]


@pytest.mark.parametrize("endless", ['"{}"'.format("x" * 50_000), "[0{}]".format(",0" * 25_000)])
@pytest.mark.parametrize("in_zip", [False, True])
def test_reading_a_file_stops_at_a_conversation_without_an_end(
    alice: User, file: Path, monkeypatch: Any, endless: str, in_zip: bool
) -> None:
    monkeypatch.setattr(stream, "READ_AT_ONCE", 1_000)
    monkeypatch.setattr(stream, "MAX_COST", 200_000)
    monkeypatch.setattr(stream, "MAX_ENTRY_BYTES", 10_000)
    content = f'[{json.dumps(claude())}, {{"values": {endless}}}, {json.dumps(claude(uuid="after"))}]'
    if in_zip:
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("conversations-1.json", content)
            archive.writestr("conversations-2.json", json.dumps([claude(uuid="other")]))
    else:
        file.write_text(content)
    report = take_in(alice, file)
    assert report.conversations == (2 if in_zip else 1)
    assert [(each["index"], each["reason"]) for each in report.problems] == [
        (1, "It is too large, and the rest of the file was not read.")
    ]


def test_only_the_shown_branch_of_too_many_is_kept(alice: User, file: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(tree, "MAX_BRANCHES", 3)
    report = take_in(alice, write(file, chatgpt(), open_webui()))
    assert report.conversations == 2
    chat = Conversation.objects.get(title="Gulls and terns")
    assert (chat.messages.count(), chat.branches.count()) == (6, 3)
    monkeypatch.setattr(tree, "MAX_BRANCHES", 2)
    report = take_in(alice, write(file, chatgpt(conversation_id="more", title="More")))
    chat = Conversation.objects.get(title="More")
    assert (chat.messages.count(), chat.branches.count()) == (3, 1)
    assert report.left_out["versions that are not shown, in chats with too many branches"] == 3


def test_a_long_chain_of_nested_answers_is_read(alice: User, file: Path) -> None:
    nested = [
        f'{{"messageId": "m{number}", "text": "Step {number}", "children": [' for number in range(1_500)
    ]
    messages = "[" + "".join(nested) + "]}" * len(nested) + "]"
    file.write_text(f'{{"conversationId": "deep", "messages": {messages}}}')
    assert take_in(alice, file).messages == 1_500
    assert Conversation.objects.get().branches.count() == 1


def test_imported_chats_keep_their_dates_and_retention_counts_from_the_import(
    alice: User, file: Path
) -> None:
    take_in(alice, write(file, claude(), chatgpt()))
    chats = Conversation.objects.order_by("-last_activity_at")
    assert [chat.title for chat in chats] == ["Knots", "Gulls and terns"], "the newer one first"
    days = [f"{chat.last_activity_at:%Y-%m}" for chat in chats]
    assert days == ["2024-03", "2023-11"], "they stand under their own days"
    assert idle_conversations(clock.now() + timedelta(days=29), 30) == []
    assert len(idle_conversations(clock.now() + timedelta(days=31), 30)) == 2


def test_the_command_reports_what_it_imported(alice: User, file: Path) -> None:
    out = io.StringIO()
    path = write(file, chatgpt(), {"a": 1})
    call_command("import_conversations", alice.email, str(path), stdout=out)
    told = out.getvalue()
    assert "Imported 1 conversations with 6 messages of chatgpt." in told
    assert "Left out: steps of tools (1)." in told
    assert "number 2: It is not a conversation in a supported format." in told
    out = io.StringIO()
    call_command("import_conversations", alice.email, str(path), stdout=out)
    assert "1 were here already." in out.getvalue()


def test_the_command_explains_an_unknown_user_and_an_unreadable_file(alice: User, file: Path) -> None:
    with pytest.raises(CommandError, match="There is no user"):
        call_command("import_conversations", "nobody@example.com", str(file))
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("import_conversations", alice.email, str(file))
