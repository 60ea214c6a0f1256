"""Around the conversation: the date of its deletion, temporary chats, commands, suggestions, errors."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, Route, expect

from tests.frontend.chatting import SIZES, ask, barriers, say
from tests.servers.behaviour import ERRORS
from tests.servers.openai_server import ModelServer


@pytest.fixture(scope="module")
def service_env() -> dict[str, str]:
    return {"RETENTION_DAYS": "5"}


def test_the_fine_print_is_visible_at_every_size(page: Page) -> None:
    told = page.get_by_text("A chat moves to the trash 5 days after its last message, unless you pin it.")
    for size, (width, height) in SIZES.items():
        page.set_viewport_size({"width": width, "height": height})
        expect(told, size).to_be_visible()
    ask(page, "Hello")
    for size, (width, height) in SIZES.items():
        page.set_viewport_size({"width": width, "height": height})
        expect(told, size).to_be_in_viewport()


def test_a_chat_that_soon_moves_to_the_trash_says_so_and_can_be_kept(page: Page) -> None:
    expect(page.locator(".composer-frame .fine-print")).to_contain_text("moves to the trash 5 days after")
    ask(page, "Hello")
    expect(page.locator(".banner")).to_contain_text("This chat moves to the trash on")
    expect(page.locator(".row-date")).to_be_visible()
    assert barriers(page) == []
    page.get_by_role("button", name="Keep").click()
    expect(page.locator(".banner")).to_have_count(0)
    expect(page.locator(".row-date")).to_have_count(0)
    expect(page.locator(".composer-frame .fine-print")).to_contain_text("Nothing you say here is lost")


def test_the_button_for_a_temporary_chat_creates_a_chat_in_no_list(page: Page) -> None:
    button = page.get_by_role("button", name="Temporary chat")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".banner")).to_contain_text("Temporary chat")
    told = page.locator(".composer-frame .fine-print")
    expect(told).to_contain_text("is in no list, and is deleted 5 days after its last message")
    ask(page, "Hello")
    expect(told).to_contain_text("A temporary chat is in no list")
    expect(page.locator(".row-link")).to_have_count(0)
    expect(page).to_have_url(re.compile("/c/"))
    identifier = page.url.rpartition("/")[2]
    assert page.evaluate(
        "async (id) => (await (await fetch(`/api/v1/conversations/${id}`)).json()).temporary", identifier
    )
    page.goto("/")
    expect(page.get_by_text("Your conversations will be listed here.")).to_be_visible()
    expect(page.locator(".row-link")).to_have_count(0)


def test_enter_completes_a_command_and_unknown_commands_get_an_error(page: Page) -> None:
    composer = page.locator("#composer")
    composer.fill("/hel")
    composer.press("Enter")
    expect(composer).to_have_value("/help ")
    say(page, "/nonsense please")
    expect(page.get_by_text("This command does not exist")).to_be_visible()
    expect(page.locator("article")).to_have_count(0)
    say(page, "/etc/hosts is a file")
    expect(page.locator("article.is-user .bubble")).to_have_text("/etc/hosts is a file")


def test_a_suggestion_keeps_the_text_in_the_message_box(page: Page) -> None:
    page.locator("#composer").fill("Dear Ann")
    page.locator(".suggestion").first.click()
    expect(page.locator("#composer")).to_have_value(re.compile(r"^Dear Ann\n\n"))


def test_an_error_card_offers_another_model(page: Page, model: ModelServer) -> None:
    def with_another(route: Route) -> None:
        answer = route.fetch()
        models = answer.json()
        models["items"].append(
            {**models["items"][0], "id": "other", "name": "other-model", "is_default": False}
        )
        route.fulfill(response=answer, json=models)

    page.route("**/api/v1/models", with_another)
    page.reload()
    model.script(ERRORS["wrong_key"]())
    say(page, "Hello")
    expect(page.locator("article .card.is-bad")).to_be_visible()
    page.get_by_role("button", name="Change model").click()
    with page.expect_request("**/regenerate") as asked:
        page.get_by_role("menuitem", name="other-model").click()
    assert asked.value.post_data_json == {"model": "other-model"}
