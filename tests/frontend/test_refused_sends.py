"""A message that our own limit refuses is told with its waiting time, and its words stay with their writer."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.frontend.chatting import SIZES, ask, say

REASON = re.compile(r"You are sending messages faster than this service accepts\. Please wait \d+ s\.")

LINES = "one => { const all = new Range(); all.selectNodeContents(one); return all.getClientRects().length; }"


@pytest.fixture(scope="module")
def service_env() -> dict[str, str]:
    return {"MESSAGES_PER_MINUTE": "1"}


def test_a_429_with_retry_after_is_told_and_loses_no_words(page: Page) -> None:
    ask(page, "The first one")
    with page.expect_response(lambda response: response.status == 429) as refused:
        say(page, "One too many")
    assert int(refused.value.headers["retry-after"]) > 0
    expect(page.get_by_text(REASON)).to_be_visible()
    width, height = SIZES["phone"]
    page.set_viewport_size({"width": width, "height": height})
    assert page.locator(".banner strong").evaluate(LINES) == 1
    expect(page.locator("#composer")).to_have_value("One too many")
    expect(page.locator("article.is-assistant")).to_have_count(1)
    page.reload()
    expect(page.locator("#composer")).to_have_value("One too many")
    expect(page.get_by_text(REASON)).to_be_visible()
