"""How each strategy treats a conversation that grew too long, over the REST API. Tests do the worker's part."""

from __future__ import annotations

import asyncio
import itertools
import json
from datetime import timedelta
from typing import Any

import pytest

from chatapp.agent_presets.models import Agent
from chatapp.compaction import selectors as compaction_selectors
from chatapp.compaction import tasks as compaction_tasks
from chatapp.compaction.models import Compaction
from chatapp.long_term.models import MemoryEntry
from chatapp.operations import clock
from chatapp.operations.database.threads import in_database
from chatapp.providers.models import ModelConfig, Usage
from memory.summaries.summary import EARLIER_TRUNCATED
from tests.acceptance.conversations import long_history
from tests.api.program import Program
from tests.context_engine.talking import Talk, last_chat, talking, until, work
from tests.servers.behaviour import ERRORS, Behaviour, says
from tests.servers.openai_server import ModelServer

STRATEGIES = ("checkpoint", "summarize", "truncate", "turns", "structured")
FULL = long_history(120, padding=100)
"""Over the trigger of the scripted model's window, below its budget."""

pytestmark = pytest.mark.usefixtures("transactional_db")


@pytest.mark.mechanism("ours.policy-layers")
@pytest.mark.parametrize("level", ["environment", "model", "agent", "conversation"])
async def test_each_strategy_can_be_chosen_at_each_level_and_the_inspector_names_the_level(
    alice_program: Program, model: ModelConfig, settings: Any, level: str
) -> None:
    agent = await in_database(Agent.objects.create)(name="Scribe")
    async with talking(alice_program, FULL[:20], agent="Scribe") as talk:
        for strategy in STRATEGIES:
            policy = {"strategy": strategy}
            if level == "environment":
                settings.CONTEXT_POLICY = policy
            elif level == "model":
                await ModelConfig.objects.filter(pk=model.pk).aupdate(context_policy=policy)
            elif level == "agent":
                await Agent.objects.filter(pk=agent.pk).aupdate(context_policy=policy)
            else:
                await alice_program.patch(f"conversations/{talk.id}", context_policy=policy)
            seen = await talk.inspect()
            assert seen["policy"]["strategy"] == {"value": strategy, "from": level}
            assert (await talk.post("compact", preview=True))["strategy"] == strategy


@pytest.mark.mechanism("digitorn.truncate")
async def test_truncation_leaves_a_mark_and_calls_no_summary_model(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    policy = {"strategy": "truncate", "trigger": 0.5}
    async with talking(alice_program, FULL, context_policy=policy) as talk:
        answer = await talk.ask("And now?")
        system, mark, reminder, first, *_ = last_chat(model_server)
        assert (system["role"], mark) == ("system", {"role": "user", "content": EARLIER_TRUNCATED})
        assert reminder["content"].startswith("<reminder>")
        assert first["content"].startswith("Note ")

        [row] = await talk.compactions()
        assert (row["status"], row["strategy"], row["summary"]) == ("done", "truncate", EARLIER_TRUNCATED)
        left_out = f"Earlier context ({row['message_count']} messages) was left out without a summary."
        assert answer["compact"]["text"] == left_out
        await talk.ask("And then?")
        assert last_chat(model_server)[1] == mark
        assert not model_server.requests_of("summary")
        entry = await MemoryEntry.objects.aget()
        assert "QX-" in entry.text
        assert EARLIER_TRUNCATED not in entry.text


@pytest.mark.mechanism("cowagent.half", "cowagent.summary-joins")
async def test_after_twenty_turns_the_older_half_leaves_and_its_summary_joins_the_next_turn(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.defaults["summary"] = says("Ten notes about seven places, with codes QX. SUMMARY-MARK.")
    async with talking(alice_program, long_history(44), context_policy={"strategy": "turns"}) as talk:
        await talk.ask("The first question")
        asked = last_chat(model_server)
        assert "SUMMARY-MARK" not in json.dumps(asked), "it is written beside the answer"
        kept = [message["content"] for message in asked if message["content"].startswith("Note ")]
        assert kept[0].startswith("Note 22 "), "11 of 22 turns left"
        assert len(kept) == 22

        assert await work() == 1
        await talk.ask("The second question")
        asked = last_chat(model_server)
        assert "SUMMARY-MARK" in asked[1]["content"]
        assert kept[0] in [message["content"] for message in asked[2:4]]
        [row] = await talk.compactions()
        assert (row["strategy"], row["message_count"]) == ("turns", 22)
        days = (await alice_program.get("memory/days")).json()["items"]
        day = (await alice_program.get(f"memory/days/{days[0]['day']}")).json()
        assert "SUMMARY-MARK" in day["markdown"]


@pytest.mark.mechanism("agentscope.structured")
async def test_a_structured_summary_has_section_headings(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    fields = {
        "task_overview": "Keep notes of seven places.",
        "current_state": "Notes up to QX-00100 are kept.",
        "important_discoveries": "The harbour is first.",
        "next_steps": "More notes.",
        "context_to_preserve": "Codes begin with QX.",
    }
    model_server.defaults["summary"] = says(json.dumps(fields))
    async with talking(alice_program, FULL, context_policy={"strategy": "structured"}) as talk:
        await talk.ask("And now?")
        assert await work() == 1
        [row] = await talk.compactions()
        assert row["strategy"] == "structured"
        assert row["fallback_reason"] is None
        for heading in ("Task overview", "Current state", "Important discoveries", "Next steps"):
            assert f"## {heading}" in row["summary"]
        [asked] = model_server.requests_of("summary")
        assert "important_discoveries" in asked.messages[0]["content"]


@pytest.mark.mechanism("digitorn.summarize")
@pytest.mark.parametrize(
    "policy", [{"strategy": "summarize"}, {"strategy": "checkpoint", "wait_for_summary": True}]
)
async def test_an_inline_summary_is_in_the_very_request_that_needed_it(
    alice_program: Program, model: ModelConfig, model_server: ModelServer, policy: dict[str, Any]
) -> None:
    model_server.defaults["summary"] = says("Notes about places, with codes QX. SUMMARY-MARK.")
    async with talking(alice_program, FULL, context_policy=policy | {"trigger": 0.5}) as talk:
        answer = await talk.ask("And now?")
        assert "SUMMARY-MARK" in last_chat(model_server)[1]["content"]
        assert [event["state"] for event in await talk.events("compact")] == ["started", "done"]
        assert answer["compact"]["state"] == "done"
        assert answer["usage"]["compaction_tokens"] > 0
        times = [
            request.times["arrived"]
            for kind in ("summary", "chat")
            for request in model_server.requests_of(kind)
        ]
        assert times == sorted(times), "the summary first, then the answer"
        assert await work() == 0, "nothing is left for the worker"


@pytest.mark.mechanism("fim.load-compacts")
async def test_the_default_strategy_answers_at_once_and_summarises_in_the_background(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    async with talking(alice_program, FULL, context_policy={"trigger": 0.5}) as talk:
        await talk.ask("And now?")
        assert not model_server.requests_of("summary")
        assert [row["status"] for row in await talk.compactions()] == ["pending"]
        assert await work() == 1
        await talk.ask("And then?")
        assert "Summary: what was said before" in last_chat(model_server)[1]["content"]


@pytest.mark.parametrize("failure", [ERRORS["server"](), says(""), says("x" * 60_000), ERRORS["wrong_key"]()])
async def test_a_failed_inline_summary_becomes_an_extract_and_never_an_error(
    alice_program: Program, model: ModelConfig, model_server: ModelServer, failure: Behaviour
) -> None:
    model_server.defaults["summary"] = failure
    async with talking(alice_program, FULL, context_policy={"strategy": "summarize", "trigger": 0.5}) as talk:
        answer = await talk.ask("And now?")
        assert answer["message"]["status"] == "complete"
        [row] = await talk.compactions()
        assert row["status"] == "done"
        assert row["fallback_reason"]
        assert "QX-" in row["summary"]
        calls = len(model_server.requests_of("summary"))
        await talk.ask("And then?")
        assert len(model_server.requests_of("summary")) == calls, "nothing loops"


async def test_stopping_a_run_during_an_inline_summary_leaves_the_summary_to_the_worker(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.script(says("Never told.", hold_after=0), kind="summary")
    async with talking(alice_program, FULL, context_policy={"strategy": "summarize", "trigger": 0.5}) as talk:
        sent = await begin(talk, model_server)
        await alice_program.post(f"runs/{sent['run_id']}/stop")
        await until(lambda: run_status(alice_program, sent["run_id"]), "stopped")
        assert [row["status"] for row in await talk.compactions()] == ["running"]
        assert await work() == 1
        [row] = await talk.compactions()
        assert row["status"] == "done"
        assert not model_server.requests_of("chat")


async def test_stopping_a_run_during_an_inline_summary_keeps_its_calls_in_the_ledger(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.script(says("Never told to anybody.", hold_after=2), kind="summary")
    async with talking(alice_program, FULL, context_policy={"strategy": "summarize", "trigger": 0.5}) as talk:
        sent = await begin(talk, model_server)
        await asyncio.to_thread(
            model_server.wait_until, lambda server: "first_token" in server.requests_of("summary")[0].times
        )
        await alice_program.post(f"runs/{sent['run_id']}/stop")
        await until(lambda: run_status(alice_program, sent["run_id"]), "stopped")
        # The thread of the summary ends after its run.
        await until(Usage.objects.filter(purpose="compaction").acount, 1)
        assert await work() == 1
        assert await Usage.objects.filter(purpose="compaction").acount() == 2


@pytest.mark.mechanism("ours.inline-killed")
async def test_a_worker_that_takes_over_an_inline_summary_writes_the_final_one(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    """E.g. because the web process stalled for longer than its lease."""
    model_server.script(
        says("Too late. LATE-MARK.", hold_after=0),
        says("In time, with codes QX. TAKEN-OVER-MARK."),
        kind="summary",
    )
    async with talking(alice_program, FULL, context_policy={"strategy": "summarize", "trigger": 0.5}) as talk:
        sent = await begin(talk, model_server)
        await Compaction.objects.aupdate(lease_expires_at=clock.now() - timedelta(seconds=1))
        assert await work() == 1
        model_server.release()
        await until(lambda: run_status(alice_program, sent["run_id"]), "complete")
        [row] = await talk.compactions()
        assert "TAKEN-OVER-MARK" in row["summary"]
        assert "TAKEN-OVER-MARK" in last_chat(model_server)[1]["content"]
        assert await MemoryEntry.objects.acount() == 1


async def begin(talk: Talk, server: ModelServer) -> dict[str, Any]:
    """Send a message and return once its summary is being written."""
    answer = await talk.program.post(
        f"conversations/{talk.id}/messages", content="And now?", headers={"prefer": "respond-async"}
    )
    await asyncio.to_thread(server.wait_until, lambda server: bool(server.requests_of("summary")))
    sent: dict[str, Any] = answer.json()
    return sent


async def run_status(program: Program, run_id: str) -> str:
    return str((await program.get(f"runs/{run_id}")).json()["status"])


async def test_an_undone_summary_is_not_made_again_automatically(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    """If a summary that was prepared early is undone, all messages stay as long as they fit."""
    model_server.defaults["chat"] = says("Yes.", sends_usage=False)
    async with talking(alice_program, FULL[:104]) as talk:
        before = (await talk.inspect("And now?"))["messages"]
        await in_database(compaction_tasks.plan_compaction)(talk.id)
        assert await work() == 1
        [row] = await talk.compactions("done")
        assert (await talk.inspect("And now?"))["messages"] != before
        await talk.post(f"compactions/{row['id']}/undo")
        assert (await talk.inspect("And now?"))["messages"] == before

        for question in ("One?", "Two?", "Three?", "Four?"):
            await talk.ask(question)
            assert await work() == 0
        assert [row["status"] for row in await talk.compactions()] == ["undone"]
        assert "<conversation_summary>" not in json.dumps(last_chat(model_server))

        asked_for = await talk.post("compact")
        assert asked_for["status"] == "pending", "the user may still ask for one"


async def test_workers_that_plan_and_compact_concurrently_make_one_checkpoint(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    async with talking(alice_program, FULL) as talk:
        await asyncio.gather(*(in_database(compaction_tasks.plan_compaction)(talk.id) for _ in range(4)))
        [row] = await talk.compactions()
        await asyncio.gather(*(in_database(compaction_tasks.compact)(row["id"]) for _ in range(4)))
        assert [row["status"] for row in await talk.compactions()] == ["done"]
        assert len(model_server.requests_of("summary")) == 1
        assert await MemoryEntry.objects.acount() == 1


async def test_a_preview_reports_the_span_calls_no_model_and_writes_nothing(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    async with talking(alice_program, FULL[:40]) as talk:
        events = len(await talk.events())
        preview = await talk.post("compact", preview=True)
        assert (preview["first_position"], preview["last_position"]) == (0, 29)
        assert (preview["message_count"], preview["kept_count"]) == (30, 10)
        assert preview["tokens_after"] < preview["tokens_before"]
        assert "QX-00003" in preview["summary"]
        assert await talk.compactions() == []
        assert len(await talk.events()) == events
        assert not model_server.requests
        done = await talk.post("compact")
        assert (done["first_position"], done["last_position"]) == (0, 29)


async def test_there_is_nothing_to_preview_in_a_new_conversation(
    alice_program: Program, model: ModelConfig
) -> None:
    async with talking(alice_program) as talk:
        refused = await talk.post("compact", preview=True, status=409)
        assert refused["error"]["code"] == "nothing_to_compact"


async def test_a_cleared_context_stays_cleared_with_a_larger_model(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    large = await in_database(ModelConfig.objects.create)(
        name="Large", model_id="large", base_url=model_server.base_url, context_size=512_000
    )
    async with talking(alice_program, FULL[:40]) as talk:
        await talk.post("context/clear")
        await alice_program.patch(f"conversations/{talk.id}", model=str(large.pk))
        seen = await talk.inspect("And now?")
        assert seen["context_size"] == 512_000
        assert seen["compaction"]["strategy"] == "cleared"
        assert "QX-00003" not in json.dumps(seen["messages"])


@pytest.mark.mechanism("ours.backlog")
async def test_a_backlog_becomes_several_checkpoints_each_of_its_own_messages(
    alice_program: Program, model: ModelConfig, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The import is longer than one compaction may be, and the strategy otherwise summarises before an answer."""
    monkeypatch.setattr(compaction_selectors, "MAX_SPAN", 75)
    async with talking(
        alice_program, long_history(300, padding=80), context_policy={"strategy": "summarize"}
    ) as talk:
        await in_database(compaction_tasks.plan_compaction)(talk.id)
        assert await work() == 3
        rows = await talk.compactions("done")
        spans = [(row["first_position"], row["last_position"]) for row in rows]
        assert spans[0][0] == 0
        assert all(after[0] == before[1] + 1 for before, after in itertools.pairwise(spans))
        assert spans[-1][1] > 200


@pytest.mark.mechanism("ours.undo")
async def test_the_request_after_an_undo_equals_the_one_before_byte_for_byte(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.defaults["chat"] = says("Yes.", sends_usage=False)
    # Recall is off, because each answer adds a text to its ranking; test_checkpoints has it on.
    async with talking(alice_program, FULL[:60], context_policy={"recall_budget": 0}) as talk:
        answer = await talk.ask("Which note is about the harbour?")
        again = f"messages/{answer['message']['id']}/regenerate"
        await talk.post(again)
        row = await talk.post("compact")
        assert await work() == 1
        await talk.post(again)
        await talk.post(f"compactions/{row['id']}/undo")
        await talk.post(again)
        await talk.post(f"compactions/{row['id']}/redo")
        await talk.post(again)
        asked, before, compacted, undone, redone = [
            json.dumps(request.messages) for request in model_server.requests_of("chat")
        ]
        assert asked == before == undone
        assert compacted == redone
        assert "<conversation_summary>" in compacted
