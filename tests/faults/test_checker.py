"""The checker detects lost, duplicate, moved, wrongly shown and badly reported messages, or it would prove nothing."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from tests.faults.checker import _Conversation
from tests.faults.journal import Journal, Sent
from tests.faults.model_faults import SECRET, answer_to, question
from tests.reliability.readers import Story

ASKED = [question(f"u-0000{number}-key", "none", 3) for number in (1, 2)]
SENT = [Sent("c", f"u-0000{number}-key", ASKED[number - 1], f"r{number}", f"q{number}") for number in (1, 2)]


def message(position: int, role: str, id: str, content: str) -> dict[str, Any]:
    return {"id": id, "role": role, "position": position, "content": content, "status": "complete"}


def stored() -> list[dict[str, Any]]:
    return [
        message(0, "user", "q1", ASKED[0]),
        message(1, "assistant", "a1", answer_to(ASKED[0])),
        message(2, "user", "q2", ASKED[1]),
        message(3, "assistant", "a2", answer_to(ASKED[1])),
    ]


def told() -> Story:
    story = Story()
    for seq, run in enumerate(("r1", "r2"), start=1):
        story.take({"type": "run.finished", "seq": seq, "run_id": run})
    story.texts = {"a1": answer_to(ASKED[0]), "a2": answer_to(ASKED[1])}
    return story


def look(messages: list[dict[str, Any]], story: Story, run: dict[str, Any] | None = None) -> str:
    """Return what the checker complains about."""
    journal = Journal()
    checker = _Conversation(httpx2.Client(), journal, "c")
    run = run or {"id": "r1", "message_id": "a1", "status": "complete", "error": None}
    found = [
        *checker._check_messages(SENT, messages),
        *checker._check_facts(story, {"r1", "r2"}),
        *checker._check_answer(SENT[0], run, messages, story),
    ]
    return "; ".join([*found, *journal.problems])


def test_the_checker_finds_no_problem_in_correct_data() -> None:
    assert look(stored(), told()) == ""


def changed(index: int, **fields: Any) -> list[dict[str, Any]]:
    return [{**row, **fields} if at == index else row for at, row in enumerate(stored())]


@pytest.mark.parametrize(
    ("messages", "complaint"),
    [
        (stored()[:2], "was accepted and is lost"),
        ([*stored(), message(4, "user", "q3", ASKED[1])], "is stored 2 times"),
        ([*stored()[2:], *stored()[:2]], "out of order"),
        (changed(3, position=7), "positions have gaps"),
        (changed(0, id="other"), "under another id"),
        (changed(0, content="Never said."), "nobody sent"),
        (changed(1, content="u-00001-key.0"), "called complete with"),
        (changed(1, content="Another answer."), "characters are shown"),
    ],
)
def test_the_checker_detects_wrongly_stored_messages(messages: list[dict[str, Any]], complaint: str) -> None:
    assert complaint in look(messages, told())


def test_the_checker_detects_a_duplicate_or_missing_end_event() -> None:
    twice, never = told(), told()
    twice.take({"type": "run.finished", "seq": 3, "run_id": "r1"})
    never.facts.pop()
    assert "r1 has 2 run.finished" in look(stored(), twice)
    assert "r2 has 0 run.finished" in look(stored(), never)


@pytest.mark.parametrize(
    ("error", "complaint"),
    [
        (None, "without a word"),
        ({"category": "internal", "message": "Something went wrong on our side."}, "an error of our own"),
        ({"category": "server", "message": "boom"}, "an error without a sentence"),
    ],
)
def test_the_checker_detects_a_badly_reported_error(error: dict[str, str] | None, complaint: str) -> None:
    run = {"id": "r1", "message_id": "a1", "status": "failed", "error": error}
    assert complaint in look(changed(1, status="failed"), told(), run)


@pytest.mark.parametrize(
    "text",
    [
        'Traceback (most recent call last):\n  File "/srv/app.py", line 3',
        "SELECT id FROM chatapp_run WHERE",
        "psycopg.OperationalError: server closed",
        f"The key {SECRET} is wrong.",
    ],
)
def test_the_journal_detects_text_that_is_not_meant_for_clients(text: str) -> None:
    journal = Journal()
    journal.scan("The database is not available right now. Please try again.", "a frame")
    assert not journal.problems
    journal.scan(text, "a frame")
    assert journal.problems
