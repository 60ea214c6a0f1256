"""Agents as operators load and edit them, and as users choose them."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from chatapp.agent_presets.models import Agent
from chatapp.conversations.models import Conversation
from chatapp.providers.models import ModelConfig
from tests.api.program import V1

pytestmark = pytest.mark.django_db

ONE = """
agents:
  - id: helper
    brain: {provider: ollama, model: small, context: {keep_recent: 3}}
"""


def load(folder: Path, text: str) -> str:
    file = folder / "agents.yaml"
    file.write_text(text, encoding="utf-8")
    said = io.StringIO()
    call_command("load_agents", str(file), stdout=said)
    return said.getvalue()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("agents: [", "line 1"),
        ("just words", "the file: it is not a YAML mapping"),
        ("agents: []", "agents: there are none, and no `hooks` or `conversations` either"),
        (ONE.replace("keep_recent: 3", "keep_recnt: 3"), "agents.0.brain.context.keep_recnt: unknown setting"),
        (ONE.replace("keep_recent: 3", "trigger: 7"), "agents.0.brain.context.trigger: Input should be less"),
        (ONE.replace("ollama", "acme"), "agents.0.brain.config.base_url: is missing"),
        (ONE + "execution: {hooks: [{id: h, condition: {type: moon}, action: {type: log, message: x}}]}\n", "execution.hooks.0.condition"),
        (
            ONE + "execution: {hooks: [{id: h, condition: {type: always}, action: {type: module_action, module: moon, action: rise}}]}\n",
            "execution.hooks.0.action: unknown action moon.rise; known actions: conversation.pin",
        ),
        (
            ONE + "execution: {hooks: [{id: h, condition: {type: always}, action: {type: module_action, action: conversation.rename}}]}\n",
            "execution.hooks.0.action.params.title: Field required",
        ),
        (ONE.replace("model: small", 'model: small, config: {api_key: "{{env.NO_SUCH_KEY}}"}'), "NO_SUCH_KEY is not set"),
    ],
)  # fmt: skip
def test_an_invalid_file_loads_nothing_and_the_error_is_one_sentence_with_its_place(
    tmp_path: Path, text: str, sentence: str
) -> None:
    models = ModelConfig.objects.count()
    with pytest.raises(CommandError) as refused:
        load(tmp_path, text)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not Agent.objects.exists()
    assert ModelConfig.objects.count() == models


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("load_agents", str(tmp_path / "none.yaml"))


def test_reloading_a_changed_file_updates_the_agent_but_not_its_conversations(
    tmp_path: Path, alice_client: Client
) -> None:
    load(tmp_path, ONE)
    made = alice_client.post(
        f"{V1}/conversations", {"agent": "helper"}, content_type="application/json"
    ).json()
    assert "Updated agent helper" in load(tmp_path, ONE.replace("keep_recent: 3", "keep_recent: 5"))
    assert Agent.objects.get().context_policy == {"keep_recent": 5}
    assert alice_client.get(f"{V1}/conversations/{made['id']}").json()["agent"] == "helper"
    assert ModelConfig.objects.filter(model_id="small").count() == 1


def test_agents_with_the_same_model_share_one_model_row(tmp_path: Path) -> None:
    second = ONE.removeprefix("\nagents:").replace("helper", "other")
    load(tmp_path, ONE.rstrip() + second)
    first, other = Agent.objects.order_by("name")
    assert first.model == other.model


def test_agents_are_listed_chosen_by_id_or_name_and_unset(tmp_path: Path, alice_client: Client) -> None:
    load(tmp_path, ONE + "execution: {greeting: Hello.}\n")
    default, helper = alice_client.get(f"{V1}/agents").json()["items"]
    assert default["is_default"]
    assert (helper["name"], helper["model"], helper["greeting"]) == ("helper", "small", "Hello.")
    for wanted in (helper["id"], "helper"):
        made = alice_client.post(
            f"{V1}/conversations", {"agent": wanted}, content_type="application/json"
        ).json()
        assert made["agent"] == "helper"
    changed = alice_client.patch(
        f"{V1}/conversations/{made['id']}", {"agent": None}, content_type="application/json"
    )
    assert changed.json()["agent"] is None
    refused = alice_client.post(f"{V1}/conversations", {"agent": "nobody"}, content_type="application/json")
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "agent_not_found")


def test_a_disabled_agent_is_not_listed_and_its_conversations_fall_back_to_the_default(
    alice_client: Client, model: ModelConfig
) -> None:
    agent = Agent.objects.create(name="Off", context_policy={"keep_recent": 3})
    made = alice_client.post(f"{V1}/conversations", {"agent": "Off"}, content_type="application/json").json()
    Agent.objects.update(enabled=False)
    assert len(alice_client.get(f"{V1}/agents").json()["items"]) == 1
    seen = alice_client.post(f"{V1}/conversations/{made['id']}/context", {}, content_type="application/json")
    assert seen.json()["policy"]["keep_recent"] == {"value": 10, "from": "default"}
    agent.delete()
    assert Conversation.objects.get().agent is None


# --- in the admin


FORM = {
    "name": "Mine",
    "mode": "react",
    "timeout_s": "0",
    "context_policy": "{}",
    "hooks": "[]",
    "enabled": "on",
}


def test_operators_create_agents_and_see_where_each_setting_comes_from(
    admin_client: Client, model: ModelConfig
) -> None:
    ModelConfig.objects.update(context_policy={"trigger": 0.5})
    form = FORM | {"context_policy": '{"keep_recent": 7}'}
    made = admin_client.post("/admin/chatapp/agent/add/", form)
    assert made.status_code == 302, made.content.decode()
    page = admin_client.get(f"/admin/chatapp/agent/{Agent.objects.get().pk}/change/").content.decode()
    assert "<th><code>keep_recent</code></th><td><code>7</code></td><td>this agent</td>" in page
    assert "<th><code>trigger</code></th><td><code>0.5</code></td><td>the model</td>" in page
    assert "<th><code>max_steps</code></th><td><code>15</code></td><td>built in</td>" in page


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("context_policy", '{"keep_recnt": 7}', "unknown setting"),
        ("context_policy", "[1]", "Enter fields"),
        ("hooks", '{"id": "x"}', "Enter a list"),
        ("hooks", '[{"id": "x", "condition": {"type": "moon"}, "action": {"type": "log", "message": ""}}]', "Hook 1, condition: unknown type moon"),
        ("hooks", '[{"id": "x", "condition": {"type": "always"}, "action": {"type": "module_action", "action": "a.b"}}]', "unknown action a.b"),
    ],
)  # fmt: skip
def test_an_invalid_form_is_refused_with_the_place_of_the_error(
    admin_client: Client, field: str, value: str, sentence: str
) -> None:
    page = admin_client.post("/admin/chatapp/agent/add/", FORM | {field: value})
    assert page.status_code == 200
    assert sentence in page.content.decode()
    assert not Agent.objects.exists()


@pytest.mark.mechanism("digitorn.summary-model")
def test_a_summary_brains_settings_are_loaded_from_the_file(tmp_path: Path) -> None:
    brain = "summary_brain: {provider: ollama, model: tiny, temperature: 0.1, timeout: 40}"
    load(tmp_path, ONE.replace("model: small,", f"model: small, {brain},"))
    policy = Agent.objects.get().context_policy
    assert (policy["summary_temperature"], policy["summary_timeout_s"]) == (0.1, 40)
    assert policy["summary_model"] == str(ModelConfig.objects.get(model_id="tiny").pk)
