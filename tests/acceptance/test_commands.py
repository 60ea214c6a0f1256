"""The commands of the composer and the divider's own buttons, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Page, expect

from tests.acceptance.conversations import long_history
from tests.frontend.chatting import sign_in
from tests.servers.behaviour import Behaviour
from tests.servers.openai_server import ModelServer


def command(page: Page, text: str) -> Any:
    page.locator("#composer").fill(text)
    page.locator("#composer").press("Enter")
    return page.locator(".command-answer")


def model_input(alice: httpx2.Client, conversation: str) -> Any:
    return alice.post(f"/api/v1/conversations/{conversation}/context", json={"query": "Next?"}).json()[
        "messages"
    ]


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer(
        summary_default=Behaviour(text="They keep notes about seven places. Codes begin with QX.")
    ) as server:
        yield server


@pytest.fixture(scope="module")
def service_env() -> dict[str, str]:
    return {"LLM_CONTEXT_SIZE": "16000"}


@pytest.mark.mechanism("fim.divider", "cowagent.commands", "ours.edit")
def test_composer_commands_and_divider_buttons_work(
    page: Page, model: ModelServer, alice: httpx2.Client, email: str
) -> None:
    imported = alice.post("/api/v1/conversations/import", json={"messages": long_history(40)}).json()
    conversation = imported["id"]
    page.context.clear_cookies()
    sign_in(page, email, f"/c/{conversation}")
    before = model_input(alice, conversation)

    # Completion: arrow keys select, Tab accepts.
    page.locator("#composer").fill("/co")
    expect(page.get_by_role("option")).to_have_count(4)
    page.locator("#composer").press("ArrowDown")
    page.locator("#composer").press("Tab")
    expect(page.locator("#composer")).to_have_value("/context ")

    expect(command(page, "/help")).to_contain_text("/memory QUERY")
    expect(command(page, "/context")).to_contain_text("user 21")
    expect(command(page, "/config keep_recent 4")).to_contain_text("keep_recent")
    expect(command(page, "/config keep_recent minus").locator("header")).to_have_text("/config")
    expect(command(page, "/config no_such_thing 4")).to_contain_text("no_such_thing")
    expect(command(page, "/config trigger 0.7")).to_contain_text("0.7")
    expect(command(page, "/config trigger_ratio 0.5")).to_contain_text("0.5")
    expect(command(page, "/config")).not_to_contain_text("0.7")
    expect(command(page, "/memory QX-00012")).to_contain_text("code QX-00012")
    expect(command(page, "/context")).to_contain_text("4 (conversation)")
    expect(command(page, "/compact keep_recent=many the codes").locator("header")).to_have_text("/compact")
    expect(page.locator(".command-answer")).to_contain_text("keep_recent")
    assert not model.requests_of("chat"), "commands are not for the model"

    # Preview, compact, edit, undo, redo.
    page.locator(".header").get_by_role("button", name="Context").click()
    page.get_by_label("What the summary should keep").fill("the codes")
    page.get_by_role("button", name="Preview first").click()
    expect(page.locator(".command-answer")).to_contain_text("36 messages")
    page.get_by_text("What the model sees").click()
    expect(page.locator(".panel")).to_contain_text("keep_recent")
    assert not model.requests_of("summary")
    page.get_by_role("button", name="Compact now").click()
    divider = page.locator(".divider-sentence")
    expect(divider).to_have_text("Earlier context (36 messages) was summarized by AI.")
    assert "the codes" in model.requests_of("summary")[0].text
    refused = {"status": 503, "json": {"error": {"code": "unavailable", "message": "The database is away."}}}
    page.route("**/compactions", lambda route: route.fulfill(**refused))
    divider.click()
    expect(page.locator(".divider-panel")).to_contain_text("The database is away.")
    page.unroute("**/compactions")
    page.locator(".divider-panel").get_by_role("button", name="Try again").click()
    expect(page.locator(".divider-panel")).to_contain_text("They keep notes about seven places.")
    expect(divider).to_be_in_viewport()
    expect(page.locator(".divider-tokens")).to_contain_text("test-model")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Edit summary").click()
    page.get_by_label("Summary", exact=True).last.fill("They keep notes, and I said so myself.")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".divider-panel")).to_contain_text("I said so myself")
    assert any("I said so myself" in str(message) for message in model_input(alice, conversation))

    page.locator(".divider-bar").get_by_role("button", name="Undo").click()
    expect(divider).to_have_count(0)
    assert model_input(alice, conversation) == before, "byte for byte as before"
    page.locator(".toast", has_text="was undone").get_by_role("button", name="Undo").click()
    expect(divider).to_have_count(1)

    page.reload()
    model.script(Behaviour(fault="html"), kind="summary")
    expect(command(page, "/config keep_recent 2")).to_contain_text("keep_recent")
    command(page, "/compact the places")
    expect(divider).to_have_count(2)
    expect(page.locator(".command-answer")).to_have_count(0)
    assert "the places" in model.requests_of("summary")[-1].text
    divider.last.click()
    expect(page.locator(".divider-panel")).to_contain_text("No model wrote this")

    expect(command(page, "/context clear")).to_contain_text("no longer in context; recall may bring it back")
    expect(divider.last).to_contain_text("Context cleared")
    assert all("QX-00039" not in str(message) for message in model_input(alice, conversation))
