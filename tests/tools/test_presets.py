"""Agents that users and operators create: limits, privacy, and import and export as YAML."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from agents.presets.exchange import Preset, PresetError, read_preset, write_preset
from chatapp.agent_presets.models import Agent, McpServer
from chatapp.context.tools import registry
from chatapp.conversations.models import Conversation
from chatapp.providers.actions import ensure_first_model
from chatapp.providers.models import ModelConfig

pytestmark = pytest.mark.django_db

PIRATE = {
    "name": "Pirate",
    "system_prompt": "Talk like a pirate.\nNever say “hello”.",
    "greeting": "Ahoy",
    "temperature": 0.4,
    "tools": ["clock", "calculator"],
    "uses_memory": False,
    "context_policy": {"keep_recent": 6},
    "hooks": [
        {
            "id": "shrink",
            "on": "turn_end",
            "condition": {"type": "always"},
            "action": {"type": "compact_context"},
        }
    ],
}
JSON = "application/json"


@pytest.fixture(autouse=True)
def a_model():
    ensure_first_model()


@pytest.fixture
def mine(alice, api_client):
    return api_client(alice, ("chat", "read"))


def make(client, **changes):
    return client.post("/api/v1/agents", PIRATE | changes, content_type=JSON)


def test_a_user_can_create_change_and_delete_an_own_agent(mine):
    made = make(mine)
    assert made.status_code == 201
    agent = made.json()
    assert agent["is_mine"] is True
    assert agent["system_prompt"] == PIRATE["system_prompt"]
    address = f"/api/v1/agents/{agent['id']}"
    changed = mine.patch(address, {"greeting": "Arr", "tools": None}, content_type=JSON).json()
    assert (changed["greeting"], changed["tools"], changed["temperature"]) == ("Arr", None, 0.4)
    assert mine.get(address).json()["greeting"] == "Arr"
    assert mine.delete(address).status_code == 204
    assert mine.get(address).status_code == 404


def test_a_change_is_not_refused_for_fields_that_it_does_not_change(mine, settings):
    model = ModelConfig.objects.get()
    address = f"/api/v1/agents/{make(mine, model=model.name).json()['id']}"
    ModelConfig.objects.update(enabled=False)
    settings.DEFAULT_TOOLS = ["clock"]
    changed = mine.patch(address, {"name": "Captain"}, content_type=JSON)
    assert (changed.status_code, changed.json()["name"]) == (200, "Captain")
    assert {name: changed.json()[name] for name in ("model", "tools", "context_policy")} == {
        "model": model.name,
        "tools": PIRATE["tools"],
        "context_policy": PIRATE["context_policy"],
    }
    refused = [
        {"model": model.name},
        {"tools": PIRATE["tools"]},
        {"context_policy": {"nonsense": 1}},
        {"name": " "},
    ]
    for changes in refused:
        answer = mine.patch(address, {"greeting": "Arr"} | changes, content_type=JSON)
        assert answer.status_code == 422
        assert answer.json()["error"]["details"][0]["field"] in changes
    assert mine.get(address).json()["greeting"] == "Ahoy"


@pytest.mark.django_db(transaction=True)
def test_two_concurrent_changes_of_different_fields_are_both_kept(mine):
    address = f"/api/v1/agents/{make(mine).json()['id']}"

    def change(changes):
        try:
            return mine.patch(address, changes, content_type=JSON).status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as threads:
        for n in range(10):
            at_once = ({"greeting": f"Ahoy {n}"}, {"system_prompt": f"Say arr {n} times."})
            assert list(threads.map(change, at_once)) == [200, 200]
            agent = mine.get(address).json()
            assert (agent["greeting"], agent["system_prompt"]) == tuple(
                value for changes in at_once for value in changes.values()
            )


def test_other_users_cannot_read_use_or_change_an_own_agent(mine, bob, api_client):
    agent = make(mine).json()
    bobs = api_client(bob, ("chat", "read"))
    address = f"/api/v1/agents/{agent['id']}"
    assert bobs.get(address).status_code == 404
    assert bobs.get(f"{address}/export").status_code == 404
    assert bobs.patch(address, {"greeting": "x"}, content_type=JSON).status_code == 404
    assert bobs.delete(address).status_code == 404
    assert "Pirate" not in str(bobs.get("/api/v1/agents").json())
    for name in (agent["id"], "Pirate"):
        chat = bobs.post("/api/v1/conversations", {"agent": name}, content_type=JSON)
        assert chat.status_code == 404
    assert Agent.objects.filter(pk=agent["id"]).exists()


def test_two_users_may_use_the_same_name_for_their_own_agents(mine, alice, bob, api_client):
    Agent.objects.create(name="Pirate", system_prompt="The operator's.")
    assert make(mine).status_code == 201
    assert make(api_client(bob, ("chat",))).status_code == 201
    assert make(mine).status_code == 409
    chat = mine.post("/api/v1/conversations", {"agent": "Pirate"}, content_type=JSON).json()
    assert Conversation.objects.get(pk=chat["id"]).agent.owner == alice


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"tools": ["http_fetch"]}, "tools"),
        ({"tools": ["rm_rf"]}, "tools"),
        ({"mcp_servers": ["private"]}, "mcp_servers"),
        ({"model": "no-such-model"}, "model"),
        ({"context_policy": {"summary_timeout_s": 900}}, "context_policy"),
        ({"context_policy": {"summary_model": "x"}}, "context_policy"),
        ({"context_policy": {"nonsense": 1}}, "context_policy"),
        ({"system_prompt": "x" * 40_000}, "system_prompt"),
        ({"name": " "}, "name"),
        ({"hooks": PIRATE["hooks"] * 2}, "hooks"),
        (
            {
                "hooks": [
                    {"id": "x", "condition": {"type": "always"}, "action": {"type": "log", "message": "y"}}
                ]
            },
            "hooks",
        ),
        (
            {
                "hooks": [
                    {
                        "id": "x",
                        "condition": {"type": "always"},
                        "action": {"type": "module_action", "action": "conversation.pin"},
                    }
                ]
            },
            "hooks",
        ),
        ({"owner": "someone"}, "owner"),
        ({"timeout_s": 9}, "timeout_s"),
    ],
)
def test_settings_that_users_may_not_choose_are_refused(mine, settings, changes, field):
    settings.DEFAULT_TOOLS = ["clock", "calculator"]
    McpServer.objects.create(name="private", url="http://203.0.113.7/mcp")
    refused = make(mine, **changes)
    assert refused.status_code == 422
    assert field in refused.json()["error"]["details"][0]["field"]
    assert not Agent.objects.exists()


def test_the_number_of_own_agents_is_limited(mine, settings):
    settings.MAX_OWN_AGENTS = 2
    assert [make(mine, name=str(n)).status_code for n in range(3)] == [201, 201, 409]


def test_operators_create_agents_for_everyone_and_users_do_not_see_their_instructions(
    mine, admin_user, api_client
):
    operator = api_client(admin_user, ("chat", "admin"))
    assert make(mine, for_everyone=True).status_code == 403
    agent = make(operator, for_everyone=True, tools=["http_fetch"]).json()
    seen = mine.get(f"/api/v1/agents/{agent['id']}").json()
    assert (seen["name"], seen["is_mine"], seen["system_prompt"], seen["hooks"]) == (
        "Pirate",
        False,
        None,
        None,
    )
    assert (
        mine.patch(f"/api/v1/agents/{agent['id']}", {"greeting": "x"}, content_type=JSON).status_code == 403
    )
    assert mine.get(f"/api/v1/agents/{agent['id']}/export").status_code == 403
    assert mine.delete(f"/api/v1/agents/{agent['id']}").status_code == 403


def test_an_exported_agent_can_be_imported_unchanged(mine, bob, api_client):
    agent = make(mine, model="Demo").json()
    exported = mine.get(f"/api/v1/agents/{agent['id']}/export")
    assert exported["Content-Type"].startswith("application/yaml")
    bobs = api_client(bob, ("chat", "read"))
    text = exported.content.decode()
    copy = bobs.post("/api/v1/agents/import", text, content_type="application/yaml")
    assert copy.status_code == 201
    same = {key: value for key, value in copy.json().items() if key != "id"}
    assert same == {key: value for key, value in agent.items() if key != "id"}
    as_json = bobs.post(
        "/api/v1/agents/import", {"yaml": text.replace("Pirate", "Second")}, content_type=JSON
    )
    assert as_json.json()["name"] == "Second"


def test_an_import_omits_unknown_models_tools_and_servers_with_a_note(mine):
    text = "name: Guest\nmodel: far-away-1\ntools: [clock, teleport]\nmcp_servers: [moon]\n"
    made = mine.post("/api/v1/agents/import", text, content_type="application/yaml").json()
    assert (made["model"], made["tools"], made["mcp_servers"]) == (None, ["clock"], [])
    assert [note.split()[3:5] for note in made["notes"]] == [
        ["model", "far-away-1"],
        ["tool", "teleport"],
        ["MCP", "server"],
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "just words",
        "[1, 2]",
        "name: x\nnonsense: 1",
        "name: !!python/object/apply:os.system ['true']",
        "a: &a [x, x]\nb: [*a, *a]\nname: x",
        'name: "a\\0b"',
        "name: x\nhooks: [{id: y}]",
        "{" * 2_000,
        "name: [",
    ],
)
def test_an_invalid_preset_file_is_refused(mine, text):
    refused = mine.post("/api/v1/agents/import", text, content_type="application/yaml")
    assert refused.status_code in (400, 422)
    assert not Agent.objects.exists()


@given(
    st.builds(
        Preset,
        name=st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=40),
        system_prompt=st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=200),
        model=st.none(),
        hooks=st.just([]),
        context_policy=st.just({}),
    )
)
def test_a_written_preset_is_read_back_unchanged(preset):
    assert read_preset(write_preset(preset)) == preset


def test_yaml_aliases_in_a_preset_are_refused():
    with pytest.raises(PresetError, match="aliases"):
        read_preset("name: x\na: &a 1\nb: *a\n")


@pytest.mark.parametrize(
    "text", ["name: x\ntools: [clock]\ntools: []\n", '{"name": "x", "tools": ["clock"], "tools": []}']
)
def test_a_duplicate_key_is_refused(text):
    with pytest.raises(PresetError, match="“tools” twice"):
        read_preset(text)


# --- memory on or off --------------------------------------------------------------------------------


def test_a_conversation_with_an_agent_without_memory_uses_no_memory(alice):
    agent = Agent.objects.create(name="Amnesiac", uses_memory=False)
    chat = Conversation(user=alice, agent=agent)
    assert not chat.uses_memory
    assert not {tool.spec.name for tool in registry.tools_for(chat)} & {"memory_search", "memory_read"}
    agent.enabled = False
    assert chat.uses_memory, "one that is switched off is as good as none"


# --- load_agents -------------------------------------------------------------------------------------

FILE = """
agents:
  - id: librarian
    brain: {model: m, provider: openai}
    tools: [clock, memory_search]
    mcp_servers: [books]
    memory: false
"""


def test_load_agents_sets_tools_servers_and_memory(tmp_path):
    McpServer.objects.create(name="books", url="http://203.0.113.7/mcp")
    (tmp_path / "a.yaml").write_text(FILE)
    call_command("load_agents", str(tmp_path / "a.yaml"))
    agent = Agent.objects.get(name="librarian")
    assert (agent.tools, agent.uses_memory) == (["clock", "memory_search"], False)
    assert [server.name for server in agent.mcp_servers.all()] == ["books"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [("clock", "clok", "unknown tool clok"), ("books", "boks", "no MCP server boks")],
)
def test_load_agents_stores_nothing_if_a_tool_or_server_is_unknown(tmp_path, old, new, said):
    McpServer.objects.create(name="books", url="http://203.0.113.7/mcp")
    (tmp_path / "a.yaml").write_text(FILE.replace(old, new))
    with pytest.raises(CommandError, match=said):
        call_command("load_agents", str(tmp_path / "a.yaml"))
    assert not Agent.objects.exists()
