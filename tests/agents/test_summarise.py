"""Summaries by a model, in pieces, and the extract as the fallback."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agents.background.summarise import NO_MODEL, NO_ROOM, SummaryResult, carries_facts, summarise
from agents.chat_models.demo_model import DemoModel
from agents.chat_models.error_mapping import describe_error, map_error
from agents.chat_models.openai_model import OpenAIModel
from agents.types import ChatModel, TokenUsage
from memory.budget import TokenBudget
from memory.summaries.summary_prompts import CLOSING
from memory.tokens import text_message
from memory.types import Message
from memory.window.policy import ContextPolicy
from tests.agents.scripted_model import Said, ScriptedModel
from tests.servers.behaviour import Behaviour, says
from tests.servers.openai_server import ModelServer

POLICY = ContextPolicy(summary_max_tokens=200)
WINDOW = TokenBudget(32_000, 4_000, 0)


def span_of(count: int) -> tuple[Message, ...]:
    texts = (f"Order ORD-{1000 + n} costs {n} EUR. " + "Some filler here. " * 12 for n in range(count))
    return tuple(text_message("user" if n % 2 == 0 else "assistant", text) for n, text in enumerate(texts))


SPAN = span_of(20)
GOOD = "The user talks about orders from ORD-1000 on."


async def no_pause(seconds: float) -> None:
    """Replace sleep, so that retries do not wait."""


async def summarise_with(
    model: ChatModel | None, messages: tuple[Message, ...] = SPAN, **more: Any
) -> SummaryResult:
    options: dict[str, Any] = {"previous": "", "policy": POLICY, "window": WINDOW, "sleep": no_pause} | more
    return await summarise(model, messages, **options)


async def test_the_models_summary_is_used_and_its_usage_reported() -> None:
    model = ScriptedModel([Said(GOOD, usage=TokenUsage(900, 12))])
    result = await summarise_with(model)
    assert result.fallback_reason is None
    assert result.text.startswith(GOOD)
    assert result.usages == (TokenUsage(900, 12),)


@pytest.mark.mechanism("digitorn.summary-model")
async def test_the_summary_model_is_called_with_the_summary_temperature() -> None:
    model = ScriptedModel([GOOD])
    await summarise_with(model, policy=POLICY.model_copy(update={"summary_temperature": 0.1}))
    assert model.requests[0].temperature == 0.1


async def test_the_previous_summary_is_included_in_the_request() -> None:
    model = ScriptedModel([GOOD])
    await summarise_with(model, previous="The user is called Ada.")
    system, question = model.requests[0].messages
    assert CLOSING in system.text
    assert "The user is called Ada." in question.text
    assert "ORD-1019" in question.text


@pytest.mark.mechanism("fim.two-budgets")
async def test_a_long_span_is_summarised_in_pieces_that_each_build_on_the_last() -> None:
    model = ScriptedModel(["First piece, ORD-1000.", "Second piece, ORD-1000.", *[GOOD] * 20])
    result = await summarise_with(model, span_of(100), window=TokenBudget(2_000, 500, 0))
    assert len(model.requests) > 2
    assert "First piece, ORD-1000." in model.requests[1].messages[1].text
    assert "Second piece, ORD-1000." in model.requests[2].messages[1].text
    assert "First piece, ORD-1000." not in model.requests[2].messages[1].text
    assert len(result.usages) == len(model.requests)
    everything = "".join(request.messages[1].text for request in model.requests)
    assert all(everything.count(f"ORD-{1000 + n} ") == 1 for n in range(1, 100))


@pytest.mark.parametrize(
    ("named", "words"), [(2_000, "maximum context length is 2000 tokens"), (None, "too long")]
)
async def test_a_window_smaller_than_expected_leads_to_smaller_pieces(named: int | None, words: str) -> None:
    refusal = map_error(400, f"This model's {words}. Your prompt is too long.")
    model = ScriptedModel([refusal, *[GOOD] * 20])
    result = await summarise_with(model, span_of(100), window=TokenBudget(8_000, 1_000, 0))
    refused, *pieces = model.requests
    assert len(pieces) > 1
    assert max(len(piece.messages[1].text) for piece in pieces) < len(refused.messages[1].text)
    assert (result.fallback_reason, result.window_tokens) == (None, named)


async def test_a_model_that_finds_every_piece_too_large_is_called_three_times_at_most() -> None:
    refusal = map_error(400, "Your prompt is too long.")
    model = ScriptedModel([refusal] * 9)
    result = await summarise_with(model, span_of(100), window=TokenBudget(8_000, 1_000, 0))
    assert len(model.requests) == 3
    assert "accepts less at once" in (result.fallback_reason or "")


@pytest.mark.mechanism("fim.summary-fallback")
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("", "nothing"),
        ("   ", "nothing"),
        ("<html><body>Bad gateway</body></html>", "not a summary"),
        (" ".join(f"Order {n} matters." for n in range(500)), "tokens"),
        ("I'm sorry, but I can't help with that.", "not a summary"),
        ("Please provide the conversation you would like me to summarize.", "not a summary"),
        ("{", "not a summary"),
        ("The user", "not a summary"),
        ("I'm sorry, but as an AI I can't repeat orders.", "not a summary"),
        (map_error(401, "Invalid key"), "its key is not accepted"),
        (Said("Half", error=describe_error("cut")), "the connection to it broke"),
    ],
)
async def test_an_unusable_answer_falls_back_to_an_extract_with_the_reason(answer: Any, words: str) -> None:
    result = await summarise_with(ScriptedModel([answer]))
    assert result.fallback_reason is not None
    assert words in result.fallback_reason
    assert "ORD-10" in result.text
    assert 0 < result.tokens <= POLICY.summary_max_tokens * 1.15


@pytest.mark.parametrize(
    ("summary", "source", "carries"),
    [
        ("They talked about ord-1000.", "User: Order ORD-1000 costs 4 EUR.", True),
        ("Ada lives in Paris.", "User: I live in Paris, said Ada.", True),
        ("They greeted each other.", "User: Hello there\n\nAssistant: Good morning", True),
        ("Orders from ORD on.", "User: see ORD-1000 and ORD-1001", True),
        ("{", "User: see ORD-1000 and ORD-1001", False),
        ("会议在三月五日。", "User: 会议在三月五日举行", True),
        ("Sorry, no.", "User: it costs 12, Sorry", False),
        ("I can't do it.", "User: ask the IT people, they have 7 keys", False),
        ("Nothing new.", "[2026-11-22]\n\nUser: hello there", True),
        ("It is 2026.", "[2026-11-22]\n\nUser: we have 30 boxes", False),
    ],
)
def test_a_summary_must_contain_a_fact_of_its_source(summary: str, source: str, carries: bool) -> None:
    assert carries_facts(summary, source) is carries


async def test_a_refusal_in_a_middle_piece_ends_in_the_extract_without_further_calls() -> None:
    model = ScriptedModel([GOOD, "I'm sorry, but I can't help with that.", *[GOOD] * 20])
    result = await summarise_with(model, span_of(100), window=TokenBudget(2_000, 500, 0))
    assert (result.fallback_reason is None, len(model.requests)) == (False, 2)


async def test_the_result_says_whether_a_model_or_an_extract_made_it() -> None:
    assert (await summarise_with(ScriptedModel([GOOD]))).fallback_reason is None
    assert (await summarise_with(None)).fallback_reason is not None


async def test_the_fallback_keeps_the_previous_summary() -> None:
    result = await summarise_with(ScriptedModel([""]), previous="The user is called Ada.")
    assert result.text.startswith("The user is called Ada.")


async def test_a_transient_error_is_retried_once() -> None:
    model = ScriptedModel([describe_error("server"), GOOD])
    assert (await summarise_with(model)).fallback_reason is None
    failing = ScriptedModel(default=describe_error("server"))
    assert (await summarise_with(failing)).fallback_reason is not None
    assert len(failing.requests) == 2


@pytest.mark.parametrize("status", [503, 529])
async def test_an_overloaded_summary_model_is_called_three_times_in_all(status: int) -> None:
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    busy = ScriptedModel(default=map_error(status, "Overloaded"))
    assert (await summarise_with(busy, sleep=pause)).fallback_reason is not None
    assert (len(busy.requests), pauses) == (3, [1.0, 2.0])


async def test_the_usage_of_an_interrupted_call_is_estimated() -> None:
    result = await summarise_with(ScriptedModel([Said("Half an answer", error=describe_error("cut"))]))
    [usage] = result.usages
    assert not usage.exact
    assert usage.output_tokens > 0


async def test_a_model_that_never_answers_is_abandoned_after_the_timeout() -> None:
    never = Said(waits_for=asyncio.Event())
    result = await summarise_with(
        ScriptedModel([never, never]), policy=POLICY.model_copy(update={"summary_timeout_s": 0.05})
    )
    assert result.fallback_reason is not None
    assert "it took too long" in result.fallback_reason


async def test_a_summary_stopped_for_its_length_is_not_used() -> None:
    result = await summarise_with(ScriptedModel([Said("Summary: and so on and on", reason="bound")]))
    assert "exceeded the output limit" in (result.fallback_reason or "")
    assert len(result.usages) == 1


async def test_without_a_model_or_without_room_no_call_is_made() -> None:
    assert (await summarise_with(None)).fallback_reason == NO_MODEL
    model = ScriptedModel()
    assert (await summarise_with(model, window=TokenBudget(300, 100, 0))).fallback_reason == NO_ROOM
    assert model.requests == []


async def test_an_exception_from_before_call_is_raised_and_no_call_is_made() -> None:
    class Lost(Exception):
        """Another worker has taken over."""

    async def lose() -> None:
        raise Lost

    model = ScriptedModel()
    with pytest.raises(Lost):
        await summarise_with(model, before_call=lose)
    assert model.requests == []


async def test_the_demo_model_summarises_without_a_key() -> None:
    result = await summarise_with(DemoModel(pace_s=0))
    assert result.fallback_reason is None
    assert "ORD-10" in result.text


async def test_over_a_socket_the_summary_is_one_streamed_request(
    server: ModelServer, model: OpenAIModel
) -> None:
    server.script(says(GOOD), kind="summary")
    result = await summarise_with(model)
    assert result.text.startswith(GOOD)
    assert len(server.requests_of("summary")) == 1
    assert server.requests_of("chat") == []


async def test_an_unreachable_summary_model_falls_back_to_the_extract(
    server: ModelServer, model: OpenAIModel
) -> None:
    server.defaults["summary"] = Behaviour(fault="refuse")
    result = await summarise_with(model)
    assert result.fallback_reason is not None
    assert "cannot be reached" in result.fallback_reason


@pytest.mark.parametrize(
    ("source", "summary"),
    [
        ("User: 今天十分累，千万别忘了休息。", "用户今天很累，想要好好休息一下再说。"),
        ("User: Ужин до 9 вечера.", "Ужин договорились закончить до девяти."),
        ("User: Dinner at 7?\nAssistant: Pasta is quick.", "They plan dinner at seven; pasta is quick."),
        ("User: الموعد الساعة ٣ في مكتب رقم ٤١٢ مع ٢٠ ضيفا", "الموعد في مكتب رقم 412 مع الضيوف"),
        ("User: I read 《三体》, 《球状闪电》 and 《流浪地球》.", "The user read 三体 and two others."),
    ],
)
def test_a_summary_with_few_facts_or_in_other_words_is_accepted(source: str, summary: str) -> None:
    assert carries_facts(summary, source)


@pytest.mark.parametrize(
    "answer",
    ["I'm sorry, but I can't.", "抱歉，我无法总结这段对话的内容。", "{", "Es tut mir leid, das geht nicht."],
)
def test_a_refusal_is_not_accepted_as_a_summary_of_small_talk(answer: str) -> None:
    assert not carries_facts(answer, "User: How are you?\nAssistant: Fine, thanks.")


async def test_a_summary_cut_at_its_token_limit_is_not_used() -> None:
    model = ScriptedModel([Said("Anna lives in Berlin and decided that the", reason="length")])
    assert (await summarise_with(model)).fallback_reason is not None
