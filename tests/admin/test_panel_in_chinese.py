"""The panel in Chinese: all lists, forms and own pages, with rows in them, and the texts that stay English."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from html.parser import HTMLParser
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.utils import translation
from pytest_django.fixtures import Settings

from chatapp.accounts.budgets.models import Budget
from chatapp.accounts.invitations.models import Invitation
from chatapp.accounts.models import ApiToken, User
from chatapp.agent_presets.models import Agent, DeploymentHook, McpServer
from chatapp.conversations.models import GroupRetention
from chatapp.features.feedback.models import AnswerFeedback
from chatapp.features.prompts.models import Prompt
from chatapp.long_term.models import MemoryEntry
from chatapp.operations import clock
from chatapp.operations.database.audit import record, record_change
from chatapp.operations.models import AuditEvent
from chatapp.operations.translations import translate_sentence
from chatapp.providers.models import ModelConfig, Usage
from chatapp.runs.models import Run
from tests.admin.test_every_page import pages
from tests.memory_store.rows import finished_compaction, new_conversation, say

pytestmark = pytest.mark.django_db

CHINESE = {"HTTP_ACCEPT_LANGUAGE": "zh-CN,zh;q=0.9,en;q=0.5"}
LISTS = [route for route in pages() if re.fullmatch(r"admin/(chatapp|auth)/\w+/", route)]
OWN_PAGES = [
    route
    for route in pages()
    if re.match(r"admin/", route)
    and not re.search(r"[<(]|login|logout|password_change|jsi18n|autocomplete", route)
]
OF_A_ROW = ("change", "delete", "history", "preview", "look")

READ_ATTRIBUTES = ("title", "aria-label", "placeholder", "alt", "data-busy", "data-waiting", "data-failed")
NOT_TEXT = {"script", "style", "code", "pre", "textarea"}
NAMES = {
    "True", "False",  # The alternative texts of Django's icons.
    "Palimpsest", "Token", "YAML", "CSV", "HTTPS", "UTC", "ID", "Redis", "SQLite", "PostgreSQL", "GiB", "MiB",
    "OpenAI", "OpenRouter", "Ollama", "vLLM", "DeepSeek", "LM Studio", "Azure OpenAI",
}  # fmt: skip
CODE = re.compile(r"[^\s\u3000-\uffee]*[_./:@=\d][^\s\u3000-\uffee]*|[A-Z][A-Z_]+|[a-z]+(?=：)")
"""Keys, addresses, numbers, names of settings, and keys before a Chinese colon."""
CHINESE_SIGNS = re.compile(r"[\u4e00-\u9fff]")
ENGLISH = re.compile(r"[A-Za-z]{2,}")
SEVERAL_WORDS = re.compile(r"(?:\b[A-Za-z]+\b[ ,]+){2}[a-z]+")


class Texts(HTMLParser):
    """Collects the texts that a page shows or that a screen reader reads."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        if tag in NOT_TEXT:
            self.open.append(tag)
        self.found += [given[name] for name in READ_ATTRIBUTES if name in given]
        if tag == "input" and given.get("type") in ("submit", "button"):
            self.found.append(given.get("value", ""))
        if guide := json.loads(given.get("data-yaml") or "{}"):
            self.found += [*guide["words"].values(), *(each["title"] for each in guide["examples"])]
            self.found += [part["what"] for part in guide["parts"]]

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1] == tag:
            self.open.pop()

    def handle_data(self, text: str) -> None:
        if not self.open:
            self.found.append(text)


def english_on(html: str) -> list[str]:
    reader = Texts()
    reader.feed(html)
    return sorted({text for text in map(str.strip, reader.found) if is_english(text)})


def is_english(text: str) -> bool:
    """Return whether the text has an English word and no Chinese, or several English words in sequence."""
    for name in sorted(NAMES, key=len, reverse=True):
        text = re.sub(rf"\b{name}\b", "", text)
    text = CODE.sub("", text)
    return bool((ENGLISH if not CHINESE_SIGNS.search(text) else SEVERAL_WORDS).search(text))


@pytest.fixture
def rows(alice: User, admin_user: User) -> dict[str, Any]:
    """Return one row of every table of the panel, by the name of the table. All names and texts are Chinese."""
    now = clock.now()
    User.objects.update(name="小艾")
    model = ModelConfig.objects.create(
        name="模型一",
        model_id="m-1",
        base_url="https://models.example.com/v1",
        test_result="m-1 answers: first token after 12 ms, it counts tokens, its window is 8,192 tokens. "
        "In effect: a window of 8,192 tokens, 2,048 for answers, 5,120 for history and question.",
        tested_at=now,
    )
    agent = Agent.objects.create(name="门房", model=model, shares_memory=True)
    server = McpServer.objects.create(
        name="wiki-1",
        url="https://tools.example.com/mcp",
        listed_at=now,
        tools=[{"name": "page_1", "description": "读取页面", "parameters": {}}],
        approved_tools=[{"name": "page_1", "description": "读取", "parameters": {}}],
        headers_encrypted="x",
    )
    hook = {
        "id": "long-1",
        "on": "turn_end",
        "condition": {"type": "always"},
        "action": {"type": "log", "message": ""},
    }
    group = Group.objects.create(name="编辑部")
    GroupRetention.objects.create(group=group, days=30)
    conversation = new_conversation(alice, "里斯本", now)
    question, answer = say(conversation, "渡船在哪里？", "在索德雷码头。")
    run = Run.objects.create(
        conversation=conversation, user=alice, question=question, answer=answer, status="failed", model=model,
        mode="plan", error_category="auth", created_at=now - timedelta(seconds=30), started_at=now, finished_at=now,
    )  # fmt: skip
    compaction = finished_compaction(conversation)
    compaction.model = model
    compaction.save()
    record_change(model, "changed", fields=["api_key"], actor_id=admin_user.pk)
    record(AuditEvent.Kind.LOOKED, user_id=alice.pk, actor_id=admin_user.pk, reason="测试")
    return {
        "user": alice,
        "group": group,
        "apitoken": ApiToken.objects.create(
            user=alice, name="脚本", prefix="pal_1", token_hash="x", scopes=["chat"]
        ),
        "invitation": Invitation.objects.create(
            email="dora@example.com", token_hash="y", invited_by=admin_user, created_at=now, expires_at=now
        ),
        "budget": Budget.objects.create(scope="every_user", period="month", tokens=10_000),
        "modelconfig": model,
        "agent": agent,
        "mcpserver": server,
        "deploymenthook": DeploymentHook.objects.create(hook_id="long-1", declaration=hook),
        "prompt": Prompt.objects.create(name="letter-1", about="写信", text="写一封信。"),
        "conversation": conversation,
        "run": run,
        "compaction": compaction,
        "sharedentry": MemoryEntry.objects.create(
            user=alice, day=now.date(), scope=agent, shared_in=agent.pk, text="大门晚上关闭。", created_at=now
        ),
        "usage": Usage.objects.create(
            user=alice,
            model=model,
            model_name="模型一",
            purpose="chat",
            input_tokens=10,
            output_tokens=2,
            exact=True,
        ),
        "answerfeedback": AnswerFeedback.objects.create(
            user=alice,
            message=answer,
            rating="bad",
            reason="wrong",
            model_name="模型一",
            agent=agent,
            given_at=now,
        ),
        "auditevent": AuditEvent.objects.latest("at"),
    }


@pytest.fixture
def panel(admin_client: Client, settings: Settings) -> Client:
    settings.OPERATORS_READ_CHATS = True
    User.objects.update(name="小艾")
    admin_client.defaults |= CHINESE
    return admin_client


def addresses_of(rows: dict[str, Any]) -> list[str]:
    """Return the addresses of all lists, forms for new rows and pages of rows."""
    found = [f"/{route}" for route in OWN_PAGES]
    for route in LISTS:
        row = rows.get(route.split("/")[2])
        found += [f"/{route}{row.pk}/{page}/" for page in OF_A_ROW if row]
    return [*found, "/admin/chatapp/usage/report/?from=2026-01-01&to=2026-02-01&group_by=purpose"]


def test_no_page_of_the_panel_contains_english(panel: Client, rows: dict[str, Any]) -> None:
    tables = {route.split("/")[2] for route in LISTS}
    assert tables == set(rows), "a table of the panel has no row here"
    left: dict[str, list[str]] = {}
    for address in addresses_of(rows):
        shown = panel.get(address)
        if shown.status_code == 200 and "html" in shown["Content-Type"]:
            left[address] = english_on(shown.content.decode())
    assert len(left) > 60
    assert {address: texts for address, texts in left.items() if texts} == {}


@pytest.mark.parametrize(
    "slug", ["openai", "ollama", "vllm", "deepseek", "openrouter", "lmstudio", "azure", "other"]
)
def test_the_cards_of_providers_are_in_chinese(panel: Client, slug: str) -> None:
    shown = panel.get("/admin/chatapp/modelconfig/connect/", {"preset": slug})
    assert english_on(shown.content.decode()) == []


@pytest.mark.parametrize(
    ("address", "form"),
    [
        ("budget/add/", {"scope": "group", "period": "day"}),
        ("modelconfig/add/", {"name": "模型一", "base_url": "ftp://x", "context_policy": "keep_recent: x"}),
        ("modelconfig/add/", {"context_policy": "no_such: 1"}),
        ("agent/add/", {"name": "门房", "context_policy": "{", "hooks": "- id: 1"}),
        ("mcpserver/add/", {"name": "A B", "url": "x", "headers": "x", "tool_filter": "a: 1"}),
        ("deploymenthook/add/", {"declaration": "id: long-1"}),
        ("prompt/add/", {"name": "help", "text": "x"}),
        ("agent/import/", {"yaml": "- a"}),
        ("invitation/add/", {"email": "alice@example.com"}),
        ("invitation/add/", {"email": "x"}),
        ("modelconfig/connect/", {"base_url": "x", "_connect": "1"}),
    ],
)
def test_form_errors_are_in_chinese(
    panel: Client, rows: dict[str, Any], settings: Settings, address: str, form: dict[str, str]
) -> None:
    settings.SIGNUP = "invite"
    shown = panel.post(f"/admin/chatapp/{address}", form).content.decode()
    assert "errorlist" in shown
    assert english_on(shown) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [("RETENTION_DAYS", "x"), ("DEFAULT_TOOLS", "a!"), ("HTTP_FETCH_HOSTS", "a/b"), ("EMAIL_URL", "x")],
)
def test_errors_of_settings_are_in_chinese(panel: Client, name: str, value: str) -> None:
    shown = panel.post("/admin/settings/", {name: value})
    assert shown.status_code == 400
    assert english_on(shown.content.decode()) == []


def test_confirmations_of_actions_are_in_chinese(panel: Client, rows: dict[str, Any]) -> None:
    model, users = rows["modelconfig"], User.objects.exclude(is_superuser=True)
    deactivated = panel.post(
        "/admin/chatapp/user/",
        {"action": "deactivate", "_selected_action": [str(user.pk) for user in users]},
        follow=True,
    )
    assert "已停用" in deactivated.content.decode()
    changed = panel.post("/admin/settings/", {"RETENTION_DAYS": "90"}, follow=True)
    assert "即刻生效" in changed.content.decode()
    for shown in (deactivated, changed):
        assert english_on(shown.content.decode()) == []
    with translation.override("zh-hans"):
        assert translate_sentence(model.test_result) == (
            "m-1 有响应：12 毫秒后出现第一个 Token，会统计 Token，窗口为 8,192 Token。"
            "实际生效：窗口 8,192 Token，其中回答 2,048，历史与问题 5,120。"
        )


def test_the_language_of_the_user_overrides_that_of_the_browser(panel: Client, admin_user: User) -> None:
    assert "系统检查" in panel.get("/admin/").content.decode()
    User.objects.filter(pk=admin_user.pk).update(language="en")
    assert "System checks" in panel.get("/admin/").content.decode()


def test_the_dates_of_the_report_form_are_in_iso_format(panel: Client) -> None:
    shown = panel.get("/admin/chatapp/usage/report/").content.decode()
    assert re.findall(r'type="date" name="from" value="\d{4}-\d\d-\d\d"', shown)


def test_the_audit_log_is_in_english_in_every_language(panel: Client, rows: dict[str, Any]) -> None:
    panel.post("/admin/chatapp/budget/add/", {"scope": "every_user", "period": "day", "tokens": "5"})
    event = AuditEvent.objects.filter(kind="changed_in_admin").latest("at")
    assert (event.detail["done"], event.detail["name"]) == ("added", "each user: a day")


def test_an_unknown_sentence_is_not_translated() -> None:
    with translation.override("zh-hans"):
        assert translate_sentence("Nobody wrote this down.") == "Nobody wrote this down."
        assert translate_sentence("m does not answer: the key is not accepted (bad key. Go away).") == (
            "m 没有响应：密钥未被接受（bad key. Go away）。"
        )
    assert translate_sentence("the key is not accepted") == "the key is not accepted"
