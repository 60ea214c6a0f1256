"""The trash in a real browser: a toast with the way back, the list, and out of it for good."""

from __future__ import annotations

import re

import httpx2
from playwright.sync_api import Page, expect

from tests.frontend.chatting import ask, barriers


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


def test_a_deleted_chat_comes_back_and_goes_for_good_when_asked(page: Page) -> None:
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


def test_a_tab_whose_chat_is_deleted_in_another_says_so_and_leads_on(page: Page) -> None:
    ask(page, "Where is the ferry?")
    other = page.context.new_page()
    other.goto(page.url)
    expect(other.locator("article.is-user")).to_contain_text("Where is the ferry?")
    delete(page)
    expect(other.locator("main")).to_contain_text("There is no such conversation.")
    expect(other.locator(".row")).to_have_count(0)
    assert barriers(other) == []
    other.locator("main").get_by_role("button", name="New chat").click()
    expect(other).to_have_url(re.compile(r"/$"))
    expect(other.locator("#composer")).to_be_visible()


def trash(alice: httpx2.Client, *titles: str) -> None:
    for title in titles:
        chat = alice.post("/api/v1/conversations", json={"title": title}).json()["id"]
        assert alice.post(f"/api/v1/conversations/{chat}/trash").is_success


def test_show_more_pressed_twice_shows_each_deleted_chat_once(page: Page, alice: httpx2.Client) -> None:
    trash(alice, *(f"Ferry {n}" for n in range(65)))
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
    expect(rows).to_have_count(65)
    titles = rows.locator(".trash-text > span").all_text_contents()
    assert sorted(titles) == sorted(f"Ferry {n}" for n in range(65))


def test_a_title_written_from_the_right_ends_at_the_left(page: Page, alice: httpx2.Client) -> None:
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
