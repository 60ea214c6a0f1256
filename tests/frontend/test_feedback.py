"""Thumbs under an answer in a real browser, with a reason, and still there after a reload."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.frontend.chatting import ask, barriers


def test_an_answer_is_rated_with_a_reason(page: Page) -> None:
    answer = ask(page, "Where is the ferry?")
    bad = answer.get_by_role("button", name="Bad answer")
    bad.click()
    expect(bad).to_have_attribute("aria-pressed", "true")
    answer.get_by_role("button", name="Why?").click()
    with page.expect_response("**/feedback"):
        page.get_by_role("menuitemradio", name="Not correct").click()
    assert barriers(page) == []
    page.reload()
    answer.get_by_role("button", name="Why?").click()
    expect(page.get_by_role("menuitemradio", name="Not correct")).to_have_attribute("aria-checked", "true")
    page.keyboard.press("Escape")
    answer.get_by_role("button", name="Good answer").click()
    expect(bad).to_have_attribute("aria-pressed", "false")
    expect(answer.get_by_role("button", name="Why?")).to_have_count(0)
