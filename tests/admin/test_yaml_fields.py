"""Lists and mappings in the panel's forms: YAML or JSON is accepted, YAML is shown, and invalid text is kept."""

from __future__ import annotations

import html
from typing import Any

import pytest
from django.test import Client

from agents.presets.yaml_text import read_yaml
from chatapp.accounts.models import User
from chatapp.agent_presets.admin.agents import AgentForm
from chatapp.agent_presets.admin.hooks import HooksField, check_hook_field
from chatapp.agent_presets.models import Agent, DeploymentHook, McpServer
from chatapp.context.admin import OF_SEVERAL_LINES, PolicyField, check_policy_field
from chatapp.conversations.actions.conversations import create_conversation
from chatapp.conversations.models import Conversation
from chatapp.operations import clock
from chatapp.providers.models import ModelConfig
from memory.window.policy import ContextPolicy

pytestmark = [pytest.mark.django_db]

HOOK = """\
id: long
on: turn_start
condition:
  type: always
action:
  type: inject_message
  message: |-
    One.
    Two.
"""
HOOKS = "- " + HOOK.strip().replace("\n", "\n  ")
AGENT = {"name": "Mine", "mode": "react", "timeout_s": "0", "enabled": "on"}


@pytest.fixture
def conversation(alice: User) -> Conversation:
    return create_conversation(user=alice, now=clock.now())


def shown(page: Any) -> str:
    return html.unescape(page.content.decode())


def test_hooks_and_policies_are_entered_and_shown_as_yaml(admin_client: Client) -> None:
    form = AGENT | {"context_policy": "keep_recent: 7", "hooks": HOOKS}
    made = admin_client.post("/admin/chatapp/agent/add/", form)
    assert made.status_code == 302, made.content.decode()
    agent = Agent.objects.get()
    assert agent.context_policy == {"keep_recent": 7}
    assert (agent.hooks[0]["on"], agent.hooks[0]["action"]["message"]) == ("turn_start", "One.\nTwo.")
    page = shown(admin_client.get(f"/admin/chatapp/agent/{agent.pk}/change/"))
    assert "keep_recent: 7" in page
    assert "- id: long\n  'on': turn_start\n" in page
    assert "message: |-\n      One.\n      Two.\n" in page


@pytest.mark.parametrize(
    ("written", "changes"), [('{"keep_recent": 7}', []), ("keep_recent: 8", ["context_policy"])]
)
def test_the_same_value_in_another_notation_is_no_change(written: str, changes: list[str]) -> None:
    agent = Agent.objects.create(name="Mine", context_policy={"keep_recent": 7}, uses_memory=False)
    assert AgentForm(AGENT | {"context_policy": written}, instance=agent).changed_data == changes


WRONG = [
    r'{"keep_recent": "\ud800"}',
    r'["\u0000"]',
    "[1, .nan]",
    "a: [",
    "&a [*a]",
    "!!binary /w==",
    "[" * 3_000,
]


@pytest.mark.parametrize("text", WRONG)
def test_text_that_cannot_be_parsed_is_shown_again_as_entered(
    admin_client: Client, conversation: Conversation, text: str
) -> None:
    model = ModelConfig.objects.create(name="Main", model_id="m", base_url="http://127.0.0.1:9/v1")
    server = McpServer.objects.create(name="books", url="http://203.0.113.7/mcp")
    pages = [
        ("agent/add", AGENT | {"context_policy": text}),
        ("agent/add", AGENT | {"hooks": text}),
        ("deploymenthook/add", {"declaration": text}),
        (f"conversation/{conversation.pk}/change", {"hooks": text}),
        (f"modelconfig/{model.pk}/change", {"name": "Main", "context_policy": text}),
        (f"mcpserver/{server.pk}/change", {"name": "books", "tool_filter": text}),
    ]
    for path, form in pages:
        page = admin_client.post(f"/admin/chatapp/{path}/", form)
        assert page.status_code == 200, path
        assert "This cannot be read: it " in shown(page), path
        assert f">\n{text}</textarea>" in shown(page), path
    assert not Agent.objects.exists()
    assert not DeploymentHook.objects.exists()


@pytest.mark.parametrize("title", HooksField.guide.examples)
def test_every_example_of_a_hook_can_be_saved(db: None, title: str) -> None:
    assert check_hook_field([read_yaml(HooksField.guide.examples[title])], "agent")


@pytest.mark.parametrize("title", PolicyField.guide.examples)
def test_every_example_of_a_policy_can_be_saved(title: str) -> None:
    assert check_policy_field(read_yaml(PolicyField.guide.examples[title]), "agent")


def test_the_form_of_a_policy_has_a_control_for_every_single_line_field() -> None:
    parts = {part.name: part for part in PolicyField.guide.parts}
    assert set(parts) == set(ContextPolicy.model_fields) - OF_SEVERAL_LINES
    assert parts["strategy"].choices == ("checkpoint", "summarize", "truncate", "turns", "structured")
    assert (parts["auto_compact"].kind, parts["keep_recent"].default) == ("flag", "10")
