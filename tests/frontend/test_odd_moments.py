"""Failed loads that are retried, lost responses, broken mail addresses, and keys of an input method."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx2
import pytest
from playwright.sync_api import Page, Route, expect

from tests.frontend.chatting import say
from tests.servers.behaviour import says
from tests.servers.openai_server import ModelServer


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer(default=says("Write to [us](mailto:100%@x.org), *please*.")) as server:
        yield server


def test_a_chat_loaded_by_try_again_receives_live_updates(page: Page, alice: httpx2.Client) -> None:
    chat = alice.post("/api/v1/conversations", json={}).json()["id"]
    address = f"**/api/v1/conversations/{chat}"
    page.route(
        address, lambda route: route.fulfill(status=503, json={"error": {"code": "x", "message": "Not now."}})
    )
    page.goto(f"/c/{chat}")
    again = page.get_by_role("button", name="Try again")
    expect(again).to_be_visible()
    assert again.evaluate("button => button.offsetWidth < button.parentElement.offsetWidth / 2")
    page.unroute(address)
    again.click()
    page.locator("#composer").fill("Hello")
    page.locator("#composer").press("Enter")
    expect(page.locator("article.is-assistant[data-status=complete]")).to_be_visible(timeout=20_000)
    expect(page.locator("article.is-sending")).to_have_count(0)


def test_a_failed_search_is_retried_with_the_same_words(page: Page, alice: httpx2.Client) -> None:
    for title in ("A harbour", "A tram"):
        alice.post("/api/v1/conversations", json={"title": title}).raise_for_status()
    refused = {"status": 503, "json": {"error": {"code": "x", "message": "Not now."}}}
    page.route("**/conversations?q=*", lambda route: route.fulfill(**refused))
    page.get_by_role("searchbox", name="Search conversations").fill("harbour")
    again = page.get_by_role("navigation", name="Conversations").get_by_role("button", name="Try again")
    expect(again).to_be_visible()
    page.unroute("**/conversations?q=*")
    again.click()
    expect(page.get_by_role("link", name="A harbour")).to_be_visible()
    expect(page.get_by_role("link", name="A tram")).to_have_count(0)


CUT_OFF_ONCE = """() => {
  const fetchWhole = window.fetch;
  window.fetch = async (url, options) => {
    const answer = await fetchWhole(url, options);
    if (options?.method !== "POST" || !url.endsWith("/messages")) return answer;
    window.fetch = fetchWhole;
    const cut = new ReadableStream({ start: (body) => body.error(new TypeError("network error")) });
    return new Response(cut, { status: answer.status });
  };
}"""
"""The server accepts a message, and the connection breaks during its response."""


def test_a_message_with_a_cut_off_response_is_sent_once(page: Page, alice: httpx2.Client) -> None:
    page.evaluate(CUT_OFF_ONCE)
    say(page, "Just once")
    expect(page.locator("article.is-assistant[data-status=complete]")).to_be_visible()
    expect(page.locator("article.is-sending")).to_have_count(0)
    expect(page.locator("article.is-user")).to_have_count(1)
    expect(page.locator(".banner.is-bad")).to_have_count(0)
    expect(page.locator("#composer")).to_have_value("")


def test_a_message_sent_during_the_request_of_the_previous_one_follows_it(page: Page) -> None:
    held: list[Route] = []
    new_chat, new_message = re.compile("/api/v1/conversations$"), re.compile("/conversations/[^/]+/messages")

    def hold(route: Route) -> None:
        held.append(route)

    page.route(new_chat, hold)
    page.route(new_message, hold)
    with page.expect_request(new_chat):
        say(page, "One")
    say(page, "Two")
    with page.expect_request(new_message):
        held.pop().continue_()
    expect(page.locator("#composer")).to_have_value("Two")
    page.unroute(new_message)
    held.pop().continue_()
    expect(page.locator("article.is-user")).to_contain_text(["One", "Two"])
    expect(page.locator("#composer")).to_have_value("")


def test_a_paragraph_with_a_broken_mail_address_is_shown(page: Page) -> None:
    page.locator("#composer").fill("Hello")
    page.locator("#composer").press("Enter")
    answer = page.locator("article.is-assistant")
    expect(answer).to_have_attribute("data-status", "complete")
    expect(answer).not_to_contain_text("This could not be rendered")


def test_escape_in_an_input_method_does_not_discard_an_edited_entry(page: Page, alice: httpx2.Client) -> None:
    alice.post("/api/v1/memory/entries", json={"text": "茶", "day": "2026-11-20"}).raise_for_status()
    page.goto("/memory")
    page.locator(".entry").get_by_role("button", name="Edit").click()
    area = page.get_by_label("Text of the entry")
    area.fill("我喜欢喝龙井茶，还有")
    # In an input method, this key closes the list of candidates.
    area.dispatch_event(
        "keydown", {"key": "Escape", "isComposing": True, "bubbles": True, "cancelable": True}
    )
    expect(area).to_have_value("我喜欢喝龙井茶，还有")


def test_keys_of_an_input_method_neither_save_nor_cancel_a_new_title(
    page: Page, alice: httpx2.Client
) -> None:
    alice.post("/api/v1/conversations", json={"title": "Tea"}).raise_for_status()
    page.reload()
    page.locator(".row").hover()
    page.get_by_role("button", name="Options for Tea").click()
    page.get_by_role("menuitem", name="Rename").click()
    field = page.locator(".row-field")
    field.fill("龙井")
    for key in ("Enter", "Escape"):
        field.dispatch_event("keydown", {"key": key, "isComposing": True, "bubbles": True})
        expect(field).to_have_value("龙井")
    field.press("Enter")
    expect(page.get_by_role("link", name="龙井")).to_be_visible()


def test_errors_of_the_memory_switch_and_the_context_panel_are_shown(page: Page) -> None:
    def fail(route: Route) -> None:
        if route.request.method in {"PATCH", "POST"}:
            route.fulfill(status=503, json={"error": {"code": "x", "message": "Not now."}})
        else:
            route.continue_()

    page.route(re.compile("/memory/settings$|/context$"), fail)
    say(page, "Hello")
    expect(page.locator("article.is-assistant[data-status=complete]")).to_be_visible()
    page.keyboard.press("Control+k")
    page.keyboard.type("What the model sees")
    page.keyboard.press("Enter")
    panel = page.get_by_role("complementary", name="Context")
    panel.get_by_text("What the model sees").click()
    expect(panel.get_by_text("The context could not be loaded.")).to_be_visible()

    page.goto("/memory")
    switch = page.get_by_role("switch", name="Pause memory")
    switch.click()
    expect(page.get_by_text("Not now.")).to_be_visible()
    expect(switch).not_to_be_checked()
