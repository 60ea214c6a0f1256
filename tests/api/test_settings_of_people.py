"""Settings of a user: validated, private, exported, and applied to pages and answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from chatapp.accounts.archive import account_files
from chatapp.accounts.models import User
from chatapp.agent_presets.models import Agent
from chatapp.conversations.models import Conversation
from chatapp.forgetting.services import forget_all
from chatapp.operations import clock
from chatapp.providers.models import ModelConfig
from tests.api.program import Program
from tests.api.running import new_conversation

SETTINGS = "/api/v1/me/settings"
CHINESE = {"HTTP_ACCEPT_LANGUAGE": "zh-CN,zh;q=0.9,en;q=0.5"}


def change(client: Client, **fields: Any) -> Any:
    return client.patch(SETTINGS, fields, content_type="application/json")


def test_only_the_sent_settings_of_the_user_are_changed(alice_client: Client, charlie_client: Client) -> None:
    before = alice_client.get(SETTINGS).json()
    assert before["language"] is None
    chosen = {"language": "zh-hans", "theme": "dark", "text_size": "large", "instructions": "Be brief.\r\n"}
    changed = change(alice_client, **chosen).json()
    assert changed == before | chosen | {"instructions": "Be brief."}
    assert change(alice_client, language=None).json()["language"] is None
    assert charlie_client.get(SETTINGS).json() == before


@pytest.mark.parametrize(
    "fields",
    [
        {"language": "tlh"},
        {"theme": None},
        {"text_size": "huge"},
        {"send_key": "space"},
        {"instructions": "x" * 8_001},
        {"colour": "red"},
    ],
    ids=str,
)
def test_invalid_settings_return_422(alice_client: Client, fields: dict[str, Any]) -> None:
    assert change(alice_client, **fields).status_code == 422


def test_the_export_contains_the_settings(alice: User) -> None:
    chosen = {
        "language": "zh-hans",
        "theme": "dark",
        "text_size": "large",
        "text_width": "wide",
        "send_key": "ctrl_enter",
        "notifications": False,
        "instructions": "Be brief.",
    }
    for name, value in chosen.items():
        setattr(alice, name, value)
    assert json.loads(str(dict(account_files(alice))["account.json"]))["settings"] == chosen


async def test_the_model_gets_the_instructions_unless_its_memory_is_shared(
    alice_program: Program, model: ModelConfig, alice: User
) -> None:
    await alice_program.patch("me/settings", instructions="Answer in rhymes.")
    conversation = await new_conversation(alice_program)
    seen = await alice_program.post(f"conversations/{conversation}/context", query="Hello")
    assert "Answer in rhymes." in seen.json()["messages"][0]["content"]
    shared = await Agent.objects.acreate(name="Ours", shares_memory=True)
    await Conversation.objects.filter(pk=conversation).aupdate(agent=shared, scope=shared)
    seen = await alice_program.post(f"conversations/{conversation}/context", query="Hello")
    assert "Answer in rhymes." not in seen.json()["messages"][0]["content"]


def test_forgetting_everything_deletes_the_instructions(alice: User) -> None:
    alice.instructions = "I live in Lisbon."
    alice.save()
    forget_all(alice, now=clock.now())
    alice.refresh_from_db()
    assert alice.instructions == ""


def test_pages_use_the_language_of_the_browser_until_the_user_chooses_one(
    alice: User, alice_client: Client, client: Client
) -> None:
    assert '<html lang="zh-hans" dir="ltr">' in client.get("/accounts/login/", **CHINESE).content.decode()
    assert "<h1>登录</h1>" in client.get("/accounts/login/", **CHINESE).content.decode()
    assert "这里什么也没有。" in client.get("/nowhere", **CHINESE).content.decode()
    client.force_login(alice)
    assert '<html lang="en" dir="ltr"' in client.get("/").content.decode()
    assert '<html lang="zh-hans" dir="ltr"' in client.get("/", **CHINESE).content.decode()
    change(alice_client, language="en", theme="dark", text_width="wide")
    page = client.get("/", **CHINESE).content.decode()
    assert (
        '<html lang="en" dir="ltr" data-theme="dark" data-text-size="normal" data-text-width="wide">' in page
    )
    change(alice_client, language="zh-hans")
    assert '<html lang="zh-hans" dir="ltr"' in client.get("/").content.decode()


def test_api_responses_are_in_english(alice_client: Client) -> None:
    change(alice_client, language="zh-hans")
    refused = alice_client.post(
        "/api/v1/tokens", {"scopes": []}, content_type="application/json", **CHINESE
    ).json()
    assert refused["error"]["message"].isascii()
