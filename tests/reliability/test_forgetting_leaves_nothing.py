"""Forgotten text is deleted from messages, summaries, memory, recalled text and tool searches alike."""

from __future__ import annotations

import pytest

from tests.acceptance.stored import places_with
from tests.reliability.compacting import compact, long_conversation
from tests.reliability.installation import Installation
from tests.reliability.people import Person
from tests.reliability.scripting import Script, new_key
from tests.servers.behaviour import says
from tests.servers.waiting import wait_for

NAME = "Quillfeather"
TOLD = f"My dentist is called Dr {NAME}, in Elm Street 14."


@pytest.mark.mechanism("forgetting.everywhere")
def test_forgotten_text_is_in_no_column_file_or_queue(
    installation: Installation, alice: Person, script: Script
) -> None:
    key = new_key("forgotten")
    script.answer(key, f"They count notes. Their dentist is Dr {NAME}.", kind="summary")
    conversation = long_conversation(alice, key, first=TOLD)
    alice.wait_for_compaction(conversation, compact(alice, conversation), "done")
    alice.wait_for_entries(conversation)

    asked = new_key("asked")
    call = {"id": "call-1", "name": "memory_search", "arguments": f'{{"query": "dentist {NAME}"}}'}
    script.answer(
        asked, says("", tool_calls=(call,), finish_reason="tool_calls"), "You told me so, in the garden."
    )
    other = alice.new_conversation()
    assert alice.ask(other, f"What is my dentist called? {asked}").status_code == 200
    [first, *_] = script.requests(asked)
    assert NAME in first.text
    before = places_with(NAME, installation.env)
    assert "chatapp_message.parts" in before
    assert any(place.startswith("memory/") for place in before)

    told = next(row for row in alice.messages(conversation) if NAME in str(row["content"]))
    forgotten = alice.client.post("/api/v1/memory/forget", json={"message_id": told["id"]})
    assert forgotten.status_code == 200, forgotten.text
    wait_for(
        lambda: not places_with(NAME, installation.env),
        what="nothing of it is left",
        explain=lambda: "\n".join(places_with(NAME, installation.env)),
    )
    assert NAME not in installation.output()
