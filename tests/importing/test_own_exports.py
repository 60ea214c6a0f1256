"""Our own exports of a conversation: after an import by another user, its export is equal except for ids."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from PIL import Image

from chatapp.accounts.models import User
from chatapp.compaction.models import Compaction
from chatapp.compaction.selectors import exported_compactions
from chatapp.conversations.export import json_pieces
from chatapp.conversations.models import Branch, Conversation, Message
from chatapp.features.importing.importer import Report, import_file
from chatapp.files.attachments import store_image
from chatapp.forgetting.trash.services import move_to_trash, restore
from chatapp.long_term.models import MemoryPause
from chatapp.long_term.selectors.pauses import pauses_of
from chatapp.operations import clock
from chatapp.operations.clock import iso_time
from tests.importing.exports import chatgpt

Clients = Callable[..., Client]
CALL = {"type": "tool_call", "call_id": "c1", "name": "clock", "arguments": "{}"}
RESULT = {"type": "tool_result", "call_id": "c1", "name": "clock", "text": "Noon.", "is_error": False}
REASONING = {"type": "reasoning", "text": "The clock knows."}
USAGE = {"input_tokens": 12, "output_tokens": 3, "cached_tokens": 0, "compaction_tokens": 0, "cost": 0.25}


def take_in(user: User, file: Path, *items: Any) -> Report:
    file.write_text(json.dumps(items))
    report = Report()
    assert import_file(user=user, path=file, report=report)
    return report


def exported(conversation: Conversation) -> dict[str, Any]:
    row = Conversation.objects.select_related("model", "agent", "scope", "branch", "user").get(
        pk=conversation.pk
    )
    return dict(json.loads("".join(json_pieces(row, exported_compactions))))


def without_ids(export: dict[str, Any]) -> Any:
    """Return the export with ids replaced by numbers in order of position, and without the fields that differ between
    copies, e.g. the time of the export."""
    named = {message["id"]: f"message {message['position']}" for message in all_messages(export)}
    named |= {branch: f"branch {number}" for number, branch in enumerate(branch_order(export))}
    text = json.dumps({key: value for key, value in export.items() if key not in OF_THE_COPY}, sort_keys=True)
    for own in (export["id"], *(each["id"] for each in export["compactions"])):
        text = text.replace(own, "own")
    for name, number in named.items():
        text = text.replace(name, number)
    return json.loads(text)


OF_THE_COPY = ("exported_at", "expires_at", "last_activity_at", "last_seq", "unread")


def all_messages(export: dict[str, Any]) -> list[dict[str, Any]]:
    return [*export["messages"], *export["other_versions"]]


def branch_order(export: dict[str, Any]) -> list[str]:
    ordered = sorted(all_messages(export), key=lambda each: each["position"])
    return list(dict.fromkeys(message["branch"] for message in ordered))


@pytest.fixture
def chat(alice: User, tmp_path: Path) -> Conversation:
    """Store a conversation with two versions of a question and two of an answer, a tool call, a pinned message, a
    stopped answer and a summary of the first shown message."""
    take_in(alice, tmp_path / "first.json", chatgpt())
    row = Conversation.objects.get(user=alice)
    by_text = {message.parts[0]["text"]: message for message in row.messages.all()}
    answer = by_text["In colonies."]
    answer.parts, answer.usage, answer.status = [REASONING, CALL], USAGE, Message.Status.STOPPED
    answer.save()
    last = by_text["Together?"]
    last.pinned, last.kind = True, Message.Kind.INJECTED
    last.save()
    assert row.branch is not None
    Message.objects.create(
        conversation=row, branch=row.branch, user=alice, parent=answer, position=6, role="tool",
        parts=[RESULT], created_at=clock.now().replace(microsecond=0),
    )  # fmt: skip
    Conversation.objects.filter(pk=row.pk).update(next_position=7)
    first = by_text["Where do terns sleep?"].position
    moment = clock.now()
    Compaction.objects.create(
        conversation=row, branch=row.branch, first_position=0, last_position=first, message_count=1,
        kept_count=3, status="done", strategy="checkpoint", summary="Terns are asked about.", tokens_before=9,
        tokens_after=5, summary_tokens=5, created_at=moment, finished_at=moment,
    )  # fmt: skip
    return row


@pytest.mark.mechanism("contract.lossless")
def test_export_import_export_is_equal(chat: Conversation, bob: User, tmp_path: Path) -> None:
    first = exported(chat)
    assert len(first["branches"]) == 3
    assert len(first["other_versions"]) == 3
    report = take_in(bob, tmp_path / "own.json", first)
    assert (report.problems, report.left_out) == ([], {})
    copy = Conversation.objects.get(user=bob)
    second = exported(copy)
    assert without_ids(second) == without_ids(first)
    assert copy.pk != chat.pk
    assert Branch.objects.filter(conversation=copy).count() == 3
    again = take_in(bob, tmp_path / "own.json", first)
    assert (again.known, again.conversations) == (1, 0)


def test_existing_conversations_are_not_duplicated_and_deleted_ones_return(
    chat: Conversation, alice: User, tmp_path: Path
) -> None:
    export = exported(chat)
    assert take_in(alice, tmp_path / "own.json", export).known == 1
    chat.delete()
    assert take_in(alice, tmp_path / "own.json", export).conversations == 1


def test_a_chat_in_the_trash_is_reported_instead_of_copied(
    chat: Conversation, alice: User, bob: User, tmp_path: Path
) -> None:
    export, now = exported(chat), clock.now()
    move_to_trash(alice, str(chat.pk), days=30, now=now)
    report = take_in(alice, tmp_path / "own.json", export)
    assert (report.conversations, report.known, report.problem_count) == (0, 0, 1)
    assert "in your trash" in report.problems[0]["reason"]
    assert not Conversation.objects.exists()
    # Another user gets a copy.
    assert take_in(bob, tmp_path / "own.json", export).conversations == 1
    restore(alice, str(chat.pk), now=now)
    assert take_in(alice, tmp_path / "own.json", export).known == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"version": 2}, "newer version"),
        ({"branches": {}}, "list its branches"),
        ({"branches": {"a": [["b"]]}}, "where its branches start"),
        ({"branches": {"a": [["b", 3]]}}, "an unknown branch"),
        ({"messages": [{"role": "robot", "status": "complete", "kind": "message"}]}, "unknown role"),
        (
            {"messages": [{"role": "user", "status": "complete", "kind": "message", "position": -1}]},
            "a number",
        ),
    ],
    ids=str,
)
def test_an_invalid_export_is_refused_with_a_reason(
    chat: Conversation, bob: User, tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    report = take_in(bob, tmp_path / "own.json", exported(chat) | change)
    assert not Conversation.objects.filter(user=bob).exists()
    [problem] = report.problems
    assert re.search(reason, problem["reason"]), problem


def test_characters_that_the_database_rejects_do_not_stop_an_import(
    chat: Conversation, bob: User, tmp_path: Path
) -> None:
    """PostgreSQL rejects NUL in any statement, even in the condition of a query."""
    export = exported(chat) | {"model": "a\0b", "agent": "a\0b"}
    export["compactions"][0]["fallback_reason"] = "It quoted \0 and \ud800."
    report = take_in(bob, tmp_path / "own.json", export, chatgpt())
    assert report.conversations == 2
    assert Compaction.objects.get(conversation__user=bob).fallback_reason == "It quoted \ufffd and \ufffd."


def test_file_ids_in_an_export_give_no_access_to_files_of_other_users(
    chat: Conversation, alice: User, bob: User, api_client: Clients, tmp_path: Path
) -> None:
    drawn = BytesIO()
    Image.new("L", (4, 4), 7).save(drawn, "PNG")
    file = store_image(user=alice, name="gull.png", content=drawn.getvalue())
    message = chat.messages.get(position=0)
    message.parts = [
        {"type": "image", "file_id": str(file.pk), "mime_type": "image/png", "width": 4, "height": 4}
    ]
    message.save()
    message.attachments.add(file)
    export = exported(chat)
    assert take_in(bob, tmp_path / "own.json", export).left_out == {"images and other files": 1}
    copied = Message.objects.get(user=bob, position=0)
    assert copied.parts == [{"type": "text", "text": "[A file that was not imported: gull.png]"}]
    assert not copied.attachments.exists()
    take_in(alice, tmp_path / "own.json", export | {"id": ""})
    mine = Message.objects.exclude(pk=message.pk).get(user=alice, position=0)
    assert mine.parts == message.parts
    assert list(mine.attachments.all()) == [file]


@pytest.mark.parametrize("where", ["here", "everywhere"])
def test_an_imported_copy_keeps_the_memory_pauses(
    chat: Conversation, alice: User, bob: User, tmp_path: Path, where: str
) -> None:
    said_at = chat.messages.order_by("position")[1].created_at
    moments = [said_at, said_at + timedelta(seconds=1)]
    pause = MemoryPause.objects.create(
        user=alice, conversation=chat if where == "here" else None, began_at=moments[0], ended_at=moments[1]
    )
    shape = exported(chat)
    take_in(bob, tmp_path / "chat.json", shape)
    copy = Conversation.objects.get(user=bob)
    assert [said_at for said_at in moments if pauses_of(bob.pk).covers(copy.pk, said_at)] == moments[:1]
    assert not pauses_of(bob.pk).covers(None, moments[0]), "of nothing else of bob's"
    assert exported(copy)["memory_pauses"] == shape["memory_pauses"]
    # An open pause continues in the copy only if the conversation itself is paused.
    MemoryPause.objects.filter(pk=pause.pk).update(ended_at=None)
    for memory, lasts in {"on": False, "paused": True}.items():
        copy.delete()
        take_in(bob, tmp_path / "chat.json", exported(chat) | {"memory": memory})
        copy = Conversation.objects.get(user=bob)
        assert pauses_of(bob.pk).covers(copy.pk, moments[1]), "whatever the conversation's own setting is"
        assert pauses_of(bob.pk).covers(copy.pk, clock.now() + timedelta(days=1)) == lasts


def test_too_many_or_invalid_pauses_pause_more_rather_than_less(
    chat: Conversation, bob: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chatapp.features.importing.actions.MAX_PAUSES", 3)
    day = datetime(2025, 3, 1, tzinfo=UTC)
    days = [
        {
            "began_at": iso_time(day + timedelta(days=n)),
            "ended_at": iso_time(day + timedelta(days=n, hours=1)),
        }
        for n in range(5)
    ]
    odd = [{"began_at": "yesterday", "ended_at": "1980-01-01T00:00:00Z"}, 7, {"ended_at": None}, days[0]]
    take_in(bob, tmp_path / "chat.json", exported(chat) | {"memory_pauses": [*days, *odd]})
    copy = Conversation.objects.get(user=bob)
    assert MemoryPause.objects.filter(conversation=copy).count() == 4
    assert pauses_of(bob.pk).covers(copy.pk, day + timedelta(days=2, hours=2))
    take_in(bob, tmp_path / "chat.json", exported(chat) | {"id": "other", "memory_pauses": "odd"})
    assert Conversation.objects.filter(user=bob).count() == 2
