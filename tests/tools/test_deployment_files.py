"""`manage.py apply` and its API: apply the whole configuration in one file, or nothing of it."""

from __future__ import annotations

import io
import itertools

import pytest
import yaml
from django.contrib.auth.models import Group
from django.core.management import CommandError, call_command

from chatapp.accounts.models import User
from chatapp.agent_presets.deployments.schemas import Deployment
from chatapp.agent_presets.mcp_servers import endpoint_of
from chatapp.agent_presets.models import Agent, DeploymentHook, McpServer
from chatapp.conversations.models import GroupRetention
from chatapp.operations import encryption
from chatapp.operations.models import AuditEvent
from chatapp.providers.actions import ensure_first_model
from chatapp.providers.models import ModelConfig
from tests.environment import ROOT

pytestmark = pytest.mark.django_db
KEY, TOKEN = "sk-very-secret-1", "mcp-very-secret-2"
DEPLOYMENT = """
models:
  - name: Large
    model_id: large-1
    base_url: https://models.example.com/v1
    api_key: ${LARGE_KEY}
    context_size: 64000
    input_price: 1.25
    output_price: 10
    fast_model: Small
    context_policy: {keep_recent: 12}
    default: true
  - name: Small
    model_id: small-1
    base_url: https://models.example.com/v1
    api_key_env: LARGE_KEY
mcp_servers:
  - name: wiki
    url: https://wiki.example.com/mcp
    headers: {Authorization: "Bearer ${WIKI_TOKEN}"}
    enabled: false
agents:
  - name: Librarian
    model: Large
    system_prompt: "Cite your sources as $${SOURCE}."
    tools: [clock, calculator]
    mcp_servers: [wiki]
    hooks:
      - {id: shrink, on: turn_end, condition: {type: always}, action: {type: compact_context}}
hooks:
  - id: long
    on: turn_end
    condition: {type: message_count, threshold: 500}
    action: {type: log, message: "{turn} turns"}
groups:
  - name: Lawyers
    retention_days: 3650
"""


@pytest.fixture(autouse=True)
def surroundings(monkeypatch):
    monkeypatch.setenv("LARGE_KEY", KEY)
    monkeypatch.setenv("WIKI_TOKEN", TOKEN)
    ensure_first_model()


@pytest.fixture
def apply(tmp_path):
    def run(content, *options):
        file, out = tmp_path / "deployment.yaml", io.StringIO()
        file.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
        call_command("apply", str(file), *options, stdout=out)
        return out.getvalue()

    return run


def stored():
    """Return all rows that `apply` may write, and the audit log."""
    rows = (
        ModelConfig,
        McpServer,
        Agent,
        Agent.mcp_servers.through,
        DeploymentHook,
        Group,
        GroupRetention,
        AuditEvent,
    )
    return {model.__name__: sorted(map(repr, model.objects.values())) for model in rows}


def test_one_file_creates_models_servers_agents_hooks_and_groups(apply):
    printed = apply(DEPLOYMENT)
    assert "6 created, 0 changed, 0 unchanged." in printed
    assert "not in the file, left as it is: Demo" in printed
    large = ModelConfig.objects.get(name="Large")
    assert (large.is_default, large.fast_model.name, large.context_size) == (True, "Small", 64_000)
    assert (
        encryption.decrypt(large.api_key_encrypted)
        == KEY
        == encryption.decrypt(large.fast_model.api_key_encrypted)
    )
    agent = Agent.objects.get()
    assert (agent.model, agent.system_prompt) == (large, "Cite your sources as ${SOURCE}.")
    assert [server.name for server in agent.mcp_servers.all()] == ["wiki"]
    assert endpoint_of(McpServer.objects.get()).headers == {"Authorization": f"Bearer {TOKEN}"}
    assert DeploymentHook.objects.get().declaration["condition"]["threshold"] == 500
    assert Group.objects.get().retention.days == 3650


def test_the_example_of_the_documentation_can_be_applied(apply):
    page = (ROOT / "docs" / "operations.md").read_text()
    example = page.split("```yaml\n")[1].split("```")[0]
    assert set(yaml.safe_load(example)) == set(Deployment.model_fields)
    assert "5 created" in apply(example)


def test_fast_models_may_have_fast_models_in_any_order(apply):
    models = [
        {"name": "Large", "model_id": "large", "fast_model": "Middle"},
        {"name": "Middle", "model_id": "middle", "fast_model": "Small"},
        {"name": "Small", "model_id": "small"},
    ]
    for order in itertools.permutations(models):
        apply({"models": list(order)})
        assert ModelConfig.objects.get(name="Large").fast_model.fast_model.name == "Small"
        ModelConfig.objects.exclude(name="Demo").delete()
    circle = [models[0], models[1] | {"fast_model": "Large"}]
    with pytest.raises(CommandError, match="there is no model Middle"):
        apply({"models": circle})


def test_applying_a_file_again_changes_nothing(apply):
    apply(DEPLOYMENT)
    before = stored()
    printed = apply(DEPLOYMENT)
    assert "0 created, 0 changed, 6 unchanged." in printed
    assert stored() == before


def test_a_key_with_surrounding_whitespace_is_not_changed_by_a_second_run(apply, monkeypatch):
    monkeypatch.setenv("LARGE_KEY", f" {KEY}\n")
    apply(DEPLOYMENT)
    assert "0 created, 0 changed, 6 unchanged." in apply(DEPLOYMENT)
    assert encryption.decrypt(ModelConfig.objects.get(name="Large").api_key_encrypted) == KEY


@pytest.mark.parametrize("is_reversed", [False, True])
def test_a_file_may_disable_the_default_model_if_it_sets_another_default(apply, is_reversed):
    apply(DEPLOYMENT)
    models = [{"name": "Large", "enabled": False}, {"name": "New", "model_id": "new-1", "default": True}]
    apply({"models": models[::-1] if is_reversed else models})
    assert ModelConfig.objects.get(is_default=True).name == "New"
    assert not ModelConfig.objects.get(name="Large").enabled


def test_a_dry_run_prints_the_same_changes_as_a_run_and_stores_nothing(apply):
    before = stored()
    dry = apply(DEPLOYMENT, "--dry-run")
    assert stored() == before
    assert dry.endswith("A dry run: 6 created, 0 changed, 0 unchanged. Nothing was changed.\n")
    assert dry.splitlines()[:-1] == apply(DEPLOYMENT).splitlines()[:-1]


def test_changes_are_printed_by_field_and_fields_not_in_the_file_are_kept(apply):
    apply(DEPLOYMENT)
    printed = apply(
        {
            "models": [{"name": "Large", "context_size": 128_000, "input_price": 1.25}],
            "agents": [{"name": "Librarian", "tools": ["clock"], "mcp_servers": [], "enabled": False}],
            "hooks": [
                {
                    "id": "long",
                    "on": "turn_end",
                    "condition": {"type": "message_count", "threshold": 900},
                    "action": {"type": "log", "message": "{turn} turns"},
                    "enabled": False,
                }
            ],
            "groups": [{"name": "Lawyers", "retention_days": None}],
        }
    )
    lines = [line.strip() for line in printed.splitlines()]
    assert lines == [
        "models:", "~ Large", "context_size: 64000 → 128000", "not in the file, left as it is: Demo, Small",
        "mcp_servers:", "not in the file, left as it is: wiki",
        "agents:", "~ Librarian", 'tools: ["clock", "calculator"] → ["clock"]', "enabled: yes → no",
        'mcp_servers: ["wiki"] → []',
        "hooks:", "~ long", "enabled: yes → no",
        'condition: {"type": "message_count", "threshold": 500} → {"type": "message_count", "threshold": 900}',
        "groups:", "~ Lawyers", "retention_days: 3650 → none",
        "0 created, 4 changed, 0 unchanged.",
    ]  # fmt: skip
    large, agent = ModelConfig.objects.get(name="Large"), Agent.objects.get()
    assert (large.context_size, large.model_id, large.context_policy) == (
        128_000,
        "large-1",
        {"keep_recent": 12},
    )
    assert encryption.decrypt(large.api_key_encrypted) == KEY
    assert (agent.tools, list(agent.mcp_servers.all()), agent.enabled, agent.model) == (
        ["clock"],
        [],
        False,
        large,
    )
    assert not DeploymentHook.objects.get().enabled
    assert not GroupRetention.objects.exists()


def test_secrets_and_environment_variables_are_never_printed(apply, monkeypatch):
    printed = apply(DEPLOYMENT)
    monkeypatch.setenv("LARGE_KEY", "sk-another-3")
    monkeypatch.setenv("WIKI_TOKEN", "mcp-another-4")
    monkeypatch.setenv("INTERNAL", "https://inside.example.com/v1")
    moved = DEPLOYMENT.replace("https://models.example.com/v1", "${INTERNAL}", 1)
    printed += apply(moved)
    assert "base_url: changed" in printed
    assert printed.count("api_key: set") == printed.count("api_key: changed") == 2
    for hidden in (KEY, TOKEN, "another", "inside.example.com"):
        assert hidden not in printed
    assert endpoint_of(McpServer.objects.get()).headers == {"Authorization": "Bearer mcp-another-4"}
    kept = repr(list(AuditEvent.objects.values_list("detail", flat=True)))
    assert "another" not in kept


def test_the_audit_log_records_added_and_changed_rows(apply):
    apply(DEPLOYMENT)
    apply(DEPLOYMENT.replace("64000", "32000"))
    events = [event.detail for event in AuditEvent.objects.order_by("id")]
    assert {event["through"] for event in events} == {"manage.py apply"}
    assert [event["done"] for event in events] == ["added"] * 6 + ["changed"]
    assert (events[-1]["name"], events[-1]["fields"]) == ("Large", ["context_size"])
    assert events[-1]["row"] == f"modelconfig {ModelConfig.objects.get(name='Large').pk}"


MODEL = {"name": "New", "model_id": "new-1"}
REFUSED = [
    ({"users": []}, "users: is not known here; there are models, mcp_servers, agents, hooks, groups."),
    ({"models": [MODEL | {"contextsize": 1}]}, "models.0.contextsize: is not known here."),
    ({"models": [{"name": "New"}]}, "models.0.model_id: is needed for a new model."),
    ({"models": [MODEL | {"api_key": "sk-in-the-file"}]}, "models.0.api_key: keys do not belong in a file"),
    (
        {"models": [MODEL | {"api_key": "${NOT_SET}"}]},
        "models.0.api_key: the environment variable NOT_SET is not set.",
    ),
    (
        {"models": [MODEL | {"api_key_env": "NOT_SET"}]},
        "models.0.api_key_env: the environment variable NOT_SET",
    ),
    ({"models": [MODEL | {"base_url": "nowhere"}]}, "models.0.base_url: Enter an address"),
    ({"models": [MODEL | {"fast_model": "Gone"}]}, "models.0.fast_model: there is no model Gone."),
    ({"models": [MODEL | {"context_policy": {"keep": 1}}]}, "models.0.context_policy.keep: "),
    ({"models": [MODEL, MODEL]}, "models.1: there are two with the name New."),
    ({"models": [MODEL | {"input_price": 1.25}]}, "models.0.output_price: Enter prices for both"),
    (
        {"models": [MODEL | {"default": True, "enabled": False}]},
        "models.0.enabled: the default model has to be",
    ),
    (
        {"models": [{"name": "Demo", "base_url": "https://a.example/v1"}]},
        "models.0.base_url: the Demo model has none.",
    ),
    ({"mcp_servers": [{"name": "new"}]}, "mcp_servers.0.url: This field cannot be blank."),
    ({"mcp_servers": [{"name": "N w", "url": "https://a.example"}]}, "mcp_servers.0.name: Use small letters"),
    ({"agents": [{"name": "New", "model": "Gone"}]}, "agents.0.model: There is no model Gone here."),
    ({"agents": [{"name": "New", "tools": ["gone"]}]}, "agents.0.tools: There is no tool gone to choose."),
    ({"agents": [{"name": "New", "hooks": [{"id": "x"}]}]}, "agents.0.hooks.0.condition: Field required."),
    ({"hooks": [{"id": "x", "on": "never"}]}, "hooks.0.on: "),
    (
        {
            "hooks": [
                {
                    "id": "x",
                    "condition": {"type": "always"},
                    "action": {"type": "module_action", "action": "conversation.burn"},
                }
            ]
        },
        "hooks.0.action: unknown action conversation.burn",
    ),
    ({"groups": [{"name": "New", "retention_days": -1}]}, "groups.0.retention_days: "),
    ({"groups": [{"name": "New", "members": []}]}, "groups.0.members: is not known here."),
    ("- models", "the file: it is not a YAML mapping with models"),
    ("models: [", "Nothing was changed."),
]


@pytest.mark.parametrize(("wrong", "problem"), REFUSED, ids=[problem for _, problem in REFUSED])
def test_an_invalid_file_is_refused_with_the_place_and_nothing_is_stored(apply, wrong, problem):
    before = stored()
    if isinstance(wrong, dict):  # valid rows in the same file are not stored either
        wrong = {"groups": [{"name": "Right"}], "models": [{"name": "Right", "model_id": "right"}]} | wrong
    with pytest.raises(CommandError) as refused:
        apply(wrong)
    assert problem in str(refused.value)
    assert str(refused.value).endswith("Nothing was changed.")
    assert stored() == before


def test_a_stored_key_is_not_sent_to_another_address(apply):
    apply(DEPLOYMENT)
    with pytest.raises(CommandError, match=r"models\.0\.api_key: the address has changed"):
        apply({"models": [{"name": "Large", "base_url": "https://evil.example.com/v1"}]})
    with pytest.raises(CommandError, match=r"mcp_servers\.0\.headers: the address has changed"):
        apply({"mcp_servers": [{"name": "wiki", "url": "https://evil.example.com/mcp"}]})


def test_the_endpoint_of_a_model_from_the_environment_cannot_be_changed(apply, settings):
    settings.OPENAI_API_KEY, settings.LLM_MODEL = "sk-env", "env-model"
    ensure_first_model()
    apply({"models": [{"name": "env-model", "model_id": "env-model", "context_size": 9_000}]})
    assert ModelConfig.objects.get(name="env-model").context_size == 9_000
    for field in ({"model_id": "other"}, {"api_key": "${LARGE_KEY}"}):
        with pytest.raises(CommandError, match="comes from the environment"):
            apply({"models": [{"name": "env-model"} | field]})


@pytest.fixture
def operator(db, api_client):
    user = User.objects.create_user(email="operator@example.com", password=None)
    user.is_staff = user.is_superuser = True
    user.save()
    return api_client(user, ["admin"])


def sent(client, text=DEPLOYMENT, **more):
    body = {"yaml": text, "secrets": {"LARGE_KEY": KEY, "WIKI_TOKEN": TOKEN}, **more}
    return client.post("/api/v1/admin/deployment", body, content_type="application/json")


def test_an_operator_applies_a_deployment_over_the_api(operator):
    before = ModelConfig.objects.count()
    dry = sent(operator, dry_run=True)
    assert dry.status_code == 200, dry.content
    assert (dry.json()["dry_run"], dry.json()["created"]) == (True, 6)
    assert ModelConfig.objects.count() == before
    assert not AuditEvent.objects.filter(kind="changed_in_admin").exists()
    stored = sent(operator)
    assert stored.json() == {**dry.json(), "dry_run": False}
    assert KEY not in stored.content.decode()
    assert TOKEN not in stored.content.decode()
    assert Agent.objects.get(name="Librarian").model == ModelConfig.objects.get(name="Large")
    noted = AuditEvent.objects.filter(kind="changed_in_admin").first()
    assert noted.detail["through"] == "API"
    assert noted.actor_id == User.objects.get(email="operator@example.com").pk
    again = sent(operator).json()
    assert (again["created"], again["changed"], again["unchanged"]) == (0, 0, 6)


def test_a_deployment_over_the_api_reads_no_environment_variable_of_the_server(operator, monkeypatch):
    monkeypatch.setenv("LARGE_KEY", KEY)
    answer = sent(operator, secrets={"WIKI_TOKEN": TOKEN})
    assert answer.status_code == 422
    error = answer.json()["error"]
    assert error["details"][0]["message"] == "there is no LARGE_KEY in `secrets`"
    assert "environment" not in error["message"]
    assert not Agent.objects.filter(name="Librarian").exists()


@pytest.mark.parametrize(
    ("text", "field"),
    [("models: [{name: A, colour: red}]", "models.0.colour"), ("a: b: c", "yaml"), ("things: []", "things")],
)
def test_an_invalid_deployment_returns_422_with_the_field(operator, text, field):
    answer = sent(operator, text)
    assert answer.status_code == 422
    assert answer.json()["error"]["details"][0]["field"] == field


def test_only_operators_apply_deployments(api_client, charlie):
    assert sent(api_client(charlie)).status_code == 403
    assert Agent.objects.filter(name="Librarian").count() == 0
