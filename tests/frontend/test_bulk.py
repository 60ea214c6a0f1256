"""Several chats at once in a real browser, also by keyboard: archived, moved and deleted with undo, and exported."""

from __future__ import annotations

import re

import httpx2
from playwright.sync_api import Locator, Page, expect

from tests.frontend.chatting import barriers, reload
from tests.servers.service import Service
from tests.servers.waiting import wait_for

MAKE_MANY = """
from datetime import UTC, datetime, timedelta
from chatapp.accounts.models import User
from tests.memory_store.rows import new_conversation
for number in range(200):
    new_conversation(User.objects.get(email="{email}"), f"Chat {{number}}", datetime.now(UTC) - timedelta(minutes=200 - number))
"""
BUSY = """
const Observer = IntersectionObserver;
window.IntersectionObserver = class extends Observer {
  constructor(tell, options) {
    const held = [];
    super((entries) => {
      if (options) tell(entries);
      else if (held.push(...entries) === entries.length) setTimeout(() => tell(held.splice(0)), 300);
    }, options);
  }
};
"""
"""A slow browser that reports in one batch which elements entered and left the view, but only for the end of the
list."""
TITLES = ("Ferry", "Tram", "Train")


def begin(page: Page, alice: httpx2.Client) -> Locator:
    """Create three chats, select two of them by keyboard, and return the rows."""
    for title in TITLES:
        alice.post("/api/v1/conversations", json={"title": title}).raise_for_status()
    alice.post("/api/v1/folders", json={"name": "Lisbon"}).raise_for_status()
    reload(page)
    rows = page.locator(".group:not(:has(.folder)) .row")
    expect(rows).to_have_count(3)
    select_two(page)
    return rows


def select_two(page: Page) -> None:
    page.get_by_role("button", name="Options for Ferry").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("menuitem").first).to_be_focused()
    page.get_by_role("menuitem", name="Select").focus()
    page.keyboard.press("Enter")
    page.get_by_role("checkbox", name="Tram").focus()
    page.keyboard.press("Space")
    expect(page.get_by_text("2 selected")).to_be_visible()


def test_selected_chats_are_archived_moved_and_deleted_with_undo(page: Page, alice: httpx2.Client) -> None:
    rows = begin(page, alice)
    bar = page.get_by_role("toolbar", name="Selected chats")
    assert barriers(page) == []
    with page.expect_request(re.compile("/bulk$")) as asked:
        bar.get_by_role("button", name="Archive").click()
    assert len(asked.value.post_data_json["ids"]) == 2
    expect(rows).to_have_count(1)
    page.get_by_role("button", name="Undo").click()
    expect(rows).to_have_count(3)

    select_two(page)
    bar.get_by_role("button", name="Move to folder…").click()
    expect(page.get_by_label("No folder", exact=True)).to_be_focused()
    expect(page.get_by_role("button", name="New folder…")).to_be_visible()
    page.get_by_label("Lisbon", exact=True).check()
    page.get_by_role("button", name="Move", exact=True).click()
    expect(page.locator(".folder-items .row")).to_have_count(2)
    page.get_by_role("button", name="Undo").click()
    expect(rows).to_have_count(3)

    select_two(page)
    page.keyboard.press("Delete")
    expect(rows).to_have_count(1)
    page.get_by_role("button", name="Undo").click()
    expect(rows).to_have_count(3)


def test_a_click_with_shift_changes_all_rows_between_two_clicks(page: Page, alice: httpx2.Client) -> None:
    for number in range(5):
        alice.post("/api/v1/conversations", json={"title": f"Trip {number}"}).raise_for_status()
    reload(page)
    page.get_by_role("button", name="Options for Trip 4").focus()
    page.keyboard.press("Enter")
    page.get_by_role("menuitem", name="Select").click()
    trips = [page.get_by_role("checkbox", name=f"Trip {number}") for number in range(5)]
    trips[1].click(modifiers=["Shift"])
    expect(page.get_by_text("4 selected")).to_be_visible()
    expect(trips[0]).not_to_be_checked()
    trips[2].click()
    trips[4].click(modifiers=["Shift"])
    expect(page.get_by_text("1 selected")).to_be_visible()
    expect(trips[1]).to_be_checked()


def test_selected_chats_are_exported_and_escape_ends_the_selection(page: Page, alice: httpx2.Client) -> None:
    begin(page, alice)
    page.keyboard.press("Control+a")
    expect(page.get_by_text("3 selected")).to_be_visible()
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as download:
        page.get_by_role("menuitem", name="Export as Markdown").click()
    assert download.value.suggested_filename == "conversations.zip"
    page.get_by_role("checkbox", name="Train").focus()
    page.keyboard.press("Escape")
    expect(page.get_by_role("checkbox")).to_have_count(0)


def test_only_nearby_rows_of_a_long_list_are_in_the_page_but_all_can_be_selected(
    page: Page, service: Service, email: str
) -> None:
    service.manage("shell", "-v", "0", "-c", MAKE_MANY.format(email=email))
    page.add_init_script(BUSY)
    reload(page)
    rows = page.locator(".sidebar-list .row")
    newest, oldest = (page.get_by_title(title, exact=True) for title in ("Chat 199", "Chat 0"))
    expect(newest).to_be_visible()
    newest.focus()
    page.keyboard.press("End")
    expect(oldest).to_be_focused()
    expect(newest).to_have_count(0)
    page.keyboard.press("Home")
    expect(newest).to_be_focused()
    page.locator("#search").focus()

    def is_at_the_end() -> bool:
        page.locator(".sidebar-list").evaluate("list => list.scrollTo(0, list.scrollHeight)")
        return oldest.count() > 0

    wait_for(is_at_the_end, what="the oldest chat is listed")
    expect(newest).to_have_count(0)
    assert 0 < rows.count() <= 150
    page.locator(".sidebar-list").evaluate("list => list.scrollTo(0, 0)")
    expect(newest).to_be_visible()
    expect(oldest).to_have_count(0)
    assert barriers(page) == []

    reload(page)
    expect(newest).to_be_visible()
    page.get_by_role("button", name="Options for Chat 199").focus()
    page.keyboard.press("Enter")
    page.get_by_role("menuitem", name="Select").click()
    bar = page.get_by_role("toolbar", name="Selected chats")
    bar.get_by_role("button", name="Select all").click()
    expect(bar).to_contain_text("200 selected")
    bar.get_by_role("button", name="Export").click()
    expect(page.get_by_role("menuitem", name="Export as JSON")).to_contain_text("The first 100 of them")
    page.keyboard.press("Escape")
    bar.get_by_role("button", name="Archive").click()
    expect(page.locator(".toast")).to_contain_text("Archived: 200")
    expect(rows).to_have_count(0)
