"""The pictures of the documentation: a chat with a summary, its context, the memory, a phone in dark mode, and the
operator's home page.

`SCREENSHOTS=docs/images pytest tests/acceptance/test_picture.py` regenerates them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, ViewportSize, expect

from tests.fixtures.browser import VIEWPORT, watched_tab
from tests.servers.behaviour import Behaviour, says
from tests.servers.openai_server import ModelServer
from tests.servers.people import ADA, ADMIN
from tests.servers.service import Service

PHONE: ViewportSize = {"width": 390, "height": 844}
SUMMARY = """\
Ada is restoring a wooden sailing boat, the *Halcyon*, built in 1962.
- Hull: 7.4 m, larch on oak; two planks on the port side (no. 5 and 6) are rotten and will be replaced.
- Budget 6,500 €, of which 2,180 € are spent; the new sail is ordered from Lindqvist, delivery on 14 March.
- Launch is planned for 2 May in Marstal."""
TOPICS = (
    ("Which wood should replace the rotten planks?", "Larch, 22 mm, the same as planks 5 and 6 had."),
    ("What did the sailmaker say?", "Lindqvist delivers the mainsail on 14 March, for 1,340 €."),
    ("How much of the budget is left?", "2,180 € of 6,500 € are spent, so 4,320 € are left."),
    ("When do we launch?", "On 2 May in Marstal, if the varnish has hardened by then."),
)
ANSWER = """\
Before the launch on **2 May** these are still open:

| what | until | cost |
|---|---|---|
| Planks 5 and 6, larch 22 mm | end of January | about 600 € |
| Mainsail from Lindqvist | 14 March | 1,340 € |
| Varnish, three coats | mid-April | 180 € |

That leaves about **2,200 €** of the 6,500 € for what nobody has thought of yet."""


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    summary = Behaviour(text=SUMMARY)
    with ModelServer(models=("gpt-5-mini",), default=says(ANSWER), summary_default=summary) as server:
        yield server


@pytest.fixture(scope="module")
def service_env() -> dict[str, str]:
    return {"LLM_MODEL": "gpt-5-mini", "LLM_CONTEXT_SIZE": "32000"}


@pytest.fixture
def email() -> str:
    return ADA


def test_the_pictures_of_the_readme_can_be_taken(page: Page, service: Service) -> None:
    ada = service.client_of(ADA)
    history = [
        {"role": role, "content": text}
        for question, answer in TOPICS * 9
        for role, text in (("user", question), ("assistant", answer))
    ]
    for title in ("Letter to the harbour master", "Varnish, which and when"):
        ada.post("/api/v1/conversations/import", json={"title": title, "messages": history[:2]})
    body = {"title": "Restoring the Halcyon", "messages": history}
    conversation = ada.post("/api/v1/conversations/import", json=body).json()["id"]
    policy = {"keep_recent": 2, "reserve_ratio": 0}
    ada.patch(f"/api/v1/conversations/{conversation}", json={"context_policy": policy}).raise_for_status()
    compacted = ada.post(f"/api/v1/conversations/{conversation}/compact", json={"wait": True})
    assert compacted.json()["status"] == "done", compacted.text

    page.goto(f"/c/{conversation}")
    page.locator("#composer").fill("What is left to do before the launch, and what will it cost?")
    page.get_by_role("button", name="Send").click()
    answer = page.locator("article.is-assistant").last
    expect(answer).to_have_attribute("data-status", "complete")
    expect(answer).to_contain_text("Mainsail from Lindqvist")
    expect(page.locator(".divider-sentence").last).to_be_in_viewport()
    take_picture(page, "chat.png")

    page.set_viewport_size(PHONE)
    page.emulate_media(color_scheme="dark")
    expect(page.locator(".shell")).to_have_attribute("data-sidebar", "closed")
    take_picture(page, "phone.png")
    page.set_viewport_size(VIEWPORT)
    page.emulate_media(color_scheme="light")

    page.locator(".ring-button").click()
    expect(page.get_by_role("button", name="Compact now")).to_be_visible()
    take_picture(page, "context.png")

    page.goto("/memory")
    expect(page.get_by_text("Lindqvist").first).to_be_visible()
    take_picture(page, "memory.png")


def test_the_picture_of_the_operators_home_can_be_taken(window: BrowserContext, service: Service) -> None:
    window.clear_cookies()
    cookies = service.cookies[ADMIN].items()
    window.add_cookies([{"name": name, "value": value, "url": service.url} for name, value in cookies])
    with watched_tab(window) as page:
        page.goto("/admin/")
        expect(page.locator(".overview")).to_be_visible()
        page.set_viewport_size({"width": 1440, "height": 760})  # hides the folder names of this machine below
        take_picture(page, "admin.png")


def take_picture(page: Page, name: str) -> None:
    if folder := os.environ.get("SCREENSHOTS"):
        page.wait_for_timeout(500)  # until scrolling has ended
        page.screenshot(path=str(Path(folder) / name))
