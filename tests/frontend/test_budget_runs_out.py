"""A budget that runs out in mid-conversation: the warning, the sentence with its reset time, and how it goes on."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.fixtures.browser import open_tab
from tests.frontend.chatting import ask, barriers, say
from tests.servers.behaviour import says
from tests.servers.openai_server import ModelServer
from tests.servers.people import ADMIN
from tests.servers.service import Service


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
def test_it_says_when_it_begins_anew_and_the_question_is_asked_again_once_there_is_more(
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


def test_an_operator_sees_what_all_users_spent_in_a_chart_and_as_a_file(
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
