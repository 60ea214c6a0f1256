"""Chats of another program in a real browser: sent, imported behind the page, and reported."""

from __future__ import annotations

import json

from playwright.sync_api import Page, expect

from tests.frontend.chatting import SIZES, barriers, overflows
from tests.importing.exports import chatgpt


def test_an_export_is_sent_and_its_report_is_shown(page: Page) -> None:
    page.locator(".account-button").click()
    page.get_by_role("menuitem", name="Import chats…").click()
    dialog = page.get_by_role("dialog", name="Import chats")
    content = json.dumps([chatgpt(is_archived=False), {"a": 1}]).encode()
    export = {"name": "conversations.json", "mimeType": "application/json", "buffer": content}
    dialog.get_by_label("Choose a file, or drop it here").set_input_files(export)  # type: ignore[arg-type]  # a dict of these
    expect(dialog.get_by_text("messages imported.")).to_be_visible()
    dialog.get_by_text("Could not be read: 1").click()
    expect(dialog.get_by_text("Chat 2 of the file")).to_be_visible()
    expect(dialog.get_by_text("Importing asked no model and cost nothing.")).to_be_visible()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]  # one of its two
        for width, height in SIZES.values():
            page.set_viewport_size({"width": width, "height": height})
            assert barriers(page) == []
            assert not overflows(page)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.keyboard.press("Escape")
    expect(page.locator(".row")).to_have_count(1)
