"""Tools see only the branch in which they are called, not messages, files or offloads of other branches."""

from __future__ import annotations

import json

import pytest

from agents.tools.protocol import ToolCaller, ToolFailure
from chatapp.accounts.models import User
from chatapp.compaction.models import Compaction
from chatapp.context.tools.files import _list, _read
from chatapp.context.tools.memory import _read_around, _search
from chatapp.context.tools.offloads import _text
from chatapp.conversations.message_values import message_value
from chatapp.files.attachments import store_upload
from chatapp.files.models import Offload
from chatapp.files.offloads import offloader
from chatapp.long_term.models import MemoryEntry
from chatapp.operations import clock
from chatapp.recall.actions.indexing import index_entry
from chatapp.runs.models import ToolCall
from memory.types import ToolResultPart
from tests.context_engine.turns_by_hand import Turn, ask, import_notes

pytestmark = [pytest.mark.django_db, pytest.mark.mechanism("ours.branches")]

SECRET = "The heliotrope code is QX-4711."


@pytest.fixture
def branches(alice: User) -> tuple[Turn, Turn, Turn]:
    """Return the first turn, the turn that replaced it, and the turn after the replacement."""
    conversation = import_notes(alice, "Hello there.", "Hello!")
    first = ask(alice, conversation, SECRET)
    offload(str(conversation.pk), first)
    edited = ask(alice, conversation, "The weather is fine today.", replaces_id=str(first.question.pk))
    return first, edited, ask(alice, conversation, "What was the heliotrope code?")


def offload(conversation_id: str, turn: Turn) -> None:
    offloads = offloader()
    part = ToolResultPart("call_1", "fetch", f"{SECRET} " * 20)
    offloads.offload_tool_result(conversation_id, part)
    offloads.offload_context(conversation_id, [message_value(turn.question)])


def caller_of(turn: Turn) -> ToolCaller:
    return ToolCaller(str(turn.question.user_id), str(turn.question.conversation_id), str(turn.run_id))


def test_a_search_finds_no_messages_of_another_branch(branches: tuple[Turn, Turn, Turn]) -> None:
    first, _, later = branches
    assert SECRET in [hit.text for hit in _search(caller_of(first), "heliotrope code", 8)]
    assert SECRET not in [hit.text for hit in _search(caller_of(later), "heliotrope code", 8)]


def test_a_search_finds_no_entries_from_a_summary_of_another_branch(
    branches: tuple[Turn, Turn, Turn],
) -> None:
    first, _, later = branches
    now = clock.now()
    row = Compaction.objects.create(
        conversation=first.question.conversation,
        branch=first.question.branch,
        first_position=0,
        last_position=first.question.position,
        message_count=3,
        kept_count=0,
        status="done",
        created_at=now,
    )
    entry = MemoryEntry.objects.create(
        user_id=first.question.user_id,
        conversation=first.question.conversation,
        compaction=row,
        day=now.date(),
        text="The user told a code of heliotrope.",
        created_at=now,
    )
    index_entry(entry)
    for turn, is_found in ((first, True), (later, False)):
        texts = [hit.text for hit in _search(caller_of(turn), "heliotrope code", 8)]
        assert (entry.text in texts) is is_found


def test_messages_of_another_branch_cannot_be_read(branches: tuple[Turn, Turn, Turn]) -> None:
    first, _, later = branches
    assert _read_around(caller_of(first), str(first.question.pk), 2)
    with pytest.raises(ToolFailure):
        _read_around(caller_of(later), str(first.question.pk), 2)
    around = _read_around(caller_of(later), str(later.question.pk), 20)
    assert SECRET not in str(around)


def test_results_offloaded_by_another_branch_cannot_be_read_or_listed(
    branches: tuple[Turn, Turn, Turn],
) -> None:
    first, _, later = branches
    result = Offload.objects.get(kind=Offload.Kind.RESULT)
    assert SECRET in _text(caller_of(first), str(result.pk))
    with pytest.raises(ToolFailure):
        _text(caller_of(later), str(result.pk))
    assert str(result.pk) in _text(caller_of(first), "list")
    assert str(result.pk) not in _text(caller_of(later), "list")


def test_a_result_stored_again_by_another_branch_can_be_read_in_both(
    branches: tuple[Turn, Turn, Turn],
) -> None:
    """Both branches may store the same old result if their requests have no room for it. It belongs to the branch that
    stored it last, and an earlier branch keeps the access that a result of its own call gives."""
    first, _, later = branches
    result = Offload.objects.get(kind=Offload.Kind.RESULT)
    ToolCall.objects.create(
        run_id=first.run_id,
        step=1,
        ordinal=1,
        call_id="call_1",
        name="fetch",
        state=ToolCall.State.DONE,
        is_idempotent=True,
        result=[{"type": "tool_result", "text": f"stored as {result.pk}"}],
        requested_at=clock.now(),
    )
    with pytest.raises(ToolFailure):
        _text(caller_of(later), str(result.pk))
    offload(str(later.question.conversation_id), later)
    for turn in (first, later):
        assert SECRET in _text(caller_of(turn), str(result.pk))


def test_messages_that_left_the_context_of_another_branch_cannot_be_read(
    branches: tuple[Turn, Turn, Turn],
) -> None:
    first, _, later = branches
    [line] = _text(caller_of(first), "context").splitlines()
    assert json.loads(line)["id"] == str(first.question.pk)
    assert _text(caller_of(later), "context") == ""


def test_files_of_another_branch_cannot_be_listed_or_read(branches: tuple[Turn, Turn, Turn]) -> None:
    first, _, later = branches
    files = [attach(turn) for turn in (first, later)]
    for turn, file_id in zip((first, later), files, strict=True):
        assert [facts.id for facts in _list(caller_of(turn))] == [file_id]
    with pytest.raises(ToolFailure):
        _read(caller_of(later), files[0])


def attach(turn: Turn) -> str:
    file = store_upload(user=turn.question.user, name="code.txt", content=SECRET.encode())
    file.messages.add(turn.question)
    return str(file.pk)
