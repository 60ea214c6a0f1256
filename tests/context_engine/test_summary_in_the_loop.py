"""A tool loop that outgrows its budget under a policy that waits for summaries, over the REST API."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chatapp.compaction.models import Compaction
from chatapp.providers.models import ModelConfig, Usage
from tests.acceptance.conversations import long_history
from tests.api import own_tools
from tests.api.own_tools import look_up
from tests.api.program import Program
from tests.context_engine.talking import Talk, last_chat, talking
from tests.servers.behaviour import ERRORS, Behaviour, says
from tests.servers.openai_server import ModelServer

HISTORY = long_history(80, padding=100)
"""Below the trigger alone, over the budget with three large results."""
POLICY = {"strategy": "summarize", "trigger": 0.9}
MARK = "SUMMARY-IN-THE-LOOP"

pytestmark = pytest.mark.usefixtures("transactional_db")


@pytest.fixture(autouse=True)
def own() -> Iterator[None]:
    with own_tools.at_hand("look_up"):
        look_up.answer = lambda shelf: f"Shelf {shelf['n']}. " + "The archive holds many lines. " * 4_000
        yield


def looks(*numbers: int) -> Behaviour:
    calls = tuple({"name": "look_up", "arguments": {"n": number}} for number in numbers)
    return Behaviour(text=None, tokens=0, tool_calls=calls)


async def notices(talk: Talk) -> list[tuple[str, str]]:
    return [(event["kind"], event["text"]) for event in await talk.events("run.notice")]


@pytest.mark.mechanism("fim.guard-summary")
async def test_a_summary_during_an_answer_is_reported_and_recorded_in_the_ledger(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.script(says(f"{MARK}: they kept notes with codes QX."), kind="summary")
    model_server.script(looks(1, 2, 3), says("Nothing there."))
    async with talking(alice_program, HISTORY, context_policy=POLICY) as talk:
        answer = await talk.ask("What is on the shelves?")
        assert answer["message"]["content"] == "Nothing there."
        [asked] = model_server.requests_of("summary")
        assert "code QX-00001" in asked.text
        [summary, *rest] = last_chat(model_server)[1:]
        assert MARK in summary["content"]
        assert [message["role"] for message in rest[-4:]] == ["assistant", "tool", "tool", "tool"]
        [(kind, text)] = await notices(talk)
        assert (kind, "summarised before the call" in text) == ("summarised", True)
        assert "No model's summary" not in text
        [row] = [row async for row in Usage.objects.filter(purpose="compaction")]
        assert row.exact
        assert row.input_tokens > 1_000
        assert answer["usage"]["compaction_tokens"] == row.input_tokens + row.output_tokens
        assert not await Compaction.objects.aexists(), "the stored conversation is as it was"


async def test_a_failed_summary_model_is_named_in_a_notice_and_the_answer_completes(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.defaults["summary"] = ERRORS["wrong_key"]()
    model_server.script(looks(1, 2, 3), looks(4, 5, 6), says("Nothing there."))
    async with talking(alice_program, HISTORY, context_policy=POLICY) as talk:
        answer = await talk.ask("What is on the shelves?")
        assert answer["message"]["content"] == "Nothing there."
        assert len(model_server.requests_of("summary")) == 1, "it is not asked again in this answer"
        kind, text = (await notices(talk))[0]
        assert kind == "summarised"
        assert "No model's summary: the summary model failed (its key is not accepted)" in text
        assert "QX-" in last_chat(model_server)[1]["content"], "sentences with facts stand in"
