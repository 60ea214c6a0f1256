"""The complete example of the Digitorn document, tested along the seven points of "What happens at runtime"."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async
from django.core.management import call_command

from chatapp.agent_presets.models import Agent
from chatapp.context.policies import rules_for
from chatapp.conversations.models import Conversation
from chatapp.long_term.models import MemoryEntry
from chatapp.operations import clock
from chatapp.operations.database.threads import in_database
from chatapp.operations.encryption import decrypt
from chatapp.providers.models import ModelConfig
from memory.tokens import estimate_text
from tests.api.program import Program
from tests.context_engine.talking import Talk, last_chat, talking, words, work
from tests.servers.behaviour import ERRORS, Behaviour, says
from tests.servers.openai_server import ModelServer

EXAMPLE = Path(__file__).with_name("digitorn_example.yaml")
KEY = "sk-example-0123456789"
SUMMARY = "They talked about the harbour; the crane is QX-17. SUMMARY-MARK."
TURN_5 = {"role": "system", "content": "Reminder: you have been chatting for 5 turns."}
LONG, SHORT = 9_000, 40

pytestmark = pytest.mark.usefixtures("transactional_db")


@pytest.fixture
def main_brain() -> Iterator[ModelServer]:
    """Yield a model whose first answers are short and later ones long, so that a few exchanges fill the context."""

    def answer(request: object) -> Behaviour:
        number = len(server.requests_of("chat"))
        size = SHORT if number < 3 else LONG
        return says(words(size, f"Answer {number}."), sends_usage=False, tokens_per_write=400)

    with ModelServer(models=["deepseek-chat"], default=answer, api_key=KEY) as server:
        yield server


@pytest.fixture
def summary_brain() -> Iterator[ModelServer]:
    with ModelServer(models=["qwen2.5:3b"], summary_default=says(SUMMARY)) as server:
        yield server


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch, main_brain: ModelServer, summary_brain: ModelServer) -> str:
    """Return what `manage.py load_agents` prints."""
    monkeypatch.setenv("DEEPSEEK_API_KEY", KEY)
    monkeypatch.setenv("MAIN_BRAIN_URL", main_brain.base_url)
    monkeypatch.setenv("SUMMARY_BRAIN_URL", summary_brain.base_url)
    said = io.StringIO()
    call_command("load_agents", str(EXAMPLE), stdout=said)
    return said.getvalue()


@pytest.fixture
def pressure(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    """Yield the lines that hooks have logged so far."""
    lines: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    logger, handler = logging.getLogger("palimpsest.hooks"), Keep()
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield lines
    logger.removeHandler(handler)


@pytest.mark.mechanism("digitorn.brains")
def test_1_bootstrap_finds_the_window_and_merges_the_levels(loaded: str) -> None:
    agent = Agent.objects.select_related("model").get()
    rules = rules_for(agent.model, agent=agent)
    assert rules.budget.context_size == 131_072, "from the table of known models"
    assert rules.budget.max_output_tokens == 4_096
    policy = rules.policy
    assert (policy.strategy, policy.keep_recent, policy.trigger) == ("summarize", 6, 0.15)
    assert (policy.summary_max_tokens, policy.auto_compact) == (512, True)
    assert rules.effective.origins["strategy"] == "agent"
    assert [hook.id for hook in rules.hooks] == ["_auto_compact", "pressure_log", "turn5_reminder"]
    assert rules.hooks[0].cooldown == 30.0
    assert (agent.system_prompt, agent.timeout_s) == (
        "You are a test assistant. Be detailed in your responses.",
        120.0,
    )
    assert agent.greeting == "Context management test. Each exchange fills the context."


@pytest.mark.mechanism("digitorn.example")
def test_the_command_lists_what_it_loaded_and_never_prints_a_key(loaded: str) -> None:
    assert "Created agent assistant: model deepseek-chat, summaries by qwen2.5:3b" in loaded
    assert "pressure_log, turn5_reminder" in loaded
    assert "not supported: modules, capabilities, execution.max_turns." in loaded
    assert KEY not in loaded
    config = ModelConfig.objects.get(model_id="deepseek-chat")
    assert KEY not in config.api_key_encrypted
    assert decrypt(config.api_key_encrypted) == KEY


def test_loading_the_file_again_changes_nothing(loaded: str) -> None:
    before = list(Agent.objects.values()), list(ModelConfig.objects.values())
    said = io.StringIO()
    call_command("load_agents", str(EXAMPLE), stdout=said)
    assert "Updated agent assistant" in said.getvalue()
    assert (list(Agent.objects.values()), list(ModelConfig.objects.values())) == before


@pytest.mark.mechanism(
    "digitorn.pressure",
    "digitorn.summarize",
    "digitorn.cooldown",
    "digitorn.emergency",
    "digitorn.hook-inject",
    "digitorn.hook-log",
)
async def test_the_conversation_runs_as_the_document_describes(
    loaded: str,
    alice_program: Program,
    main_brain: ModelServer,
    summary_brain: ModelServer,
    pressure: list[str],
) -> None:
    async with talking(alice_program, agent="assistant") as talk:
        await turns_1_and_2_are_a_normal_conversation(talk, main_brain, summary_brain, pressure)
        await pressure_passes_the_trigger(talk, main_brain, summary_brain)
        await at_turn_5_old_messages_are_summarised_and_the_reminder_comes(talk, main_brain, summary_brain)
        await for_two_turns_nothing_is_compacted_again(talk, main_brain, summary_brain)
        await then_it_may_be_again(talk, summary_brain)
        await an_overflow_is_an_emergency(talk, main_brain, summary_brain)
        assert [line.split(": ")[1] for line in pressure] == [f"Turn {turn}" for turn in range(1, 10)]


async def turns_1_and_2_are_a_normal_conversation(
    talk: Talk, main_brain: ModelServer, summary_brain: ModelServer, pressure: list[str]
) -> None:
    await talk.ask(words(1_900, "The crane at the harbour is QX-17."))
    await talk.ask("Go on.")
    sizes = [int(size) for line in pressure for size in re.findall(r"~(\d+) tokens", line)]
    assert len(sizes) == 2
    assert all(1_500 < size < 2_500 for size in sizes), sizes
    assert pressure[0].endswith("2 messages")
    assert pressure[1].endswith("4 messages")
    asked = main_brain.requests_of("chat")[0]
    assert asked.messages[0]["content"].startswith("You are a test assistant.")
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body["max_tokens"] == 4_096
    assert not summary_brain.requests_of("summary")


async def pressure_passes_the_trigger(
    talk: Talk, main_brain: ModelServer, summary_brain: ModelServer
) -> None:
    await talk.ask("Tell me of the cranes.")
    await talk.ask("And of the ships.")
    assert not summary_brain.requests_of("summary"), "six messages are kept, and there are no more"
    assert TURN_5 not in last_chat(main_brain)
    seen = await talk.inspect("And of the lighthouse.")
    assert seen["was_compacted"], "over 15 %, so that something has to leave now"
    assert seen["policy"]["strategy"] == {"value": "summarize", "from": "agent"}
    assert (seen["summary_model"], seen["context_size"]) == ("qwen2.5:3b", 131_072)


async def at_turn_5_old_messages_are_summarised_and_the_reminder_comes(
    talk: Talk, main_brain: ModelServer, summary_brain: ModelServer
) -> None:
    answer = await talk.ask("And of the lighthouse.")

    [asked] = summary_brain.requests_of("summary")
    assert asked.body["model"] == "qwen2.5:3b"
    assert "QX-17" in asked.text
    system, summary, reminder, *kept, late, question = last_chat(main_brain)
    assert system["role"] == "system"
    assert "SUMMARY-MARK" in summary["content"]
    assert "Done so far" in reminder["content"]
    kept = [message for message in kept if not message["content"].startswith("<recalled>")]
    assert len(kept) == 6
    assert kept[0]["content"] == "Go on."
    assert late == TURN_5
    assert question == {"role": "user", "content": "And of the lighthouse."}

    [row] = await talk.compactions()
    assert (row["status"], row["strategy"], row["message_count"]) == ("done", "summarize", 2)
    assert [event["state"] for event in await talk.events("compact")] == ["started", "done"]
    assert answer["compact"]["text"] == "Earlier context (2 messages) was summarized by AI."
    assert answer["usage"]["compaction_tokens"] > 0
    fired = [(event["hook_id"], event["action"]) for event in await talk.events("hook")]
    assert ("turn5_reminder", "inject_message") in fired
    assert ("_auto_compact", "compact_context") in fired


async def for_two_turns_nothing_is_compacted_again(
    talk: Talk, main_brain: ModelServer, summary_brain: ModelServer
) -> None:
    await half_a_minute_passes(talk)
    for question in ("What else?", "And then?"):
        summary = last_chat(main_brain)[1]
        await talk.ask(question)
        assert len(summary_brain.requests_of("summary")) == 1
        assert last_chat(main_brain)[1] == summary, "the same summary, byte for byte"
        assert TURN_5 not in last_chat(main_brain), "at turn 5 and at no other"


async def then_it_may_be_again(talk: Talk, summary_brain: ModelServer) -> None:
    await talk.ask("What is the sum of it?")
    _, second = summary_brain.requests_of("summary")
    assert "SUMMARY-MARK" in second.text, "the summary before and the new span, not everything again"
    assert "QX-17 word0" not in second.text
    assert len(await talk.compactions("done")) == 2


async def an_overflow_is_an_emergency(
    talk: Talk, main_brain: ModelServer, summary_brain: ModelServer
) -> None:
    sent_before = len(main_brain.requests_of("chat"))
    main_brain.script(ERRORS["overflow_openai"]())
    answer = await talk.ask("Once more?")
    refused, retried = main_brain.requests_of("chat")[sent_before:]
    assert answer["message"]["status"] == "complete"
    assert size_of(retried.messages) < size_of(refused.messages) // 2
    assert retried.messages[-1] == {"role": "user", "content": "Once more?"}
    assert "SUMMARY-MARK" in retried.text
    assert "Done so far" in retried.text, "the reminder is there again"
    assert "shrunk" in [event["kind"] for event in await talk.events("run.notice")]
    config = await in_database(ModelConfig.objects.get)(model_id="deepseek-chat")
    assert config.named_window["tokens"] == 8_192, "the window the provider named"

    assert await work() >= 1
    done = await talk.compactions("done")
    assert len(done) == 3
    assert await sync_to_async(MemoryEntry.objects.count)() == 3, "what left is summarised to memory"
    assert len(await talk.events("memory.written")) == 3


def size_of(messages: list[dict[str, str]]) -> int:
    return sum(estimate_text(message["content"]) for message in messages)


async def half_a_minute_passes(talk: Talk) -> None:
    """Simulate that the built-in hook's cooldown of 30 seconds is over."""
    fired = {"_auto_compact": (clock.now() - timedelta(seconds=31)).isoformat()}
    rows = Conversation.objects.filter(pk=talk.id)
    assert await in_database(rows.update)(hook_state={"fired": fired, "waiting": []}) == 1
