"""Prompts in a real browser: written in their dialog, put into the message by their name."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.frontend.chatting import SIZES, barriers, overflows


def test_a_prompt_is_written_used_and_deleted_with_a_way_back(page: Page) -> None:
    page.locator(".account-button").click()
    page.get_by_role("menuitem", name="Prompts").click()
    dialog = page.get_by_role("dialog", name="Prompts")
    dialog.get_by_role("button", name="New prompt").click()
    dialog.get_by_label("Name, typed after the slash").fill("french")
    dialog.get_by_label("What it is for").fill("Into French")
    dialog.get_by_label("Text").fill("Translate into French:\n")
    dialog.get_by_role("button", name="Save").click()
    row = dialog.locator(".trash-row")
    expect(row).to_contain_text("/french")
    for width, height in SIZES.values():
        page.set_viewport_size({"width": width, "height": height})
        assert barriers(page) == []
        assert not overflows(page)
    dialog.get_by_role("button", name="Delete french").click()
    expect(row).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(row).to_have_count(1)
    page.keyboard.press("Escape")

    composer = page.locator("#composer")
    composer.fill("/fre")
    expect(page.get_by_role("option", name="/french")).to_be_visible()
    composer.press("Enter")
    expect(composer).to_have_value("Translate into French:\n")
