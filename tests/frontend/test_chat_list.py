"""The list of chats in a real browser: folders by keyboard and mouse, and the trash with restore and final deletion."""

from __future__ import annotations

import re

import httpx2
from playwright.sync_api import Locator, Page, expect

from tests.frontend.chatting import ask, barriers, reload

OPEN_WHEN_DRAWN = """const seen = new MutationObserver(() => {
  const button = document.querySelector(".row-menu");
  if (button) { seen.disconnect(); button.click(); }
});
seen.observe(document, {childList: true, subtree: true});"""


def choose(page: Page, row: Locator, action: str) -> None:
    """Choose an action from the menu of the row, only by keyboard."""
    row.get_by_role("button", name=re.compile("^Options")).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("menuitem").first).to_be_focused()
    page.get_by_role("menuitem", name=action).focus()
    page.keyboard.press("Enter")


def test_a_menu_opened_as_soon_as_it_is_drawn_has_its_items(page: Page, alice: httpx2.Client) -> None:
    alice.post("/api/v1/conversations", json={"title": "Ferry"}).raise_for_status()
    page.add_init_script(OPEN_WHEN_DRAWN)
    page.reload()
    expect(page.get_by_role("menuitem", name="Move to folder…")).to_be_visible()


def test_a_chat_is_dragged_into_a_folder_and_out_again(page: Page, alice: httpx2.Client) -> None:
    for title in ("Ferry", "Tram"):
        alice.post("/api/v1/conversations", json={"title": title}).raise_for_status()
    alice.post("/api/v1/folders", json={"name": "Lisbon"}).raise_for_status()
    reload(page)
    inside = page.locator(".folder-items .row")
    page.get_by_role("link", name="Ferry").drag_to(page.get_by_role("button", name="Lisbon", exact=True))
    expect(inside.locator(".row-title")).to_have_text("Ferry")
    page.get_by_role("link", name="Ferry").drag_to(page.get_by_role("link", name="Tram"))
    expect(inside).to_have_count(0)
    page.locator(".toast", has_text="Removed from its folder").get_by_role("button", name="Undo").click()
    expect(inside.locator(".row-title")).to_have_text("Ferry")


def test_only_some_of_many_folders_are_shown_to_leave_room_for_chats(
    page: Page, alice: httpx2.Client
) -> None:
    for number in range(14):
        alice.post("/api/v1/folders", json={"name": f"Folder {number:02}"}).raise_for_status()
    alice.post("/api/v1/conversations", json={"title": "Ferry"}).raise_for_status()
    reload(page)
    folder = page.locator(".folder")
    expect(folder).to_have_count(12)
    expect(page.get_by_role("link", name="Ferry")).to_be_in_viewport()
    page.get_by_role("button", name="Show all 14 folders").click()
    page.get_by_role("button", name="Folder 13", exact=True).click()
    page.get_by_role("button", name="Show fewer folders").click()
    expect(folder).to_have_count(13)
    expect(folder.last).to_contain_text("Folder 13")
    assert barriers(page) == []


def test_a_chat_is_moved_into_a_folder_that_is_then_edited_and_deleted(page: Page) -> None:
    ask(page, "Where is the ferry?")
    chat = page.locator(".row", has=page.locator("a.row-link"))
    folder = page.locator(".folder > .row")
    choose(page, chat, "Move to folder…")
    page.get_by_role("button", name="New folder…").click()
    page.get_by_label("Name", exact=True).fill("Lisbon")
    page.get_by_label("Instructions").fill("Answer in Portuguese.")
    page.get_by_role("button", name="Save").click()
    inside = page.locator(".folder-items .row")
    expect(inside).to_have_count(1)
    expect(chat).to_have_count(1)
    assert barriers(page) == []

    page.get_by_role("button", name="Undo").click()
    expect(inside).to_have_count(0)
    choose(page, chat, "Move to folder…")
    page.get_by_label("Lisbon", exact=True).check()
    page.get_by_role("button", name="Move", exact=True).click()
    expect(inside).to_have_count(1)

    choose(page, folder, "New chat here")
    expect(page.get_by_text("This chat begins in Lisbon.")).to_be_visible()
    ask(page, "And back?")
    expect(inside).to_have_count(2)
    reload(page)
    expect(inside).to_have_count(2)

    choose(page, folder, "Edit folder…")
    expect(page.get_by_label("Instructions")).to_have_value("Answer in Portuguese.")
    page.get_by_label("Add files").set_input_files(
        [
            {"name": "song.mp3", "mimeType": "audio/mpeg", "buffer": b"ID3\x04" + bytes(range(256)) * 8},
            {"name": "plan.txt", "mimeType": "text/plain", "buffer": b"Meet at the ferry."},
        ]
    )
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("song.mp3: This file is neither")
    page.get_by_role("button", name="Remove plan.txt").click()
    expect(page.get_by_role("dialog")).to_contain_text("Removed: plan.txt")
    page.get_by_role("dialog").get_by_role("button", name="Undo").click()
    expect(page.get_by_role("button", name="Remove plan.txt")).to_be_visible()
    assert barriers(page) == []
    page.get_by_label("Name", exact=True).fill("Porto")
    page.get_by_role("button", name="Save").click()
    expect(folder).to_contain_text("Porto")
    expect(page.get_by_role("dialog")).to_have_count(0)
    choose(page, folder, "Delete folder…")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(folder).to_have_count(0)
    expect(chat).to_have_count(2)


def test_selecting_text_across_the_edge_of_a_dialog_does_not_close_it(page: Page) -> None:
    page.locator(".account-button").click()
    page.get_by_role("menuitem", name="New folder…").click()
    name = page.get_by_label("Name", exact=True)
    name.fill("Lisbon")
    box = name.bounding_box()
    assert box
    inside, outside = (box["x"] + 20, box["y"] + box["height"] / 2), (5, 5)
    for start, end in ((inside, outside), (outside, inside)):
        page.mouse.move(*start)
        page.mouse.down()
        page.mouse.move(*end)
        page.mouse.up()
        expect(name).to_have_value("Lisbon")
    page.mouse.click(*outside)
    expect(page.get_by_role("dialog")).to_have_count(0)


def delete(page: Page) -> None:
    row = page.locator(".row.is-open")
    row.hover()
    row.get_by_role("button", name=re.compile("Options")).click()
    page.get_by_role("menuitem", name="Delete", exact=True).click()
    expect(page.locator(".row")).to_have_count(0)
    expect(page).to_have_url(re.compile(r"/$"))


def open_trash(page: Page) -> None:
    page.locator(".account-button").click()
    page.get_by_role("menuitem", name="Trash").click()
    expect(page.get_by_role("dialog").get_by_role("heading", name="Trash")).to_be_visible()


def test_a_deleted_chat_can_be_restored_or_deleted_for_good(page: Page) -> None:
    ask(page, "Where is the ferry?")
    delete(page)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("article.is-user")).to_contain_text("Where is the ferry?")
    expect(page.locator(".row")).to_have_count(1)

    delete(page)
    open_trash(page)
    assert barriers(page) == []
    until = page.get_by_text("removed for good on")
    assert until.evaluate("text => text.scrollWidth <= text.clientWidth"), "the date is read to its end"
    page.get_by_role("button", name="Restore Where is the ferry?").click()
    expect(page.locator("article.is-user")).to_contain_text("Where is the ferry?")

    delete(page)
    open_trash(page)
    page.get_by_role("button", name="Delete now: Where is the ferry?").click()
    expect(page.get_by_role("dialog")).to_contain_text("will be gone for good")
    page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text("The trash is empty.")


def test_a_tab_whose_chat_is_deleted_in_another_tab_says_so(page: Page) -> None:
    ask(page, "Where is the ferry?")
    other = page.context.new_page()
    other.goto(page.url)
    expect(other.locator("article.is-user")).to_contain_text("Where is the ferry?")
    delete(page)
    expect(other.locator("main")).to_contain_text("This conversation does not exist.")
    expect(other.locator(".row")).to_have_count(0)
    assert barriers(other) == []
    other.locator("main").get_by_role("button", name="New chat").click()
    expect(other).to_have_url(re.compile(r"/$"))
    expect(other.locator("#composer")).to_be_visible()


def trash(alice: httpx2.Client, *titles: str) -> None:
    chats = [alice.post("/api/v1/conversations", json={"title": title}).json()["id"] for title in titles]
    alice.post("/api/v1/conversations/bulk", json={"ids": chats, "action": "trash"}).raise_for_status()


def test_show_more_pressed_twice_shows_each_deleted_chat_once(page: Page, alice: httpx2.Client) -> None:
    trash(alice, *(f"Ferry {n}" for n in range(61)))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/trash?cursor=" in request.url else None)
    open_trash(page)
    rows = page.locator(".trash-row")
    expect(rows).to_have_count(30)
    more = page.get_by_role("dialog").get_by_role("button", name="Show more")
    more.evaluate("button => { button.click(); button.click(); }")
    expect(rows).to_have_count(60)
    assert len(asked) == 1
    more.click()
    expect(rows).to_have_count(61)
    titles = rows.locator(".trash-text > span").all_text_contents()
    assert sorted(titles) == sorted(f"Ferry {n}" for n in range(61))


def test_a_right_to_left_title_ends_at_the_left(page: Page, alice: httpx2.Client) -> None:
    trash(alice, "מתי יוצאת המעבורת?")
    open_trash(page)
    places = page.locator(".trash-text > span").evaluate(
        """(title) => {
            const text = document.createTreeWalker(title, NodeFilter.SHOW_TEXT).nextNode();
            return [0, text.length - 1].map((at) => {
                const one = document.createRange();
                one.setStart(text, at);
                one.setEnd(text, at + 1);
                return one.getBoundingClientRect().left;
            });
        }"""
    )
    assert places[1] < places[0], "the question mark stands behind the last word"
