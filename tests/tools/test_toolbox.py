"""The tools of a conversation: those of its agent, or the deployment's defaults."""

from __future__ import annotations

from datetime import timedelta

import pytest

from agents.tools.protocol import ToolCaller
from chatapp.agent_presets.models import Agent
from chatapp.context.tools import registry
from chatapp.conversations.actions.conversations import create_conversation
from chatapp.operations import clock

pytestmark = pytest.mark.django_db(transaction=True)


def names(tools):
    return [tool.spec.name for tool in tools]


@pytest.fixture
def conversation(alice):
    return create_conversation(user=alice, now=clock.now())


def test_without_an_agent_a_conversation_has_the_default_tools(conversation, settings):
    settings.DEFAULT_TOOLS = ["clock", "no_such_tool"]
    assert names(registry.tools_for(conversation)) == ["clock"]


def test_an_agent_has_only_the_tools_that_it_names(conversation):
    conversation.agent = Agent.objects.create(name="Sums", tools=["calculator"])
    assert names(registry.tools_for(conversation)) == ["calculator"]
    conversation.agent.tools = []
    assert registry.tools_for(conversation) == ()


def test_an_agent_that_chose_no_tools_has_the_default_tools(conversation, settings):
    settings.DEFAULT_TOOLS = ["calculator"]
    conversation.agent = Agent.objects.create(name="Any")
    assert names(registry.tools_for(conversation)) == ["calculator"]


def test_a_disabled_agent_provides_no_tools(conversation, settings):
    settings.DEFAULT_TOOLS = []
    conversation.agent = Agent.objects.create(name="Off", tools=["clock"], enabled=False)
    assert registry.tools_for(conversation) == ()


@pytest.mark.parametrize("tool", registry.BUILT_IN.values(), ids=registry.BUILT_IN)
def test_every_tool_has_a_timeout_and_a_closed_schema_without_user_ids(tool):
    parameters = tool.spec.parameters
    assert parameters["type"] == "object"
    assert parameters["additionalProperties"] is False
    assert not {"user", "user_id", "conversation_id", "run_id", "email"} & set(parameters["properties"])
    assert 0 < tool.traits.timeout_s <= 120
    assert tool.spec.description.endswith(".")


async def test_the_clock_uses_the_users_time_zone(transactional_db, alice):
    caller = ToolCaller(user_id=str(alice.pk), conversation_id="c", run_id="r")
    await type(alice).objects.filter(pk=alice.pk).aupdate(time_zone="Pacific/Kiritimati")
    told = (await registry.BUILT_IN["clock"].call({}, caller)).text
    there = clock.now() + timedelta(hours=14)
    assert f"{there:%Y-%m-%d}" in told
    assert "in Pacific/Kiritimati (UTC+1400" in told
