"""How an answer came about: what cannot be read is told in its place, and read again; the rest is there."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, Route, expect

from tests.frontend.chatting import ask, barriers

TRACE, LIST, ONE = r"/runs/[^/]+/trace$", r"/runs/[^/]+/requests$", r"/runs/[^/]+/requests/1$"


def refuse(route: Route) -> None:
    route.fulfill(status=503, json={"error": {"code": "unavailable", "message": "The database is away."}})


@pytest.fixture
def answered(page: Page) -> Page:
    ask(page, "Hello?").get_by_role("button", name="More").click()
    return page


@pytest.mark.parametrize("refused", [TRACE, LIST, ONE], ids=["trace", "requests", "one request"])
def test_each_part_fails_by_itself_and_is_tried_again(answered: Page, refused: str) -> None:
    page = answered
    page.route(re.compile(refused), refuse)
    page.get_by_role("menuitem", name="How it was made").click()
    steps, told = page.locator(".waterfall tbody tr"), page.get_by_role("alert")
    expect(told if refused == TRACE else steps).to_have_count(1)
    page.get_by_role("tab", name="What the model saw").click()
    requests, pieces = page.locator(".request"), page.locator(".pieces > li")
    expect(told).to_have_text("The database is away. Try again")
    expect(requests).to_have_count(0 if refused == LIST else 1)
    if refused == TRACE:
        expect(requests).to_contain_text("1. Answer")
        expect(pieces).to_have_count(2)
    assert barriers(page) == []
    page.unroute(re.compile(refused))
    told.get_by_role("button", name="Try again").click()
    expect(told).to_have_count(0)
    expect(pieces).to_have_count(2)
    page.get_by_role("tab", name="Steps").click()
    expect(steps).to_have_count(1)
    page.get_by_role("complementary").get_by_role("button", name="Close").click()
    expect(page.locator("article.is-assistant").get_by_role("button", name="More")).to_be_focused()
