"""Several chats at once in a real browser, by keyboard too: archived, moved, deleted, with the way back; exported."""

from __future__ import annotations

import re

import httpx2
from playwright.sync_api import Locator, Page, expect

from tests.frontend.chatting import barriers, reload

TITLES = ("Ferry", "Tram", "Train")


def begin(page: Page, alice: httpx2.Client) -> Locator:
    """Return the rows of three chats, of which two are selected by keyboard."""
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


def test_selected_chats_are_archived_moved_and_deleted_with_a_way_back(
    page: Page, alice: httpx2.Client
) -> None:
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
