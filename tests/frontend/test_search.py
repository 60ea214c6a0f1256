"""Search over messages in a real browser: a hit in its sentence, marked, and filters."""

from __future__ import annotations

import re

import httpx2
from playwright.sync_api import Page, expect

from tests.frontend.chatting import SIZES, ask, barriers, overflows
from tests.servers.waiting import wait_for


def test_a_message_is_found_in_its_sentence_and_by_who_said_it(page: Page, alice: httpx2.Client) -> None:
    ask(page, "It rains. Our boat Halcyon lies in Trondheim. And so on.")

    def is_found() -> bool:
        asked = {"q": "Halcyon", "role": "user"}
        return bool(alice.get("/api/v1/memory/search", params=asked).json()["items"])

    wait_for(is_found, what="what was said is in the search")
    page.get_by_role("link", name="New chat").click()
    page.get_by_role("searchbox", name="Search conversations").fill("Halcyon")
    page.get_by_role("button", name="Search in all messages").click()
    dialog = page.get_by_role("dialog", name="Search messages")
    hit = dialog.locator(".search-hit").first
    expect(hit.locator(".excerpt")).to_have_text("Our boat Halcyon lies in Trondheim.")
    expect(hit.locator("mark")).to_have_text("Halcyon")
    dialog.get_by_label("Said by").select_option("Assistant")
    expect(dialog.get_by_text("Nothing was found.")).to_be_visible()
    dialog.get_by_label("Said by").select_option("You")
    expect(hit).to_be_visible()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]  # one of its two
        for width, height in SIZES.values():
            page.set_viewport_size({"width": width, "height": height})
            assert barriers(page) == []
            assert not overflows(page)
    hit.click()
    expect(dialog).to_have_count(0)
    expect(page).to_have_url(re.compile(r"/c/[^#]+#m-"))
    expect(page.locator("article.is-found")).to_contain_text("Halcyon")
