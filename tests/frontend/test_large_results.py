"""A result too large for the context is kept whole, and its user reads it page by page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.frontend.chatting import TWICE, ask, barriers
from tests.servers.behaviour import Behaviour, says
from tests.servers.openai_server import ModelServer

LINES = [f"line {number} of the catalogue" for number in range(1_800)]
RESULT = "\n".join(LINES)


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer(default=says("It is in there.")) as server:
        yield server


@pytest.fixture(scope="module")
def service_env() -> dict[str, str]:
    own_tool = {"EXTRA_TOOLS": "tests.api.own_tools.look_up", "DEFAULT_TOOLS": "look_up"}
    return {"LLM_CONTEXT_SIZE": "100000", **own_tool}


def test_an_offloaded_result_is_read_page_by_page_to_its_end(page: Page, model: ModelServer) -> None:
    call = {"name": "look_up", "arguments": {"say": RESULT}}
    model.script(Behaviour(tokens=0, tool_calls=(call,)))
    ask(page, "Look it up in the catalogue")
    tool = page.locator(".tool")
    tool.locator("summary").click()
    tool.get_by_role("button", name="Open").evaluate(TWICE)
    text = tool.locator("pre.is-tall")
    expect(tool).to_contain_text(f"Showing 20,000 of {len(RESULT):,} characters")
    expect(text).to_contain_text(LINES[0])
    expect(text).not_to_contain_text(LINES[-1])
    assert barriers(page) == []

    more = tool.get_by_role("button", name="More")
    while more.count():
        shown = text.inner_text()
        more.evaluate(TWICE)
        expect(text).not_to_have_text(shown)
    assert text.inner_text() == RESULT
    page.reload()
    tool.locator("summary").click()
    expect(tool.get_by_role("button", name="Open")).to_be_visible()
