"""Unread answers and pending approvals are shown on all devices, and cause notifications."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Page, Route, expect

from tests.frontend.chatting import SIZES, ask, barriers, say
from tests.servers.behaviour import Behaviour, says
from tests.servers.mcp_server import McpProcess
from tests.servers.openai_server import ModelServer
from tests.servers.people import ALICE
from tests.servers.service import Service
from tests.servers.waiting import wait_for

HIDE = """hidden => {
  Object.defineProperty(document, "hidden", {value: hidden, configurable: true});
  document.dispatchEvent(new Event("visibilitychange"));
}"""
PERMISSION = """
  window.told = [];
  window.Notification = class {
    static permission = "default";
    static async requestPermission() { return (Notification.permission = "granted"); }
    constructor(title, options) { told.push([title, options.body]); }
    close() {}
  };
"""

MAY_BE_DEAF = """window.WebSocket = class extends WebSocket {
  constructor(address) { super(address); window.lastSocket = this; }
  set onmessage(hear) { super.onmessage = (event) => window.isDeaf || hear(event); }
};"""
"""A socket that can stay open but receive nothing, as after a laptop was asleep."""


@pytest.fixture(scope="module")
def mail(tmp_path_factory: pytest.TempPathFactory, shared_service: Service) -> Iterator[str]:
    """Yield the name of a tool that all users have and must approve."""
    with McpProcess() as server:
        servers = [{"name": "post", "url": server.url, "is_own": True, "for_everyone": True}]
        file: Path = tmp_path_factory.mktemp("mcp") / "deployment.yaml"
        file.write_text(json.dumps({"mcp_servers": servers}))
        shared_service.manage("apply", str(file))
        program = shared_service.client_of(ALICE)
        tools = lambda: [tool["name"] for tool in program.get("/api/v1/tools").json()["items"]]  # noqa: E731
        wait_for(lambda: "post__send_mail" in tools(), what="the tools of the server are known")
        yield "post__send_mail"


def hide(page: Page, hidden: bool) -> None:
    page.evaluate(HIDE, hidden)


def answered_elsewhere(alice: httpx2.Client, text: str) -> str:
    """Return the id of a conversation with an answer that no page has shown."""
    identifier = str(alice.post("/api/v1/conversations", json={}).json()["id"])
    sent = alice.post(f"/api/v1/conversations/{identifier}/messages", json={"content": text, "stream": False})
    assert sent.status_code == 200, sent.text
    return identifier


def test_an_unread_answer_has_a_dot_and_is_counted_until_any_device_shows_it(
    page: Page, alice: httpx2.Client
) -> None:
    ask(page, "Hello")
    seen = page.locator(".row.is-open")
    expect(seen.locator(".dot")).to_have_count(0)
    answered_elsewhere(alice, "From the command line")
    row = page.locator(".row", has_text="From the command line")
    expect(row.get_by_role("img", name="New answer")).to_be_visible()
    expect(page).to_have_title("(1) Hello · Palimpsest")
    assert barriers(page) == []
    page.reload()
    expect(row.get_by_role("img", name="New answer")).to_be_visible()
    expect(page).to_have_title("(1) Hello · Palimpsest")

    def with_more(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json={**answer.json(), "next_cursor": "more"})

    page.route(re.compile("attention=true"), with_more)
    page.reload()
    expect(page).to_have_title("(1+) Hello · Palimpsest")
    page.unroute(re.compile("attention=true"), with_more)
    page.reload()

    other = page.context.new_page()
    other.goto("/")
    expect(other).to_have_title("(1) Palimpsest")
    other.locator(".row", has_text="From the command line").locator(".row-link").click()
    expect(other).to_have_title("From the command line · Palimpsest")
    expect(page).to_have_title("Hello · Palimpsest")
    expect(page.locator(".row .dot")).to_have_count(0)


def test_notifications_are_offered_after_the_user_left_during_an_answer(
    page: Page, model: ModelServer
) -> None:
    page.add_init_script(PERMISSION)
    page.reload()
    offer = page.locator(".banner", has_text="Get a notification when an answer is ready")
    model.script(says("Slow and long.", hold_after=1))
    say(page, "Take your time")
    expect(page.locator("article.is-assistant")).to_be_visible()
    expect(offer).to_have_count(0)
    hide(page, True)
    hide(page, False)
    offer.get_by_role("button", name="Notify me").click()
    expect(offer).to_have_count(0)
    hide(page, True)
    model.wait_until(lambda server: bool(server.requests_of("chat")))
    model.release()
    wait_for(lambda: page.evaluate("told.length"), what="a notification")
    assert page.evaluate("told") == [["Take your time", "The answer is ready."]]
    expect(page).to_have_title("(1) Take your time · Palimpsest")
    hide(page, False)
    expect(page).to_have_title("Take your time · Palimpsest")


@pytest.mark.parametrize("size", ["desktop", "phone"])
def test_a_call_that_needs_approval_takes_the_focus_and_is_marked_in_the_list(
    page: Page, model: ModelServer, mail: str, size: str
) -> None:
    width, height = SIZES[size]
    page.set_viewport_size({"width": width, "height": height})
    page.reload()
    model.script(
        Behaviour(text=None, tokens=0, tool_calls=({"name": mail, "arguments": {"to": "bob"}},)),
        says("Sent."),
    )
    say(page, "Write to Bob")
    card = page.get_by_role("alertdialog", name="Approval of post__send_mail")
    expect(card).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_title("(1) Write to Bob · Palimpsest")
    if size == "phone":
        page.get_by_role("button", name="Open sidebar").click()
    expect(page.locator(".row").get_by_role("img", name="Needs your approval")).to_be_visible()
    assert barriers(page) == []
    if size == "phone":
        page.keyboard.press("Escape")
    card.get_by_role("button", name="Approve").click()
    expect(page.locator("article.is-assistant")).to_contain_text("Sent.")
    expect(page).to_have_title("Write to Bob · Palimpsest")
    expect(page.locator(".row .dot")).to_have_count(0)


def test_the_list_catches_up_with_missed_events_after_a_reconnection(
    page: Page, alice: httpx2.Client
) -> None:
    def make(title: str, **fields: str) -> str:
        made = alice.post("/api/v1/conversations", json={"title": title, **fields}).raise_for_status()
        return f"/api/v1/conversations/{made.json()['id']}"

    folder = alice.post("/api/v1/folders", json={"name": "Lisbon"}).json()["id"]
    kept, moved, gone = make("Kept"), make("Moved"), make("Gone")
    gone_inside = make("Gone inside", folder=folder)
    page.add_init_script(MAY_BE_DEAF)
    page.reload()
    page.get_by_role("button", name="Lisbon", exact=True).click()
    outside, inside = (
        page.locator(".group ul:not(.folder-items) > .row:has(a)"),
        page.locator(".folder-items .row"),
    )
    expect(outside).to_have_text(["Gone", "Moved", "Kept"])
    expect(inside).to_have_text(["Gone inside"])

    page.evaluate("window.isDeaf = true")
    alice.delete(gone).raise_for_status()
    alice.delete(gone_inside).raise_for_status()
    alice.patch(moved, json={"folder": folder}).raise_for_status()
    alice.patch(kept, json={"title": "Kept and renamed"}).raise_for_status()
    alice.post("/api/v1/folders", json={"name": "Porto"}).raise_for_status()
    make("New")
    page.evaluate("window.isDeaf = false; lastSocket.close()")
    expect(outside).to_have_text(["New", "Kept and renamed"])
    expect(inside).to_have_text(["Moved"])
    expect(page.get_by_role("button", name="Porto", exact=True)).to_be_visible()
