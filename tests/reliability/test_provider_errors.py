"""Any provider failure becomes one plain sentence in time, the text so far is kept, and Retry works afterwards.

`tests/faults` combines more provider failures with other failures.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import pytest

from tests.reliability.installation import PEOPLE, Installation
from tests.reliability.people import Person
from tests.reliability.readers import SocketReader
from tests.reliability.scripting import WINDOW, Script, new_key, words
from tests.servers.behaviour import ERRORS, Behaviour, says

TEXT = words(12)
IN_TIME_S = 45
"""How soon the user must see the error."""


@dataclass(frozen=True)
class Failure:
    """`calls` counts the model calls before the user sees the error. `kept` is the text that is kept."""

    behaviour: Behaviour
    category: str
    status: int = 502
    calls: int = 1
    kept: str = ""


FAILURES = {
    "wrong key": Failure(ERRORS["wrong_key"](), "auth"),
    "no such model": Failure(ERRORS["no_model"](), "not_found"),
    "429 without Retry-After": Failure(
        replace(
            ERRORS["rate_limit"](), retry_after=None, error={"error": {"message": "Rate limit reached."}}
        ),
        "rate_limit",
        calls=2,
    ),
    "no credit": Failure(ERRORS["quota"](), "quota"),
    "502 page": Failure(ERRORS["html_502"](), "server", calls=2),
    "silence": Failure(says(TEXT, hold_after=0), "timeout", status=504, calls=2),
    "stall": Failure(
        says(TEXT, hold_after=3),
        "stalled",
        status=504,
        kept="word0 word1 word2",
    ),
    "no words": Failure(says(""), "bad_response"),
    "blank lines": Failure(says("\n\n"), "bad_response", kept="\n\n"),
}


@pytest.mark.mechanism("fim.errors", "contract.errors")
@pytest.mark.parametrize("name", FAILURES)
def test_a_provider_error_is_one_sentence_and_retry_works(
    embedded: Installation, alice: Person, script: Script, name: str
) -> None:
    failure = FAILURES[name]
    key = new_key("error")
    script.answer(key, failure.behaviour)
    conversation = alice.new_conversation()
    reader = SocketReader(embedded.first, embedded.tokens[PEOPLE[0]], conversation)
    began = time.monotonic()
    answer = alice.ask(conversation, key)
    took_s = time.monotonic() - began

    assert answer.status_code == failure.status, answer.text
    error = answer.json()["error"]
    assert error["details"]["category"] == failure.category
    assert_plain(error["message"])
    assert took_s < IN_TIME_S
    assert len(script.requests(key)) == failure.calls

    question, stored = alice.messages(conversation)
    assert (question["content"], stored["status"], stored["content"]) == (key, "failed", failure.kept)
    assert stored["run"]["error"]["message"] == error["message"]
    reader.wait_for_end(stored["run"]["id"])
    assert reader.story.facts[-1]["error"]["message"] == error["message"]
    assert reader.story.texts[stored["id"]] == failure.kept
    reader.close()

    script.answer(key, "Now it works.")
    again = alice.act(f"conversations/{conversation}/messages/{stored['id']}/regenerate")
    assert alice.wait_for_end(again["run_id"])["status"] == "complete"
    assert [message["content"] for message in alice.messages(conversation)] == [key, "Now it works."]


def assert_plain(sentence: str) -> None:
    """Check that a message is for users: short, without tracebacks, class names or markup, and it says what is kept."""
    assert sentence[0].isupper()
    assert sentence.endswith(".")
    assert not [mark for mark in ("Traceback", "Error", "{", "<", "openai", "httpx") if mark in sentence]
    assert "your message is stored" in sentence or "kept" in sentence
    assert len(sentence) < 300


@pytest.mark.parametrize("fails_first", ["server", "rate_limit", "overflow_openai", "overflow_llamacpp"])
def test_transient_errors_are_retried_before_the_user_sees_them(
    embedded: Installation, alice: Person, script: Script, fails_first: str
) -> None:
    key = new_key("passing")
    script.answer(key, replace(ERRORS[fails_first](), retry_after="1"), "All is well.")
    conversation = alice.new_conversation()
    for _ in range(4):
        alice.ask(conversation, f"{new_key('filler')}: {words(300)}")
    answer = alice.ask(conversation, key)
    assert answer.json()["message"]["content"] == "All is well.", answer.text
    first, second = script.requests(key)
    if fails_first.startswith("overflow"):
        assert len(second.text) < len(first.text)
        assert second.messages[-1] == first.messages[-1]
        assert second.messages[0] == first.messages[0]
    else:
        assert second.messages == first.messages


def test_a_smaller_window_than_configured_is_detected(
    embedded: Installation, alice: Person, script: Script
) -> None:
    """The operator configured a larger window than the server has. The answer comes with less context."""
    key = new_key("smaller")
    script.answer(key, "It fits now.")
    conversation = alice.new_conversation()
    for _ in range(12):
        alice.ask(conversation, f"{new_key('filler')}: {words(400)}")
    script.server.window = WINDOW // 4
    try:
        answer = alice.ask(conversation, key)
    finally:
        script.server.window = 0
        embedded.first.manage("shell", "-v", "0", "-c", MOVE.format(url=script.server.base_url))
    assert answer.status_code == 200, answer.text
    assert answer.json()["message"]["content"] == "It fits now."


@pytest.mark.mechanism("contract.errors")
def test_a_model_server_that_is_down_is_reported_at_once(
    embedded: Installation, alice: Person, script: Script
) -> None:
    conversation = alice.new_conversation()
    embedded.first.manage("shell", "-v", "0", "-c", MOVE.format(url="http://127.0.0.1:9/v1"))
    try:
        answer = alice.ask(conversation, "Anybody there?")
    finally:
        embedded.first.manage("shell", "-v", "0", "-c", MOVE.format(url=script.server.base_url))
    assert (answer.status_code, answer.json()["error"]["details"]["category"]) == (502, "connection")
    assert_plain(answer.json()["error"]["message"])
    failed = alice.messages(conversation)[-1]
    again = alice.act(f"conversations/{conversation}/messages/{failed['id']}/regenerate")
    assert alice.wait_for_end(again["run_id"])["status"] == "complete"


MOVE = """
from chatapp.providers.models import ModelConfig
ModelConfig.objects.filter(model_id="test-model").update(base_url={url!r}, detected_context_size=0)
"""
