"""The settings, the budget and the summary model in force, as users and operators can see them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from chatapp.accounts.models import User
from chatapp.agent_presets.models import Agent
from chatapp.compaction.compactor import queue_next_compaction
from chatapp.compaction.models import Compaction
from chatapp.context.assembly import LoadedContext, load_context
from chatapp.conversations.models import Conversation
from chatapp.operations.database.threads import in_database
from chatapp.providers.models import ModelConfig
from memory.protocols import BaseMemory
from memory.tokens import text_message
from tests.context_engine.chatting import chatting, make_model, on_a_loop

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.mechanism("ours.policy-layers", "ours.inspector")
@on_a_loop
async def test_each_policy_layer_overrides_the_one_below_and_the_inspector_names_it(
    alice: User, settings: Any
) -> None:
    settings.CONTEXT_POLICY = {"keep_recent": 4, "trigger": 0.5, "summary_max_tokens": 500, "max_turns": 9}
    policy = {"trigger": 0.6, "summary_max_tokens": 600, "max_turns": 8}
    async with chatting(alice, context_policy=policy) as chat:
        agent = await Agent.objects.acreate(
            name="brief", context_policy={"summary_max_tokens": 700, "max_turns": 7}
        )
        await Conversation.objects.filter(pk=chat.conversation).aupdate(agent=agent)
        own = await chat.program.patch(
            f"conversations/{chat.conversation}", context_policy={"strategy": "turns", "max_turns": 6}
        )
        assert own.status_code == 200, own.content
        told = (await chat.see())["policy"]
        assert told["cooldown_turns"] == {"value": 2, "from": "default"}
        assert told["keep_recent"] == {"value": 4, "from": "environment"}
        assert told["trigger"] == {"value": 0.6, "from": "model"}
        assert told["summary_max_tokens"] == {"value": 700, "from": "agent"}
        assert told["max_turns"] == {"value": 6, "from": "conversation"}
        assert told["strategy"] == {"value": "turns", "from": "conversation"}


@pytest.mark.mechanism("holmes.switch")
@on_a_loop
async def test_the_environment_switches_compaction_off_for_everybody(alice: User, settings: Any) -> None:
    settings.ENABLE_COMPACTION = False
    async with chatting(alice, count=400, context_size=16_000, max_output_tokens=2_000) as chat:
        own = await chat.program.patch(
            f"conversations/{chat.conversation}", context_policy={"auto_compact": True}
        )
        assert own.status_code == 200, own.content
        seen = await chat.see()
        assert seen["policy"]["auto_compact"] == {"value": False, "from": "environment"}
        assert seen["total_tokens"] <= seen["budget_tokens"], "what is too much is cut all the same"
        await chat.ask()
        assert await in_database(queue_next_compaction)(UUID(chat.conversation)) is None
        for preview in (True, False):
            asked = await chat.post("compact", preview=preview)
            assert (asked.status_code, asked.json()["error"]["code"]) == (409, "compaction_off")
        assert not await Compaction.objects.aexists()


@pytest.mark.mechanism("fim.two-budgets")
@on_a_loop
async def test_the_budget_is_that_of_the_model_in_use(alice: User) -> None:
    async with chatting(alice, context_size=64_000, max_output_tokens=4_000) as chat:
        small = await in_database(make_model)(
            chat.server, name="Small", context_size=16_000, max_output_tokens=2_000
        )
        assert (await chat.see())["budget_tokens"] == 64_000 - 4_000 - 4_000
        assert (await chat.see(model=str(small.pk)))["budget_tokens"] == 16_000 - 2_000 - 4_000


@pytest.mark.parametrize("asks_by", ["conversation", "message"])
@on_a_loop
async def test_a_users_policy_never_exceeds_the_operators_for_the_model_in_use(
    alice: User, asks_by: str
) -> None:
    async with chatting(alice, context_size=64_000, max_output_tokens=4_000) as chat:
        policy = {"max_input_tokens": 3_000, "max_steps": 5}
        small = await in_database(make_model)(
            chat.server, name="Small", context_size=8_000, max_output_tokens=2_000, context_policy=policy
        )
        own = {"context_size": 50_000, "max_input_tokens": 40_000, "max_steps": 10, "keep_recent": 4}
        assert (
            await chat.program.patch(f"conversations/{chat.conversation}", context_policy=own)
        ).status_code == 200
        if asks_by == "conversation":
            chosen = await chat.program.patch(f"conversations/{chat.conversation}", model="Small")
            assert chosen.status_code == 200, chosen.content
        told = await chat.see(**({"model": str(small.pk)} if asks_by == "message" else {}))
        assert told["budget_tokens"] == 3_000
        assert told["policy"]["max_steps"] == {"value": 5, "from": "model"}
        assert told["policy"]["keep_recent"] == {"value": 4, "from": "conversation"}
        main = await ModelConfig.objects.aget(name="Main")
        assert (await chat.see(model=str(main.pk)))["policy"]["max_steps"]["value"] == 10


@pytest.mark.mechanism("digitorn.summary-model")
@on_a_loop
async def test_summaries_are_written_by_the_fast_model_unless_the_policy_names_another(alice: User) -> None:
    async with chatting(alice) as chat:
        fast = await in_database(make_model)(chat.server, name="Fast", model_id="fast-model")
        await in_database(make_model)(chat.server, name="Scribe", model_id="scribe-model")
        await ModelConfig.objects.filter(name="Main").aupdate(fast_model=fast)
        row = await chat.compact()
        assert chat.server.requests_of("summary")[-1].body["model"] == "fast-model"
        await chat.post(f"compactions/{row['id']}/undo")
        await ModelConfig.objects.filter(name="Main").aupdate(context_policy={"summary_model": "Scribe"})
        await chat.compact()
        assert chat.server.requests_of("summary")[-1].body["model"] == "scribe-model"


@pytest.mark.mechanism("fim.load-read-only", "fim.load-compacts")
@on_a_loop
async def test_the_stored_history_is_a_read_only_memory_that_reports_what_was_compacted(alice: User) -> None:
    async with chatting(alice) as chat:
        await chat.compact()
        loaded = await in_database(context_of)(chat.conversation)
        memory: BaseMemory = loaded.history
        whole = memory.get_messages()
        view = loaded.assemble().view
        assert (view.was_compacted, view.original_count, view.compacted_count) == (True, 60, 10)
        assert (len(whole), view.messages()[1].kind) == (10, "summary")
        assert view.history == whole
        assert whole[-1].text.startswith("Note 59")
        memory.add_message(text_message("user", "Never said."))
        memory.clear()
        assert memory.get_messages() == whole


def context_of(conversation_id: str) -> LoadedContext:
    conversation = Conversation.objects.select_related("user", "branch", "agent").get(pk=conversation_id)
    assert conversation.branch is not None
    return load_context(
        conversation=conversation,
        branch=conversation.branch,
        before_position=conversation.next_position,
        question=text_message("user", "And now?", kind="question"),
        config=ModelConfig.objects.get(name="Main"),
        now=conversation.last_activity_at,
    )
