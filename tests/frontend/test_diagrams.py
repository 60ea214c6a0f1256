"""Mermaid blocks in a real browser: diagrams are drawn in a sandboxed frame, invalid ones are shown as code."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import unquote

import httpx2
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.frontend.chatting import SIZES, ask, barriers
from tests.servers.behaviour import says
from tests.servers.openai_server import ModelServer
from tests.servers.waiting import wait_for

PLAN = "gantt\n  dateFormat YYYY-MM-DD\n  section Sea\n  Sail :2026-11-01, 60d\n  Land :2026-12-20, 30d\n"
ANSWER = (
    "Here:\n\n```mermaid\ngraph LR\n  Oslo[Oslo harbour] -->|by sea| Bergen\n```\n\n- inside\n\n"
    f"  ```mermaid\n  this is none\n  ```\n\n```mermaid\n{PLAN}```\n"
)
# Count the pairs of neighbouring dates that overlap.
OVERLAPS = """dates => dates.map((date) => date.getBoundingClientRect())
  .filter((box, at, all) => at > 0 && box.left < all[at - 1].right).length"""


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer(default=says(ANSWER)) as server:
        yield server


def expect_colours_of_the_text(page: Page, answer: Locator) -> None:
    drawn = answer.locator("figure.diagram iframe").first.content_frame
    for label in (".nodeLabel", ".edgeLabel .edgeLabel, .edgeLabel p"):
        text, prose = drawn.locator(label).first, page.locator(".prose").last
        colour = "element => getComputedStyle(element).color"
        wait_for(lambda: text.evaluate(colour) == prose.evaluate(colour), what=f"{label} in the theme")  # noqa: B023


def test_diagrams_are_drawn_in_frames_in_the_light_theme_and_invalid_ones_as_code(page: Page) -> None:
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    width, height = SIZES["phone"]
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(color_scheme="light")
    page.reload()
    expect(page.locator("#composer")).to_be_visible()
    assert not [url for url in requests if "mermaid" in url], "a page without a diagram needs none of it"
    answer = ask(page, "Draw it")
    drawn = answer.locator("figure.diagram iframe").first.content_frame.locator("svg")
    expect(drawn).to_contain_text("Oslo harbour")
    expect_colours_of_the_text(page, answer)
    expect(answer.locator("figure.diagram")).to_have_count(2)
    expect(answer.locator(".code")).to_contain_text("this is none")
    expect(answer.locator("figure.diagram").first).to_have_attribute("aria-busy", "false")
    shown = answer.locator("figure.diagram iframe").first.evaluate("frame => frame.offsetHeight")
    assert 20 < shown < 1600
    plan = answer.locator("figure.diagram iframe").last
    plan.scroll_into_view_if_needed()
    dates = plan.content_frame.locator(".grid .tick text")
    expect(dates.first).to_be_visible()
    assert (dates.count() > 2, dates.evaluate_all(OVERLAPS)) == (True, 0)
    answer.get_by_role("button", name="Show the code").first.click()
    expect(answer.locator("figure.diagram .code")).to_contain_text("Oslo harbour")
    assert barriers(page) == []


def test_the_frame_of_a_diagram_has_no_origin_and_no_network(alice: httpx2.Client) -> None:
    answer = alice.get("/diagram")
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("sandbox allow-scripts; default-src 'none'; script-src 'nonce-")
    assert "connect-src" not in policy
    assert answer.headers["X-Frame-Options"] == "SAMEORIGIN"


def test_diagrams_are_drawn_in_the_dark_theme_and_printed_in_paper_colours(page: Page) -> None:
    page.emulate_media(color_scheme="dark")
    answer = ask(page, "Draw it")
    expect(answer.locator("figure.diagram")).to_have_count(2)
    expect_colours_of_the_text(page, answer)
    page.evaluate("() => { window.print = () => {}; }")
    page.locator("#composer").press("Control+p")
    pictures = page.locator(".print-sheet img.diagram")
    expect(pictures).to_have_count(2)
    drawn = "all => all.every((one) => one.complete && one.naturalWidth > 20)"
    wait_for(lambda: pictures.evaluate_all(drawn), what="the pictures are drawn")
    ink = page.locator(".print-sheet h2").first.evaluate("heading => getComputedStyle(heading).color")
    assert ink == "rgb(29, 33, 38)"
    assert ink in unquote(pictures.first.get_attribute("src") or "")


def test_printing_reports_diagrams_that_are_being_drawn_and_those_that_stay_blank(page: Page) -> None:
    expect(ask(page, "Draw it").locator("figure.diagram")).to_have_count(2)
    page.route("**/diagram", lambda route: route.fulfill(body="", content_type="text/html"))
    page.evaluate("() => { window.print = () => {}; }")
    page.clock.install()
    page.locator("#composer").press("Control+p")
    told = page.locator(".toasts")
    expect(told).to_contain_text("Drawing 3 diagrams first, for half a minute at most…")
    page.clock.run_for(30_000)
    expect(told).to_contain_text("3 diagrams were not drawn in time and stay blank.")
