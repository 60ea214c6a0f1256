"""Limits in a real browser: too many messages a minute, and a spending budget that is used up in a conversation."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx2
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.fixtures.browser import open_tab
from tests.frontend.chatting import SIZES, ask, barriers, say
from tests.servers.behaviour import says
from tests.servers.openai_server import ModelServer
from tests.servers.people import ADMIN
from tests.servers.service import Service

PER_MINUTE = 6
REASON = re.compile(r"You are sending messages faster than this service accepts\. Please wait \d+ s\.")
LINES = "one => { const all = new Range(); all.selectNodeContents(one); return all.getClientRects().length; }"


@pytest.fixture(scope="module")
def service_env() -> dict[str, str]:
    return {"MESSAGES_PER_MINUTE": str(PER_MINUTE)}


@pytest.fixture
def operator(browser: Browser, service: Service) -> Iterator[Page]:
    with open_tab(browser, service.url) as page:
        cookies = service.cookies[ADMIN]
        page.context.add_cookies([{"name": n, "value": v, "url": service.url} for n, v in cookies.items()])
        yield page


def set_tokens(operator: Page, tokens: int) -> None:
    operator.locator("#id_tokens").fill(str(tokens))
    operator.get_by_role("button", name="Save", exact=True).click()
    expect(operator.locator(".messagelist")).to_contain_text("successfully")


@pytest.mark.mechanism("ours.budget-stop")
def test_a_used_up_budget_shows_its_reset_time_and_retry_works_after_an_increase(
    page: Page, operator: Page, model: ModelServer
) -> None:
    operator.goto("/admin/chatapp/budget/add/")
    operator.locator("#id_scope").select_option("every_user")
    operator.locator("#id_period").select_option("month")
    set_tokens(operator, 5_000)
    model.script(says("All is well.", prompt_tokens=4_500))
    expect(ask(page, "How are you?")).to_contain_text("80 % of your budget of 5,000 tokens a month is used.")
    model.script(says("Still well.", prompt_tokens=1_000))
    ask(page, "And now?")

    say(page, "And after that?")
    card = page.locator("article .card.is-bad")
    expect(card).to_contain_text(
        re.compile(r"Your budget of 5,000 tokens a month is used up until \d{4}-\d\d-\d\d 00:00 UTC")
    )
    expect(card).to_contain_text("your message is stored")
    expect(page.locator("article.is-user").last).to_contain_text("And after that?")
    expect(page.locator("#composer")).to_be_editable()
    assert barriers(page) == []
    page.reload()
    expect(card).to_contain_text("00:00 UTC")

    operator.goto("/admin/chatapp/budget/")
    expect(operator.locator("#result_list")).to_contain_text("tokens, $0.00 at most")
    operator.get_by_role("link", name="each user: a month").click()
    set_tokens(operator, 500_000)
    model.script(says("We go on."))
    card.get_by_role("button", name="Retry").click()
    expect(page.locator("article.is-assistant").last).to_contain_text("We go on.")


def test_an_operator_sees_the_usage_of_all_users_in_a_chart_and_as_csv(
    page: Page, operator: Page, email: str
) -> None:
    refused: list[str] = []
    operator.on("console", lambda told: refused.append(told.text) if "Security Policy" in told.text else None)
    ask(page, "Hello")
    operator.goto("/admin/chatapp/usage/")
    operator.get_by_role("link", name="Sums and chart").click()
    operator.get_by_label("by").select_option("user")
    operator.get_by_role("button", name="Show").click()
    row = operator.locator("tbody tr", has_text=email)
    box = row.locator("rect").first.bounding_box()
    assert box is not None
    assert box["width"] > 1
    with operator.expect_download() as download:
        operator.get_by_role("button", name="CSV").click()
    assert email in download.value.path().read_text()
    assert refused == []


def test_a_429_response_shows_the_wait_and_keeps_the_message(page: Page, alice: httpx2.Client) -> None:
    chat = alice.post("/api/v1/conversations", json={}).json()["id"]
    for _ in range(PER_MINUTE - 1):
        said = {"content": "One of many", "stream": False}
        alice.post(f"/api/v1/conversations/{chat}/messages", json=said).raise_for_status()
    ask(page, "The last one")
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
