"""The admin page of an agent: its tools, a preview that stores only its usage, import and export."""

from __future__ import annotations

import pytest

from agents.presets.exchange import read_preset
from chatapp.agent_presets.models import Agent, McpServer
from chatapp.conversations.models import Conversation, Message
from chatapp.providers.models import ModelConfig, Usage
from chatapp.runs.models import Run, ToolCall
from tests.api import own_tools
from tests.plans.planned_server import plan_of, planned_server, tool_call
from tests.servers.behaviour import Behaviour
from tests.servers.openai_server import ModelServer

pytestmark = [pytest.mark.django_db]


@pytest.fixture
def server():
    with ModelServer() as running:
        yield running


@pytest.fixture
def agent(server):
    model = ModelConfig.objects.create(name="Main", model_id="test-model", base_url=server.base_url)
    return Agent.objects.create(name="Pirate", model=model, system_prompt="Say arr.", tools=["clock"])


def page_of(agent, tail="change"):
    return f"/admin/chatapp/agent/{agent.pk}/{tail}/"


FORM = {
    "name": "Pirate",
    "mode": "react",
    "timeout_s": "0",
    "context_policy": "{}",
    "hooks": "[]",
    "enabled": "on",
}


def test_operators_choose_tools_and_servers(admin_client, agent):
    books = McpServer.objects.create(name="books", url="http://203.0.113.7/mcp")
    chosen = {"chooses_tools": "on", "tools": ["clock", "calculator"], "mcp_servers": [str(books.pk)]}
    assert admin_client.post(page_of(agent), FORM | chosen).status_code == 302
    agent.refresh_from_db()
    assert agent.tools == ["clock", "calculator"]
    assert list(agent.mcp_servers.all()) == [books]
    assert admin_client.post(page_of(agent), FORM).status_code == 302
    agent.refresh_from_db()
    assert agent.tools is None


def test_a_preview_uses_the_preset_and_stores_only_its_usage(admin_client, admin_user, agent, server):
    server.script(Behaviour(text="Arr, <b>matey</b>"))
    shown = admin_client.post(page_of(agent, "preview"), {"question": "Hello?"}).content.decode()
    assert "Arr, &lt;b&gt;matey&lt;/b&gt;" in shown
    assert "tokens in" in shown
    [asked] = server.requests
    assert asked.body["messages"][0]["content"].startswith("Say arr.")
    assert asked.body["messages"][1]["content"] == "Hello?"
    assert [tool["function"]["name"] for tool in asked.body["tools"]] == ["clock"]
    assert (Conversation.objects.count(), Message.objects.count(), Run.objects.count()) == (0, 0, 0)
    assert Usage.objects.get().user == admin_user


def asking(name, arguments):
    return Behaviour(text="", tool_calls=({"id": "1", "name": name, "arguments": arguments},))


def test_a_preview_runs_read_only_tools_and_the_model_gets_their_results(admin_client, agent, server):
    agent.tools = ["calculator"]
    agent.save()
    server.script(asking("calculator", '{"expression": "6 * 7"}'), Behaviour(text="Arr, forty-two."))
    shown = admin_client.post(page_of(agent, "preview"), {"question": "How much?"}).content.decode()
    assert "6 * 7" in shown
    assert "Arr, forty-two." in shown
    assert "42" in server.requests[1].messages[-1]["content"]
    assert Usage.objects.count() == 2
    assert (Conversation.objects.count(), Run.objects.count(), ToolCall.objects.count()) == (0, 0, 0)


@pytest.mark.parametrize("name", ["send_mail", "pay", "files_list", "memory_search"])
def test_a_preview_shows_but_does_not_run_tools_that_change_data_or_need_a_conversation(
    admin_client, agent, server, settings, name
):
    settings.EXTRA_TOOLS = own_tools.NAMES
    agent.tools = [name]
    agent.save()
    for tool in own_tools.ALL:
        tool.forget()
    arguments = '{"query": "boats"}' if name == "memory_search" else "{}"
    server.script(asking(name, arguments), Behaviour(text="Then not."))
    shown = admin_client.post(page_of(agent, "preview"), {"question": "Do it."}).content.decode()
    assert f"<b>{name}</b>" in shown
    assert "A preview does not run this tool" in shown
    assert "Then not." in shown
    assert not any(tool.calls for tool in own_tools.ALL)


THREE = "1. the price of A\n2. the price of B\n3. the difference"


@pytest.mark.parametrize(("mode", "question"), [("plan", "What of A and B?"), ("auto", THREE)])
def test_a_preview_of_a_planning_agent_shows_the_plan_and_stores_the_usage_of_each_model(
    admin_client, agent, server, mode, question
):
    fast = ModelConfig.objects.create(name="Fast", model_id="fast-model", base_url=server.base_url)
    ModelConfig.objects.filter(name="Main").update(fast_model=fast)
    agent.mode, agent.tools = mode, ["calculator"]
    agent.save()
    planned = planned_server(server)
    planned.plans = [plan_of(a="", b="a")]
    planned.steps["a"] = [tool_call("calculator", expression="6 * 7"), "A is 42."]
    shown = admin_client.post(page_of(agent, "preview"), {"question": question}).content.decode()
    assert "with a plan" in shown
    assert [text in shown for text in ("a: Step a</b> done", "b: Step b</b> done, after a", "A is 42.")] == [
        True
    ] * 3
    assert "6 * 7" in shown
    assert "The answer." in shown
    assert {request.body["model"] for request in planned.requests("step")} == {"fast-model"}
    assert "A is 42." in planned.requests("answer")[0].text
    assert "tools" not in planned.requests("answer")[0].body
    spent = sorted(Usage.objects.values_list("purpose", "model_name"))
    assert spent == [("chat", "Main"), *[("plan", "Fast")] * 3, *[("plan", "Main")] * 2]
    assert (Conversation.objects.count(), Run.objects.count(), ToolCall.objects.count()) == (0, 0, 0)


def test_a_preview_in_auto_mode_answers_a_plain_question_in_one_loop(admin_client, agent, server):
    agent.mode = "auto"
    agent.save()
    server.script(Behaviour(text="Arr."))
    shown = admin_client.post(page_of(agent, "preview"), {"question": "Hello?"}).content.decode()
    assert "Arr." in shown
    assert "with a plan" not in shown
    assert len(server.requests) == 1


def test_a_preview_without_a_usable_plan_answers_with_a_notice(admin_client, agent, server):
    agent.mode = "plan"
    agent.save()
    planned = planned_server(server)
    planned.plans = ["I do not plan."]
    shown = admin_client.post(page_of(agent, "preview"), {"question": "Hello?"}).content.decode()
    assert "No usable plan was made" in shown
    assert "The answer." in shown


def test_a_preview_reports_an_unreachable_model(admin_client, agent):
    ModelConfig.objects.update(base_url="http://127.0.0.1:9/v1")
    shown = admin_client.post(page_of(agent, "preview"), {"question": "Hello?"}).content.decode()
    assert "errornote" in shown
    assert not Usage.objects.exists()


@pytest.mark.parametrize(
    ("broken", "told"),
    [({"fault": "cut"}, "errornote"), ({"hold_after": 3}, "There was no answer within 5 s.")],
)
def test_an_interrupted_preview_shows_its_text_and_stores_estimated_usage(
    admin_client, agent, server, broken, told
):
    agent.timeout_s = 5.0
    agent.save()
    server.script(Behaviour(text="one two three four five", **broken))
    shown = admin_client.post(page_of(agent, "preview"), {"question": "Hello?"}).content.decode()
    assert told in shown
    assert "one two" in shown
    spent = Usage.objects.get()
    assert (spent.purpose, spent.exact) == ("chat", False)
    assert spent.input_tokens > 100
    assert f"{spent.input_tokens} tokens in, {spent.output_tokens} out (estimated)" in shown


def test_an_interrupted_plan_in_a_preview_stores_the_usage_of_each_call(admin_client, agent, server):
    agent.mode, agent.timeout_s = "plan", 6.0
    agent.save()
    planned = planned_server(server)
    planned.plans = [plan_of(a="")]
    planned.steps["a"] = [Behaviour(text="one two three four five", hold_after=3)]
    admin_client.post(page_of(agent, "preview"), {"question": "What of A?"})
    assert list(Usage.objects.order_by("-exact").values_list("purpose", "exact")) == [
        ("plan", True),
        ("plan", False),
    ]


def test_the_export_is_a_preset(admin_client, agent):
    exported = admin_client.get(page_of(agent, "export")).content.decode()
    preset = read_preset(exported)
    assert (preset.name, preset.model, preset.tools) == ("Pirate", "Main", ["clock"])
    assert "127.0.0.1" not in exported


def test_an_exported_agent_can_be_imported_in_the_panel_unchanged(admin_client, agent):
    agent.timeout_s, agent.greeting = 12.5, "Ahoy"
    agent.hooks = [
        {
            "id": "h",
            "on": "turn_start",
            "condition": {"type": "always"},
            "action": {"type": "log", "message": "x"},
            "cooldown": 0.0,
        }
    ]
    agent.save()
    exported = admin_client.get(page_of(agent, "export")).content.decode()
    assert "There is an agent of this name already" in send_import(admin_client, exported).content.decode()
    before = {name: getattr(agent, name) for name in COLUMNS}
    agent.delete()
    imported = send_import(admin_client, exported)
    assert imported.status_code == 302, imported.content.decode()
    copy = Agent.objects.get()
    assert ({name: getattr(copy, name) for name in COLUMNS}, copy.owner) == (before, None)


COLUMNS = (
    "name",
    "model",
    "mode",
    "system_prompt",
    "greeting",
    "temperature",
    "timeout_s",
    "tools",
    "hooks",
    "uses_memory",
)


def send_import(admin_client, text):
    return admin_client.post("/admin/chatapp/agent/import/", {"yaml": text})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("just words", "not a YAML mapping"),
        ("name: x\nmode: dream", "mode: "),
        ("name: x\ncontext_policy: {keep_recnt: 1}", "unknown setting"),
    ],
)
def test_an_invalid_agent_file_is_refused_with_the_invalid_field(admin_client, text, told):
    assert told in send_import(admin_client, text).content.decode()
    assert not Agent.objects.exists()


def test_an_import_reports_omitted_fields(admin_client):
    send_import(admin_client, "name: Guest\nmodel: far-away-1\ntools: [clock]\n")
    page = admin_client.get("/admin/chatapp/agent/").content.decode()
    assert "There is no model far-away-1 here; it was left out." in page
    assert Agent.objects.get().tools == ["clock"]


def test_an_agent_that_exceeds_the_limits_of_presets_cannot_be_exported(admin_client, agent):
    agent.greeting = "x" * 3_000
    agent.save()
    told = admin_client.get(page_of(agent, "export"), follow=True).content.decode()
    assert "It cannot be exported. greeting:" in told


def test_agents_of_users_are_not_shown_in_the_panel(admin_client, agent, alice):
    own = Agent.objects.create(name="Diary", owner=alice, system_prompt="private words")
    assert "Diary" not in admin_client.get("/admin/chatapp/agent/").content.decode()
    for tail in ("preview", "export"):
        assert admin_client.get(page_of(own, tail)).status_code == 404


@pytest.mark.parametrize("tail", ["change", "preview", "export"])
def test_users_cannot_open_the_pages_of_an_agent(alice, browser_client, agent, tail):
    assert browser_client(alice).get(page_of(agent, tail)).status_code == 404


def test_the_form_refuses_the_name_of_another_agent(admin_client, agent):
    other = Agent.objects.create(name="Parrot")
    for page in (page_of(other), "/admin/chatapp/agent/add/"):
        shown = admin_client.post(page, FORM)
        assert shown.status_code == 200
        assert "There is an agent of this name already." in shown.content.decode()
    assert admin_client.post(page_of(agent), FORM).status_code == 302, "its own name is not taken"


@pytest.mark.parametrize(
    ("field", "text"),
    [
        (
            "hooks",
            '[{"id": "a\\u0000", "condition": {"type": "always"}, "action": {"type": "compact_context"}}]',
        ),
        ("context_policy", '{"compact_prompt": "a\\u0000"}'),
        ("context_policy", '{"summary_schema": {"most": 1e999}}'),
        ("context_policy", '{"summary_timeout_s": 1e999}'),
    ],
)
def test_the_form_refuses_values_that_no_database_stores(admin_client, agent, field, text):
    shown = admin_client.post(page_of(agent), FORM | {field: text})
    assert shown.status_code == 200
    assert "errorlist" in shown.content.decode()
