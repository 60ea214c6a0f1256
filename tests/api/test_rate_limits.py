"""Users who send too much are told how long to wait; other users are not affected."""

from __future__ import annotations

from typing import Any

import pytest

from chatapp.accounts.rate_limits import FAILED_SIGN_INS_PER_MINUTE
from chatapp.providers.models import ModelConfig
from tests.api.program import Program
from tests.api.running import new_conversation, running_service, send

LATER = {"prefer": "respond-async"}


@pytest.fixture(autouse=True)
def two_a_minute(settings: Any) -> None:
    settings.MESSAGES_PER_MINUTE = 2


async def test_messages_above_the_limit_return_429_with_a_time_to_wait(
    alice_program: Program, charlie_program: Program, model: ModelConfig
) -> None:
    async with running_service():
        conversations = [await new_conversation(alice_program) for _ in range(3)]
        statuses = [(await send(alice_program, key, headers=LATER)).status_code for key in conversations[:2]]
        assert statuses == [202, 202]
        refused = await send(alice_program, conversations[2], headers=LATER)
        assert (refused.status_code, refused.error["code"]) == (429, "rate_limited")
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert refused.error["details"]["retry_after"] == int(refused.headers["retry-after"])
        other = await send(charlie_program, await new_conversation(charlie_program), headers=LATER)
        assert other.status_code == 202
        # Reading is not limited.
        assert (await alice_program.get("conversations")).status_code == 200


async def test_a_limited_request_reports_how_many_are_left(
    alice_program: Program, model: ModelConfig
) -> None:
    async with running_service():
        conversations = [await new_conversation(alice_program) for _ in range(3)]
        answers = [await send(alice_program, key, headers=LATER) for key in conversations]
        told = [(each.headers["ratelimit-limit"], each.headers["ratelimit-remaining"]) for each in answers]
        assert told == [("2", "1"), ("2", "0"), ("2", "0")]
        assert all(1 <= int(each.headers["ratelimit-reset"]) <= 60 for each in answers)
        assert answers[2].headers["ratelimit-reset"] == answers[2].headers["retry-after"]
        assert "ratelimit-limit" not in (await alice_program.get("conversations")).headers
    wrong = await Program({"authorization": "Bearer pal_guess"}, address="192.0.2.8").get("me")
    assert wrong.headers["ratelimit-remaining"] == str(FAILED_SIGN_INS_PER_MINUTE - 1)


async def test_a_requested_summary_counts_as_a_message_and_a_preview_does_not(
    alice_program: Program, model: ModelConfig
) -> None:
    async with running_service():
        compact = f"conversations/{await new_conversation(alice_program)}/compact"
        previews = [(await alice_program.post(compact, preview=True)).status_code for _ in range(3)]
        summaries = [(await alice_program.post(compact)).status_code for _ in range(3)]
        assert (previews, summaries) == ([409] * 3, [409, 409, 429])


async def test_zero_means_no_limit(alice_program: Program, model: ModelConfig, settings: Any) -> None:
    settings.MESSAGES_PER_MINUTE = 0
    async with running_service():
        for _ in range(5):
            conversation = await new_conversation(alice_program)
            assert (await send(alice_program, conversation, headers=LATER)).status_code == 202


async def test_guessing_tokens_is_slowed_down(alice_program: Program) -> None:
    guesser = Program({"authorization": "Bearer pal_guess"}, address="192.0.2.7")
    statuses = [(await guesser.get("me")).status_code for _ in range(FAILED_SIGN_INS_PER_MINUTE + 1)]
    assert statuses == [401] * FAILED_SIGN_INS_PER_MINUTE + [429]
    assert (await alice_program.get("me")).status_code == 200
