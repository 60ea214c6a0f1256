"""Groups restrict which models and agents their members may use, in every interface."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.core.management import CommandError, call_command
from django.test import Client

from chatapp.accounts.group_access.models import GroupAccess
from chatapp.accounts.group_access.selectors import EVERYTHING, allowed_to
from chatapp.accounts.models import User
from chatapp.agent_presets.models import Agent
from chatapp.context.policies import agent_of
from chatapp.conversations.actions.conversations import create_conversation
from chatapp.conversations.models import GroupRetention
from chatapp.conversations.selectors.conversations import retention_days_of
from chatapp.operations import clock
from chatapp.operations.caching.editions import Edition, configuration_edition, one_edition
from chatapp.operations.database.statements import execute
from chatapp.operations.errors import NotFound
from chatapp.providers.models import ModelConfig
from chatapp.providers.selectors import default_model, may_use, model_of

API = "/api/v1"


@pytest.fixture
def large(db: None) -> ModelConfig:
    return ModelConfig.objects.create(name="Large", model_id="large", is_default=True)


@pytest.fixture
def small(db: None) -> ModelConfig:
    return ModelConfig.objects.create(name="Small", model_id="small")


@pytest.fixture
def client(api_client: Callable[..., Client], alice: User) -> Client:
    return api_client(alice)


def group(name: str, *members: User, models: object = (), agents: object = ()) -> Group:
    made = Group.objects.create(name=name)
    made.user_set.set(members)
    if models or agents:
        access = GroupAccess.objects.create(group=made)
        access.models.set(models)  # type: ignore[arg-type]
        access.agents.set(agents)  # type: ignore[arg-type]
    return made


def names(client: Client, what: str) -> list[str]:
    return [each["name"] for each in client.get(f"{API}/{what}").json()["items"]]


def test_members_see_and_use_only_the_models_of_their_group(
    client: Client,
    api_client: Callable[..., Client],
    alice: User,
    bob: User,
    large: ModelConfig,
    small: ModelConfig,
) -> None:
    group("Interns", alice, models=[small])
    assert names(client, "models") == ["Small"]
    assert [each["id"] for each in client.get("/v1/models").json()["data"]] == ["Small"]
    assert client.get("/v1/models/Large").status_code == 404
    conversation = create_conversation(user=alice, now=clock.now())
    json = {"content_type": "application/json"}
    for method, path, body in (
        ("post", "conversations", {"model": "Large"}),
        ("patch", f"conversations/{conversation.pk}", {"model": "Large"}),
        ("post", f"conversations/{conversation.pk}/messages", {"content": "Hi", "model": "Large"}),
        ("post", f"conversations/{conversation.pk}/context", {"model": "Large"}),
        ("post", "conversations/import", {"messages": [{"role": "user", "content": "Hi"}], "model": "Large"}),
    ):
        answer = getattr(client, method)(f"{API}/{path}", body, **json)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "model_not_found"), path
    asked = {"model": "Large", "messages": [{"role": "user", "content": "Hi"}]}
    assert client.post("/v1/chat/completions", asked, **json).status_code == 404
    assert client.post("/v1/responses", {"model": "Large", "input": "Hi"}, **json).status_code == 404
    assert client.post(f"{API}/agents", {"name": "Mine", "model": "Large"}, **json).status_code == 422
    assert names(api_client(bob), "models") == ["Large", "Small"]


def test_a_new_restriction_applies_to_existing_conversations(
    alice: User, large: ModelConfig, small: ModelConfig
) -> None:
    of_operators = Agent.objects.create(name="Writer")
    own = Agent.objects.create(name="Mine", owner=alice)
    conversation = create_conversation(user=alice, now=clock.now(), model=large, agent=of_operators)
    assert (model_of(conversation), agent_of(conversation)) == (large, of_operators)
    other = Agent.objects.create(name="Other")
    members = group("Interns", alice, models=[small], agents=[other])
    assert (model_of(conversation), agent_of(conversation)) == (small, None)
    conversation.agent = own
    assert agent_of(conversation) == own
    members.user_set.clear()
    conversation.agent = of_operators
    assert (model_of(conversation), agent_of(conversation)) == (large, of_operators)


def test_lists_of_several_groups_add_up_and_a_group_without_one_restricts_nothing(
    alice: User, bob: User, large: ModelConfig, small: ModelConfig
) -> None:
    third = ModelConfig.objects.create(name="Third", model_id="third")
    group("Everybody", alice, bob)
    assert allowed_to(alice.pk) == EVERYTHING
    group("Interns", alice, models=[small])
    group("Testers", alice, models=[third])
    assert allowed_to(alice.pk).models == {small.pk, third.pk}
    assert allowed_to(alice.pk).agents is None
    assert allowed_to(bob.pk) == EVERYTHING
    assert may_use(third, alice.pk)
    assert not may_use(large, alice.pk)
    assert default_model(alice.pk) == small
    assert default_model(bob.pk) == large


def test_group_settings_are_read_again_only_after_a_change(
    alice: User, large: ModelConfig, small: ModelConfig, django_assert_num_queries: Callable[[int], Any]
) -> None:
    interns = group("Interns", alice, models=[small])
    GroupRetention.objects.create(group=interns, days=7)

    def read() -> tuple[object, ...]:
        return allowed_to(alice.pk).models, default_model(alice.pk).name, retention_days_of(alice.pk, 30)

    assert read() == ({small.pk}, "Small", 7)
    edition = Edition(execute(f"SELECT {configuration_edition()}").fetchone()[0])
    with one_edition(edition), django_assert_num_queries(0):
        read()
    interns.user_set.clear()
    assert read() == (None, "Large", 30)


def test_no_other_model_replaces_disabled_allowed_models(
    alice: User, large: ModelConfig, small: ModelConfig
) -> None:
    group("Interns", alice, models=[small])
    ModelConfig.objects.filter(pk=small.pk).update(enabled=False)
    with pytest.raises(NotFound):
        default_model(alice.pk)


def test_members_can_use_only_the_agents_of_their_group_and_their_own(
    client: Client, alice: User, large: ModelConfig
) -> None:
    writer, coder = (Agent.objects.create(name=name) for name in ("Writer", "Coder"))
    Agent.objects.create(name="Mine", owner=alice)
    group("Writers", alice, agents=[writer])
    assert {"Writer", "Mine"} <= set(names(client, "agents"))
    assert "Coder" not in names(client, "agents")
    refused = client.post(f"{API}/conversations", {"agent": "Coder"}, content_type="application/json")
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "agent_not_found")
    assert client.get(f"{API}/agents/{coder.pk}").status_code == 404


def test_operators_choose_the_models_and_agents_of_a_group_in_the_admin(
    admin_client: Client, large: ModelConfig, small: ModelConfig
) -> None:
    writer = Agent.objects.create(name="Writer")
    Agent.objects.create(name="Private", owner=User.objects.create_user("owner@example.com"))
    shown = admin_client.get("/admin/auth/group/add/").content.decode()
    assert "Writer" in shown
    assert "Private" not in shown
    fields = {
        "name": "Interns",
        "access-TOTAL_FORMS": 1,
        "access-INITIAL_FORMS": 0,
        "access-0-models": [str(small.pk)],
        "access-0-agents": [str(writer.pk)],
        "retention-TOTAL_FORMS": 0,
        "retention-INITIAL_FORMS": 0,
    }
    assert admin_client.post("/admin/auth/group/add/", fields).status_code == 302
    access = GroupAccess.objects.get(group__name="Interns")
    assert (list(access.models.all()), list(access.agents.all())) == ([small], [writer])


def test_a_deployment_file_can_restrict_groups(
    tmp_path: Path, large: ModelConfig, small: ModelConfig
) -> None:
    file = tmp_path / "deployment.yaml"

    def apply(text: str, *options: str) -> str:
        file.write_text(f"agents: [{{name: Writer}}]\ngroups: [{{name: Interns, {text}}}]")
        said = io.StringIO()
        call_command("apply", str(file), *options, stdout=said)
        return said.getvalue()

    said = apply("models: [Small, Large], agents: [Writer]", "--dry-run")
    assert 'models: ["Large", "Small"]' in said
    assert not GroupAccess.objects.exists()
    apply("models: [Small, Large], agents: [Writer]")
    access = GroupAccess.objects.get()
    assert {model.name for model in access.models.all()} == {"Large", "Small"}
    assert "= Interns" in apply("models: [Large, Small]")
    assert 'models: ["Large", "Small"] → []' in apply("models: []")
    assert [agent.name for agent in access.agents.all()] == ["Writer"]
    with pytest.raises(CommandError, match=r"groups\.0\.models\.1.*there is no model Huge"):
        apply("models: [Small, Huge]")


@pytest.mark.parametrize("kind", ["model", "agent"])
def test_the_last_model_or_agent_of_a_groups_list_cannot_be_deleted(
    admin_client: Client, alice: User, large: ModelConfig, small: ModelConfig, kind: str
) -> None:
    third = ModelConfig.objects.create(name="Third", model_id="third")
    writer, coder = (Agent.objects.create(name=name) for name in ("Writer", "Coder"))
    group("Interns", alice, models=[small], agents=[writer])
    group("Testers", models=[third, small], agents=[writer, coder])
    table, last, other = {"model": ("modelconfig", small, third), "agent": ("agent", writer, coder)}[kind]
    restricted = allowed_to(alice.pk)
    refused = admin_client.post(f"/admin/chatapp/{table}/{last.pk}/delete/", {"post": "yes"})
    assert "Interns" in refused.content.decode()
    assert "Testers" not in refused.content.decode()
    assert allowed_to(alice.pk) == restricted
    assert admin_client.post(f"/admin/chatapp/{table}/{other.pk}/delete/", {"post": "yes"}).status_code == 302
    assert type(last).objects.filter(pk=last.pk).exists()
    assert not type(other).objects.filter(pk=other.pk).exists()


def test_all_agents_of_a_groups_list_cannot_be_deleted_together(admin_client: Client, alice: User) -> None:
    agents = [Agent.objects.create(name=name) for name in ("Writer", "Coder")]
    group("Interns", alice, agents=agents)
    chosen = {"action": "delete_selected", "_selected_action": [agent.pk for agent in agents], "post": "yes"}
    assert "Interns" in admin_client.post("/admin/chatapp/agent/", chosen).content.decode()
    assert allowed_to(alice.pk).agents == {agent.pk for agent in agents}
