"""Prompts in a real browser: written in their dialog, put into the message by their name."""

from __future__ import annotations

import httpx2
from playwright.sync_api import Page, expect

from tests.frontend.chatting import SIZES, barriers, overflows, too_low


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


def test_many_prompts_are_found_in_their_dialog_and_leave_the_message_in_view(
    page: Page, alice: httpx2.Client
) -> None:
    for number in range(30):
        body = {"name": f"letter-{number:02}", "text": "Dear Sir"}
        alice.post("/api/v1/prompts", json=body).raise_for_status()
    page.locator(".account-button").click()
    page.get_by_role("menuitem", name="Prompts").click()
    dialog = page.get_by_role("dialog", name="Prompts")
    rows = dialog.locator(".trash-row")
    expect(rows).to_have_count(30)
    dialog.get_by_label("Find a prompt").fill("SIR letter-07")
    expect(rows).to_have_count(1)
    assert barriers(page) == []
    dialog.get_by_label("Find a prompt").fill("nowhere")
    expect(dialog.get_by_text("Nothing was found.")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    composer = page.locator("#composer")
    composer.fill("/letter")
    option = page.get_by_role("option")
    expect(option).to_have_count(30)
    expect(composer).to_be_in_viewport(ratio=1)
    composer.press("ArrowUp")
    chosen = page.get_by_role("option", selected=True)
    expect(chosen).to_contain_text("/letter-29")
    expect(chosen).to_be_in_viewport(ratio=1)
    assert composer.get_attribute("aria-activedescendant") == chosen.get_attribute("id")
    assert barriers(page) == []


def test_commands_stand_below_each_other_on_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 700})
    page.locator("#composer").fill("/")
    expect(page.get_by_role("option", name="/compact")).to_be_visible()
    assert too_low(page, ".commands li") == []
