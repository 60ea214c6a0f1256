"""Hooks declared on the deployment, an agent or a conversation, in YAML, the admin or the API: validation, and the
level that each hook reports."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.core.management import CommandError, call_command
from django.test import Client

from agents.presets.yaml_text import write_yaml
from chatapp.accounts.models import User
from chatapp.agent_presets.admin.hooks import EXAMPLE, DeploymentHookForm
from chatapp.agent_presets.models import Agent, DeploymentHook
from chatapp.conversations.actions.conversations import create_conversation
from chatapp.conversations.models import Conversation
from chatapp.operations import clock
from chatapp.providers.models import ModelConfig
from chatapp.realtime.event_log import read_after
from tests.api.program import Program
from tests.context_engine.talking import talking

ALWAYS = {"type": "always"}
HOOKS = """
hooks:
  - {id: wide, on: turn_start, condition: {type: always}, action: {type: log, message: "turn {turn}"}}
  - {id: late, condition: {type: message_count, threshold: 1}, action: {type: log, message: of the file}}
"""
AGENT = "agents: [{id: helper, brain: {provider: ollama, model: small}}]\n"


@pytest.fixture
def conversation(alice: User) -> Conversation:
    return create_conversation(user=alice, now=clock.now(), title="A secret matter")


def hook(name: str, text: str = "said", **more: Any) -> dict[str, Any]:
    action = {"type": "log", "message": text}
    return {"id": name, "on": "turn_start", "condition": ALWAYS, "action": action} | more


def load(folder: Path, text: str) -> str:
    file = folder / "agents.yaml"
    file.write_text(text, encoding="utf-8")
    said = io.StringIO()
    call_command("load_agents", str(file), stdout=said)
    return said.getvalue()


@pytest.mark.mechanism("ours.hook-levels")
@pytest.mark.usefixtures("transactional_db")
async def test_hooks_of_a_file_fire_in_every_conversation_and_the_trace_names_their_level(
    alice_program: Program, model: ModelConfig, tmp_path: Path, settings: Any
) -> None:
    settings.HOOKS = [hook("first"), hook("late", "of the environment")]
    said = await sync_to_async(load)(tmp_path, AGENT + HOOKS)
    assert "Hooks of every conversation: wide, late." in said
    await Agent.objects.acreate(name="Own", hooks=[hook("mine")])
    async with talking(alice_program, agent="Own") as talk:
        await Conversation.objects.filter(pk=talk.id).aupdate(hooks=[hook("here")])
        answer = await talk.ask("One?")
        trace = (await alice_program.get(f"runs/{answer['run_id']}/trace")).json()
    assert [(fired["hook_id"], fired["level"], fired["text"]) for fired in trace["hooks"]] == [
        ("first", "environment", "said"),
        ("wide", "deployment", "turn 1"),
        ("mine", "agent", "said"),
        ("here", "conversation", "said"),
        ("late", "deployment", "of the file"),
    ]


@pytest.mark.django_db
def test_reloading_a_file_updates_its_hooks_and_keeps_disabled_ones_disabled(tmp_path: Path) -> None:
    load(tmp_path, HOOKS)
    DeploymentHook.objects.filter(hook_id="wide").update(enabled=False)
    load(tmp_path, HOOKS.replace("of the file", "changed"))
    wide, late = DeploymentHook.objects.all()
    assert (wide.enabled, late.declaration["action"]["message"]) == (False, "changed")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (HOOKS.replace("always", "moon"), "hooks.0.condition"),
        (HOOKS.replace("late", "wide"), "hooks: there are two with the id wide"),
        (HOOKS.replace("{type: log, message: of the file}", "{type: module_action, action: moon.rise}"), "hooks.1.action: unknown action moon.rise"),
    ],
)  # fmt: skip
def test_invalid_hooks_in_a_file_are_refused_with_their_place_and_nothing_is_loaded(
    tmp_path: Path, text: str, sentence: str
) -> None:
    with pytest.raises(CommandError) as refused:
        load(tmp_path, AGENT + text)
    assert sentence in str(refused.value)
    assert not DeploymentHook.objects.exists()
    assert not Agent.objects.exists()


def of_conversation(conversation: Conversation, hooks: str) -> str:
    return f"conversations:\n  - {{id: {conversation.pk}, hooks: [{hooks}]}}\n"


def test_a_file_sets_the_hooks_of_one_conversation_and_an_event_announces_them(
    conversation: Conversation, alice_client: Client, tmp_path: Path
) -> None:
    here = "{id: here, on: turn_start, condition: {type: always}, action: {type: log, message: said}}"
    said = load(tmp_path, of_conversation(conversation, here))
    assert said == f"Hooks of conversation {conversation.pk}: here.\n"
    shown = alice_client.get(f"/api/v1/conversations/{conversation.pk}").json()
    assert [one["id"] for one in shown["hooks"]] == ["here"]
    [told] = read_after(conversation.pk, 0)
    assert told["conversation"]["hooks"] == shown["hooks"]
    assert "none any more" in load(tmp_path, of_conversation(conversation, ""))
    conversation.refresh_from_db()
    assert conversation.hooks == []


def test_a_file_that_names_a_missing_conversation_loads_nothing(
    conversation: Conversation, tmp_path: Path
) -> None:
    text = AGENT + HOOKS + of_conversation(conversation, "")
    conversation.delete()
    with pytest.raises(CommandError, match="there is no conversation"):
        load(tmp_path, text)
    assert not Agent.objects.exists()
    assert not DeploymentHook.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize("written", [r'"a\0b"', r'"\ud800"', ".inf", "!!binary /w==", "2026-13-45"])
def test_values_that_the_database_cannot_store_are_refused_before_anything_is_loaded(
    tmp_path: Path, written: str
) -> None:
    action = f"{{type: module_action, action: clock, params: {{at: {written}}}}}"
    with pytest.raises(CommandError, match="Nothing was loaded"):
        load(tmp_path, AGENT + f"hooks: [{{id: x, condition: {{type: always}}, action: {action}}}]")
    assert not Agent.objects.exists()
    assert not DeploymentHook.objects.exists()


# --- in the admin

WRONG = [
    (
        {"condition": {"type": "moon"}},
        "condition: unknown type moon; known types: context_pressure, turn_count,",
    ),
    ({"on": "noon"}, "on: Input should be"),
    ({"condition": {"type": "turn_count"}}, "condition › count: Field required"),
    ({"action": {"type": "module_action", "action": "a.b"}}, "unknown action a.b"),
]


def test_operators_declare_hooks_of_the_whole_deployment(admin_client: Client) -> None:
    path = "/admin/chatapp/deploymenthook/"
    assert DeploymentHookForm({"declaration": EXAMPLE}).is_valid(), "the example in the form is one"
    assert "{turn} turns" in admin_client.get(f"{path}add/").content.decode()
    form = {
        "declaration": json.dumps(hook("wide", condition={"type": "turn_count", "count": 5})),
        "enabled": "on",
    }
    made = admin_client.post(f"{path}add/", form)
    assert made.status_code == 302, made.content.decode()
    row = DeploymentHook.objects.get()
    listed = admin_client.get(path).content.decode()
    assert all(shown in listed for shown in ("wide", "turn_start", "turn_count 5", "log"))
    assert "There is a hook wide already" in admin_client.post(f"{path}add/", form).content.decode()
    changed = {"declaration": json.dumps(hook("wider"))}
    assert admin_client.post(f"{path}{row.pk}/change/", changed).status_code == 302
    row.refresh_from_db()
    assert (row.hook_id, row.enabled) == ("wider", False)


@pytest.mark.parametrize(("wrong", "sentence"), WRONG)
def test_an_invalid_hook_of_the_deployment_is_refused_with_the_place_of_the_error(
    admin_client: Client, wrong: dict[str, Any], sentence: str
) -> None:
    form = {"declaration": json.dumps(hook("x") | wrong), "enabled": "on"}
    page = admin_client.post("/admin/chatapp/deploymenthook/add/", form)
    assert sentence in page.content.decode()
    assert not DeploymentHook.objects.exists()


def test_operators_declare_hooks_of_a_conversation_and_an_event_announces_them(
    admin_client: Client, alice_client: Client, conversation: Conversation
) -> None:
    path = f"/admin/chatapp/conversation/{conversation.pk}/change/"
    assert "A secret matter" not in admin_client.get(path).content.decode()
    form = {"hooks": write_yaml([hook("here")]), "title": "Changed", "pinned": "on"}
    changed = admin_client.post(path, form)
    assert changed.status_code == 302, changed.content.decode()
    shown = alice_client.get(f"/api/v1/conversations/{conversation.pk}").json()
    assert [one["id"] for one in shown["hooks"]] == ["here"]
    assert (shown["title"], shown["pinned"]) == ("A secret matter", False), "only its hooks are changed there"
    [told] = read_after(conversation.pk, 0)
    assert told["conversation"]["hooks"] == shown["hooks"]


@pytest.mark.parametrize(("wrong", "sentence"), WRONG)
def test_an_invalid_hook_of_a_conversation_is_refused_with_the_place_of_the_error(
    admin_client: Client, conversation: Conversation, wrong: dict[str, Any], sentence: str
) -> None:
    path = f"/admin/chatapp/conversation/{conversation.pk}/change/"
    page = admin_client.post(path, {"hooks": json.dumps([hook("x") | wrong])})
    assert sentence in page.content.decode()
    conversation.refresh_from_db()
    assert conversation.hooks == []
