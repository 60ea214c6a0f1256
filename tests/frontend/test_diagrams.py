"""Mermaid blocks in a real browser: drawn in a sandboxed frame; what is no diagram is shown as code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import httpx2
import pytest
from playwright.sync_api import Page, expect

from tests.frontend.chatting import ask, barriers
from tests.servers.behaviour import says
from tests.servers.openai_server import ModelServer

ANSWER = "Here:\n\n```mermaid\ngraph LR\n  Oslo[Oslo harbour] -->|by sea| Bergen\n```\n\n- inside\n\n  ```mermaid\n  this is none\n  ```\n"


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer(default=says(ANSWER)) as server:
        yield server


def test_a_diagram_is_drawn_apart_and_what_is_none_is_shown_as_code(page: Page) -> None:
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.reload()
    expect(page.locator("#composer")).to_be_visible()
    assert not [url for url in requests if "mermaid" in url], "a page without a diagram needs none of it"
    answer = ask(page, "Draw it")
    drawn = answer.locator("figure.diagram iframe").first.content_frame.locator("svg")
    expect(drawn).to_contain_text("Oslo harbour")
    expect(answer.locator("figure.diagram")).to_have_count(1)
    expect(answer.locator(".code")).to_contain_text("this is none")
    height = answer.locator("figure.diagram iframe").evaluate("frame => frame.offsetHeight")
    assert 20 < height < 1600
    answer.get_by_role("button", name="Show the code").click()
    expect(answer.locator("figure.diagram .code")).to_contain_text("Oslo harbour")
    assert barriers(page) == []


def test_the_frame_has_no_origin_and_no_network(alice: httpx2.Client) -> None:
    answer = alice.get("/diagram")
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("sandbox allow-scripts; default-src 'none'; script-src 'nonce-")
    assert "connect-src" not in policy
    assert answer.headers["X-Frame-Options"] == "SAMEORIGIN"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_a_diagram_says_is_read_in_both_themes(page: Page, theme: Literal["light", "dark"]) -> None:
    page.emulate_media(color_scheme=theme)
    answer = ask(page, "Draw it")
    drawn = answer.locator("figure.diagram iframe").first.content_frame
    for label in (".nodeLabel", ".edgeLabel .edgeLabel, .edgeLabel p"):
        text = drawn.locator(label).first.evaluate("text => getComputedStyle(text).color")
        assert text == page.locator(".prose").last.evaluate("prose => getComputedStyle(prose).color"), label
