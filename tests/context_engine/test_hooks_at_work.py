"""Hooks of an agent in real turns: the model's requests, the events, and the stored state."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from chatapp.agent_presets.models import Agent
from chatapp.compaction.models import Compaction
from chatapp.conversations.models import Conversation
from chatapp.operations import clock
from chatapp.operations.database.threads import in_database
from chatapp.providers.models import ModelConfig
from chatapp.runs.hook_conditions import measure_turn
from chatapp.runs.run_context import load_turn_end
from tests.acceptance.conversations import long_history
from tests.api.program import Program
from tests.api.running import wait_for_words
from tests.api.tool_talk import asks_for
from tests.context_engine.talking import last_chat, settle, talking, work
from tests.servers.behaviour import Behaviour, fails, says
from tests.servers.openai_server import ModelServer

ALWAYS = {"type": "always"}

pytestmark = pytest.mark.usefixtures("transactional_db")


def hook(action: dict[str, Any], condition: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"id": "h", "on": "turn_start", "condition": condition or ALWAYS, "action": action} | more


def log(text: str) -> dict[str, Any]:
    return {"type": "log", "message": text}


def inject(text: str, role: str = "system") -> dict[str, Any]:
    return {"type": "inject_message", "message": text, "role": role}


async def make_agent(*hooks: dict[str, Any], **fields: Any) -> str:
    agent = await in_database(Agent.objects.create)(name="Hooked", hooks=list(hooks), **fields)
    return agent.name


async def test_log_hooks_at_both_moments_report_turn_and_message_counts(
    alice_program: Program, model: ModelConfig
) -> None:
    line = "turn {turn}, {messages} messages"
    agent = await make_agent(hook(log(line), id="first"), hook(log(line), id="last", on="turn_end"))
    async with talking(alice_program, agent=agent) as talk:
        await talk.ask("One?")
        await talk.ask("Two?")
        told = [(event["hook_id"], event["action"], event["text"]) for event in await talk.events("hook")]
        assert told == [
            ("first", "log", "turn 1, 2 messages"),
            ("last", "log", "turn 1, 3 messages"),
            ("first", "log", "turn 2, 4 messages"),
            ("last", "log", "turn 2, 5 messages"),
        ]


async def test_a_turn_end_hook_does_not_count_a_question_sent_during_the_answer(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    line = hook(log("turn {turn}, {messages} messages"), on="turn_end")
    used_tools = hook(log("turn {turn} used tools"), {"type": "tool_calls", "threshold": 0}, on="turn_end")
    agent = await make_agent(line, used_tools | {"id": "tools"}, tools=["calculator"])
    asks = asks_for("calculator", expression="1+1")
    model_server.script(asks, Behaviour(text="It is two.", hold_after=1), says("It is blue."))
    async with talking(alice_program, agent=agent) as talk:
        asked = {"content": "One?", "headers": {"Prefer": "respond-async"}}
        await alice_program.post(f"conversations/{talk.id}/messages", **asked)
        await wait_for_words(model_server, request=2)
        await talk.post("inject", 202, content="Two?")
        model_server.release()
        await settle()
        told = [event["text"] for event in await talk.events("hook")]
    assert sorted(told) == ["turn 1 used tools", "turn 1, 5 messages", "turn 2, 7 messages"]


async def test_a_turn_end_compaction_ignores_a_question_sent_during_the_answer(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    cut = {"type": "compact_context", "strategy": "truncate", "keep_recent": 2}
    agent = await make_agent(hook(cut, {"type": "turn_count", "count": 11}, on="turn_end"))
    model_server.script(Behaviour(text="The first answer.", hold_after=1), says("The second."))
    async with talking(alice_program, long_history(20), agent=agent) as talk:
        asked = {"content": "One?", "headers": {"Prefer": "respond-async"}}
        await alice_program.post(f"conversations/{talk.id}/messages", **asked)
        await wait_for_words(model_server)
        await talk.post("inject", 202, content="Two?")
        model_server.release()
        await settle()
        [row] = await talk.compactions()
    assert (row["last_position"], row["kept_count"]) == (19, 2), "one more, and the first question had left"


async def test_a_question_sent_during_the_answer_does_not_count_for_the_cooldown(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    cut = {"type": "compact_context", "strategy": "truncate", "keep_recent": 2}
    agent = await make_agent(hook(cut, on="turn_end"))
    model_server.script(says("One."), Behaviour(text="The second answer.", hold_after=1), says("Three."))
    async with talking(alice_program, long_history(20), agent=agent) as talk:
        await talk.ask("One?")
        asked = {"content": "Two?", "headers": {"Prefer": "respond-async"}}
        await alice_program.post(f"conversations/{talk.id}/messages", **asked)
        await wait_for_words(model_server, request=2)
        await talk.post("inject", 202, content="Three?")
        model_server.release()
        await settle()
        assert [row["last_position"] for row in await talk.compactions()] == [19, 23], "two turns passed"


async def test_a_continued_answer_belongs_to_the_same_turn(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    line = log("turn {turn}")
    used_tools = hook(log("used tools"), {"type": "tool_calls", "threshold": 0})
    agent = await make_agent(
        hook(line), used_tools | {"id": "tools"}, hook(line, on="turn_end", id="end"), tools=["calculator"]
    )
    model_server.script(asks_for("calculator", expression="1+1"), fails(401, "No such key."), says("Two."))
    async with talking(alice_program, agent=agent) as talk:
        failed = await talk.ask("One?", status=502)
        run = failed["error"]["details"]["run_id"]
        await alice_program.post(f"runs/{run}/continue")
        await settle()
        await talk.ask("Two?")
        told = [(event["hook_id"], event["text"]) for event in await talk.events("hook")]
    assert told == [
        ("h", "turn 1"),
        ("h", "turn 1"),
        ("tools", "used tools"),
        ("end", "turn 1"),
        ("h", "turn 2"),
        ("end", "turn 2"),
    ]


PICTURE = {
    "type": "image",
    "data_url": "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEklEQVR4nGP8z4AdMOEQH6QSAM1BAQ/oQeJvAAAAAElFTkSuQmCC",
}


@pytest.mark.parametrize("question", ["What is it?", [PICTURE]], ids=["words", "a picture alone"])
async def test_text_or_a_picture_alone_counts_as_a_question(
    alice_program: Program, model: ModelConfig, model_server: ModelServer, question: Any
) -> None:
    used_tools = {"type": "tool_calls", "threshold": 0}
    agent = await make_agent(
        hook(log("{messages} messages")), hook(log("tools"), used_tools, id="tools"), tools=["calculator"]
    )
    model_server.script(asks_for("calculator", expression="1+1"), says("2."), says("A red square."))
    async with talking(alice_program, agent=agent) as talk:
        await talk.ask("One?")
        await talk.ask(question)
        assert [event["text"] for event in await talk.events("hook")] == ["2 messages", "6 messages"]


@pytest.mark.mechanism("ours.hook-levels")
async def test_hooks_of_deployment_agent_and_conversation_all_fire_and_the_nearest_wins(
    alice_program: Program, model: ModelConfig, settings: Any
) -> None:
    settings.HOOKS = [hook(log("of the deployment"), id="wide"), hook(log("replaced"), id="near")]
    agent = await make_agent(hook(log("of the agent"), id="agent"))
    own = hook(inject("Of the conversation."), id="near")
    async with talking(alice_program, agent=agent, hooks=[own]) as talk:
        await talk.ask("One?")
        fired = [(event["hook_id"], event["action"]) for event in await talk.events("hook")]
        assert fired == [("wide", "log"), ("near", "inject_message"), ("agent", "log")]


async def test_a_conversations_hook_at_the_end_of_a_turn_needs_no_agent(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    own = hook(inject("That was turn {turn}."), on="turn_end")
    async with talking(alice_program, hooks=[own]) as talk:
        await talk.ask("One?")
        await talk.ask("Two?")
    assert any("That was turn 1." in str(message["content"]) for message in last_chat(model_server))


@pytest.mark.mechanism("ours.hook-levels")
async def test_users_cannot_declare_hooks_that_log_or_call_module_actions(
    alice_program: Program, model: ModelConfig
) -> None:
    async with talking(alice_program) as talk:
        path = f"conversations/{talk.id}"
        for refused in (log("to the operator"), {"type": "module_action", "action": "conversation.pin"}):
            answer = await alice_program.patch(path, hooks=[hook(refused)])
            assert answer.status_code == 422
            assert answer.json()["error"]["details"][0]["field"] == "hooks"
        twice = [hook(inject("One")), hook(inject("Two"))]
        assert (await alice_program.patch(path, hooks=twice)).status_code == 422
        taken = await alice_program.patch(path, hooks=[hook(inject("One"))])
        assert taken.json()["hooks"] == [hook(inject("One")) | {"cooldown": 0.0}]
        assert (await alice_program.patch(path, hooks=None)).json()["hooks"] == []


@pytest.mark.parametrize("role", ["system", "user"])
async def test_an_injected_message_precedes_the_question_in_one_request_only(
    alice_program: Program, model: ModelConfig, model_server: ModelServer, role: str
) -> None:
    second = {"type": "turn_count", "count": 2}
    agent = await make_agent(hook(inject("It is turn {turn}.", role), second))
    async with talking(alice_program, agent=agent) as talk:
        for question in ("One?", "Two?", "Three?"):
            await talk.ask(question)
        first, asked, third = [request.messages for request in model_server.requests_of("chat")]
        assert asked[0]["role"] == "system"
        assert asked[-2:] == [{"role": role, "content": "It is turn 2."}, {"role": "user", "content": "Two?"}]
        assert "It is turn" not in json.dumps([first, third]), "it is not stored as anybody's message"
        messages = (await alice_program.get(f"conversations/{talk.id}/messages")).json()["items"]
        assert len(messages) == 6


async def test_the_inspector_shows_the_message_that_a_hook_would_add(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    agent = await make_agent(hook(inject("It is turn {turn}.")))
    async with talking(alice_program, agent=agent) as talk:
        seen = await talk.inspect("One?")
        assert [(piece["source"], piece["content"]) for piece in seen["messages"][1:]] == [
            ("hook", "It is turn 1."),
            ("question", "One?"),
        ]
        assert sum(piece["tokens"] for piece in seen["messages"]) == seen["total_tokens"]
        assert sum(seen["parts"].values()) == seen["total_tokens"]
        await talk.ask("One?")
        assert [message["content"] for message in last_chat(model_server)] == [
            piece["content"] for piece in seen["messages"]
        ]


async def test_a_hooks_system_message_becomes_a_user_message_if_the_server_refuses_it(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    agent = await make_agent(hook(inject("Be brief.")))
    model_server.script(fails(400, "System message must be at the beginning."))
    async with talking(alice_program, agent=agent) as talk:
        await talk.ask("One?")
        refused, taken = [request.messages for request in model_server.requests_of("chat")]
        assert [message["role"] for message in refused] == ["system", "system", "user"]
        assert [message["role"] for message in taken] == ["system", "user", "user"]


@pytest.mark.mechanism("digitorn.hooks")
async def test_a_message_injected_at_a_turns_end_is_sent_with_the_next_turn(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    agent = await make_agent(
        hook(
            inject("You answered once."),
            {"type": "message_count", "threshold": 2},
            on="turn_end",
            cooldown=60,
        )
    )
    async with talking(alice_program, agent=agent) as talk:
        for question in ("One?", "Two?", "Three?"):
            await talk.ask(question)
        asked = [json.dumps(request.messages) for request in model_server.requests_of("chat")]
        assert ["You answered once." in messages for messages in asked] == [False, True, False]


@pytest.mark.mechanism("digitorn.hooks")
async def test_a_cooldown_is_stored_in_the_database(alice_program: Program, model: ModelConfig) -> None:
    agent = await make_agent(hook(log("now"), cooldown=3_600))
    async with talking(alice_program, agent=agent) as talk:
        await talk.ask("One?")
        await talk.ask("Two?")
        assert len(await talk.events("hook")) == 1
        row = await Conversation.objects.aget(pk=talk.id)
        assert list(row.hook_state["fired"]) == ["h"]
        an_hour_ago = (clock.now() - timedelta(seconds=3_601)).isoformat()
        await Conversation.objects.filter(pk=talk.id).aupdate(hook_state={"fired": {"h": an_hour_ago}})
        await talk.ask("Three?")
        assert len(await talk.events("hook")) == 2


@pytest.mark.mechanism("digitorn.hook-module")
async def test_module_actions_are_carried_out_and_reported(
    alice_program: Program, model: ModelConfig
) -> None:
    rename = {
        "type": "module_action",
        "module": "conversation",
        "action": "rename",
        "params": {"title": "Long"},
    }
    agent = await make_agent(
        hook(rename, {"type": "message_count", "threshold": 2}),
        hook({"type": "module_action", "action": "conversation.pin"}, id="p"),
    )
    async with talking(alice_program, agent=agent) as talk:
        await talk.ask("One?")
        await talk.ask("Two?")
        shown = (await alice_program.get(f"conversations/{talk.id}")).json()
        assert (shown["title"], shown["pinned"]) == ("Long", True)
        assert [event["text"] for event in await talk.events("hook")].count(
            "The conversation was named Long."
        ) == 1
        assert any(
            event["conversation"]["title"] == "Long" for event in await talk.events("conversation.updated")
        )


@pytest.mark.mechanism("digitorn.hook-module")
async def test_a_failing_hook_is_reported_and_does_not_prevent_the_answer(
    alice_program: Program, model: ModelConfig
) -> None:
    agent = await make_agent(
        hook({"type": "module_action", "action": "moon.rise"}, id="broken"),
        hook(log("still here"), id="next"),
    )
    async with talking(alice_program, agent=agent) as talk:
        answer = await talk.ask("One?")
        assert answer["message"]["status"] == "complete"
        told = {event["hook_id"]: event["text"] for event in await talk.events("hook")}
        assert told["broken"].startswith("It failed: ")
        assert told["next"] == "still here"


async def test_an_injected_message_that_leaves_no_room_for_the_question_is_left_out(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    agent = await make_agent(hook(inject("字" * 90_000)))
    async with talking(alice_program, agent=agent) as talk:
        assert (await talk.inspect("One?"))["total_tokens"] < 4_000
        for mode in ("react", "plan"):
            answer = await talk.ask("One?", mode=mode)
            assert answer["message"]["status"] == "complete"
        assert not any("字" in request.text for request in model_server.requests)


@pytest.mark.mechanism("digitorn.hook-compact")
async def test_a_declared_compaction_replaces_automatic_compaction_and_uses_its_own_settings(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    aggressive = hook(
        {"type": "compact_context", "strategy": "truncate", "keep_recent": 4},
        {"type": "context_pressure", "threshold": 0.2},
        id="aggressive_compact",
        on="turn_end",
        cooldown=0,
    )
    agent = await make_agent(aggressive)
    async with talking(alice_program, long_history(60, padding=100), agent=agent) as talk:
        seen = await talk.inspect()
        assert seen["policy"]["auto_compact"] == {"value": False, "from": "hooks"}
        await talk.ask("One?")
        [row] = await talk.compactions()
        assert (row["status"], row["strategy"], row["kept_count"]) == ("done", "truncate", 4)
        await talk.ask("Two?")
        assert len([m for m in last_chat(model_server) if m["content"].startswith("Note ")]) == 2
        assert not model_server.requests_of("summary")


async def test_a_hook_measures_an_extract_and_its_reminder_as_they_are_sent(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.defaults["summary"] = fails(401, "Incorrect API key provided.")
    async with talking(alice_program, long_history(20, padding=100)) as talk:
        await talk.post("compact")
        await work()
        [row] = await talk.compactions()
        assert row["is_extract"]
        asked = await talk.ask("And now?")
        loaded = await in_database(load_turn_end)(UUID(asked["run_id"]))
        assert loaded is not None
        measured = await in_database(measure_turn)(loaded)
        without = replace(loaded, inputs=replace(loaded.inputs, checkpoint=None))
        others = await in_database(measure_turn)(without)
    assert "An extract of" in last_chat(model_server)[1]["content"]
    view = loaded.assemble().view
    assert view.summary
    assert view.reminder
    assert measured.tokens - others.tokens == view.summary.tokens + view.reminder.tokens


async def test_two_turns_pass_between_compactions_of_a_hook(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    eager = hook(
        {"type": "compact_context", "strategy": "summarize", "keep_recent": 2, "summary_max_tokens": 300},
        {"type": "message_count", "threshold": 3},
    )
    model_server.defaults["chat"] = says("An answer of some length. " * 20, sends_usage=False)
    agent = await make_agent(eager)
    async with talking(alice_program, long_history(20, padding=100), agent=agent) as talk:
        counts = []
        for number in range(7):
            await talk.ask(f"Question {number}?")
            counts.append(len(model_server.requests_of("summary")))
        assert counts == [1, 1, 1, 2, 2, 2, 3]
        limits = {row.summary_max_tokens async for row in Compaction.objects.all()}
        assert limits == {300}
        assert model_server.requests_of("summary")[0].body["max_tokens"] == 375


async def test_a_users_hook_cannot_exceed_the_operators_summary_length(
    alice_program: Program, model: ModelConfig
) -> None:
    longest = {"type": "compact_context", "keep_recent": 2, "summary_max_tokens": 4_000}
    async with talking(alice_program, long_history(20), hooks=[hook(longest)]) as talk:
        await talk.ask("And now?")
        limits = [row.summary_max_tokens async for row in Compaction.objects.all()]
    assert limits == [1_024]


async def test_a_hooks_background_summary_is_queued_for_the_worker(
    alice_program: Program, model: ModelConfig
) -> None:
    agent = await make_agent(
        hook({"type": "compact_context", "strategy": "checkpoint", "keep_recent": 2}, on="turn_end")
    )
    async with talking(alice_program, long_history(20), agent=agent) as talk:
        await talk.ask("One?")
        assert [row["status"] for row in await talk.compactions()] == ["pending"]
        assert await work() == 1
        assert [row["status"] for row in await talk.compactions()] == ["done"]


async def test_the_deployments_compaction_switch_overrides_hooks(
    alice_program: Program, model: ModelConfig, settings: Any
) -> None:
    settings.ENABLE_COMPACTION = False
    eager = hook({"type": "compact_context", "strategy": "truncate", "keep_recent": 2})
    agent = await make_agent(eager, hook(log("here"), id="l"))
    async with talking(alice_program, long_history(20), agent=agent) as talk:
        await talk.ask("One?")
        assert await talk.compactions() == []
        assert [event["hook_id"] for event in await talk.events("hook")] == ["l"]


@pytest.mark.mechanism("ours.time-limit")
async def test_an_agents_time_limit_cuts_the_answer_and_keeps_its_text(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.script(says("one two three four five six", hold_after=3))
    agent = await make_agent(timeout_s=1.0)
    async with talking(alice_program, agent=agent) as talk:
        cut = (await talk.ask("One?"))["message"]
        assert (cut["status"], cut["error"]["category"]) == ("cut", "bound")
        assert "time limit of 1 s" in cut["error"]["message"]
        assert cut["content"].startswith("one two")


async def test_an_agents_time_limit_before_any_text_is_an_error(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.script(says("one two", hold_after=0))
    agent = await make_agent(timeout_s=1.0)
    async with talking(alice_program, agent=agent) as talk:
        refused = await talk.ask("One?", status=504)
        assert "time limit of 1 s" in refused["error"]["message"]


async def test_an_agent_uses_its_own_prompt_model_and_temperature(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    other = await in_database(ModelConfig.objects.create)(
        name="Other", model_id="other-model", base_url=model_server.base_url
    )
    agent = await make_agent(system_prompt="You speak in rhymes.", model=other, temperature=0.3)
    async with talking(alice_program, agent=agent) as talk:
        await talk.ask("One?")
        [asked] = model_server.requests_of("chat")
        assert asked.messages[0]["content"].startswith("You speak in rhymes.")
        assert (asked.body["model"], asked.body["temperature"]) == ("other-model", 0.3)
        await alice_program.patch(f"conversations/{talk.id}", model="Test")
        await talk.ask("Two?")
        assert model_server.requests_of("chat")[-1].body["model"] == "test-model"
        await alice_program.patch(f"conversations/{talk.id}", agent=None)
        await talk.ask("Three?")
        assert "rhymes" not in last_chat(model_server)[0]["content"]


@pytest.mark.parametrize(("cooldown", "refusal"), [("1e999", (400, "malformed")), ("1e14", (422, "invalid"))])
async def test_a_cooldown_longer_than_any_conversation_is_refused(
    alice_program: Program, cooldown: str, refusal: tuple[int, str]
) -> None:
    declared = json.dumps({"hooks": [hook(inject("Be brief."), cooldown=7)]}).replace("7", cooldown)
    refused = await alice_program.call("POST", "conversations", body=declared.encode())
    assert (refused.status_code, refused.error["code"]) == refusal


@pytest.mark.parametrize("strange", ["\x00", "\ud800"])
async def test_characters_that_the_database_cannot_store_are_replaced_in_a_summary(
    alice_program: Program, model: ModelConfig, model_server: ModelServer, strange: str
) -> None:
    told = (
        f"The notes{strange} are about numbers, QX-00001 among them, and about plans for a long time. " * 10
    )
    model_server.defaults["summary"] = says(told)
    eager = hook({"type": "compact_context", "strategy": "summarize", "keep_recent": 2})
    async with talking(alice_program, long_history(20, padding=100), agent=await make_agent(eager)) as talk:
        await talk.ask("And now?")
        [row] = await talk.compactions()
        assert row["status"] == "done"
        assert row["summary"].startswith("The notes\ufffd are about numbers, QX-00001")
