"""A user's settings in a real browser: they are stored on the server, and the page works in both languages."""

from __future__ import annotations

import re

import httpx2
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.frontend.chatting import TWICE, ask, barriers, overflows, reload, sign_in
from tests.servers.behaviour import ERRORS
from tests.servers.openai_server import ModelServer
from tests.servers.waiting import wait_for

LATIN_WORDS = re.compile(r"[A-Za-z]{3,}(?: [a-z]{2,})+")


def open_settings(page: Page, account: str = "Settings") -> Locator:
    """Open the settings by keyboard, from the menu item named `account`."""
    page.locator(".account-button").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("menuitem").first).to_be_focused()
    page.get_by_role("menuitem", name=account, exact=True).focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog.locator(".chart")).to_be_visible()
    return dialog


def test_settings_are_stored_on_the_server_for_every_device(page: Page, alice: httpx2.Client) -> None:
    root = page.locator("html")
    dialog = open_settings(page)
    dialog.get_by_label("Text size").select_option("large")
    expect(root).to_have_attribute("data-text-size", "large")
    dialog.get_by_label("Text width").select_option("wide")
    expect(root).to_have_attribute("data-text-width", "wide")
    dialog.get_by_label("Send with").select_option("ctrl_enter")
    dialog.get_by_label("Custom instructions").fill("Answer in rhymes.")
    dialog.get_by_role("button", name="Save instructions").click()
    expect(dialog.get_by_text("Saved.")).to_be_visible()
    for theme in ("Light", "Dark"):
        dialog.get_by_role("radio", name=theme).click()
        expect(root).to_have_attribute("data-theme", theme.lower())
        assert barriers(page) == []
    page.evaluate("localStorage.clear()")
    reload(page)
    expect(root).to_have_attribute("data-theme", "dark")
    expect(root).to_have_attribute("data-text-size", "large")
    expect(open_settings(page).get_by_label("Custom instructions")).to_have_value("Answer in rhymes.")
    kept = alice.get("/api/v1/me/settings").json()
    assert (kept["theme"], kept["send_key"], kept["text_width"]) == ("dark", "ctrl_enter", "wide")


def test_the_close_button_is_in_view_at_the_end_of_a_long_dialog(page: Page) -> None:
    dialog = open_settings(page)
    delete = dialog.get_by_role("button", name="Delete account…")
    delete.scroll_into_view_if_needed()
    expect(delete).to_be_in_viewport()
    expect(dialog.get_by_role("button", name="Close")).to_be_in_viewport()


def test_ctrl_enter_sends_if_it_is_the_chosen_key(page: Page, alice: httpx2.Client) -> None:
    alice.patch("/api/v1/me/settings", json={"send_key": "ctrl_enter"})
    page.reload()
    composer = page.locator("#composer")
    composer.fill("One")
    composer.press("Enter")
    page.keyboard.type("Two")
    expect(composer).to_have_value("One\nTwo")
    composer.press("Control+Enter")
    expect(page.locator("article.is-user")).to_contain_text("One")
    expect(page.locator("article.is-assistant")).to_have_attribute("data-status", "complete")


def test_the_page_is_in_chinese_if_chosen(page: Page) -> None:
    ask(page, "A chat to come back to")
    page.evaluate("history.pushState({}, '', '/')")
    reload(page)
    open_settings(page).get_by_label("Language").select_option("zh-hans")
    expect(page.locator("html")).to_have_attribute("lang", "zh-hans")
    expect(page.get_by_role("link", name="新对话")).to_be_visible()
    expect(page.locator(".group").first).to_contain_text("今天")
    dialog = open_settings(page, "设置")
    expect(dialog.get_by_label("语言")).to_have_value("zh-hans")
    expect(dialog.locator(".chart-ends span").first).to_contain_text(re.compile(r"\d+年\d+月\d+日"))
    assert barriers(page) == []
    said = dialog.locator("h3, p, label, button, legend, dt").all_inner_texts()
    assert [text for text in said if LATIN_WORDS.search(text)] == []

    page.goto("/memory")
    expect(page.get_by_role("link", name="个人档案")).to_be_visible()
    expect(page.locator(".memory-main")).to_be_visible()
    assert barriers(page) == []


def test_a_number_and_its_unit_stay_on_one_line_in_chinese(page: Page, alice: httpx2.Client) -> None:
    alice.patch("/api/v1/me/settings", json={"language": "zh-hans"}).raise_for_status()
    page.set_viewport_size({"width": 390, "height": 844})
    reload(page)
    lines = page.locator(".fine-print").evaluate(
        """one => {
          const part = document.createRange();
          const text = [...one.childNodes].find((node) => node.data?.includes("天"));
          const end = text.data.indexOf("后", text.data.indexOf("天"));
          part.setStart(text, text.data.search(/[0-9]/));
          part.setEnd(text, end + 1);
          return new Set([...part.getClientRects()].map((box) => Math.round(box.top))).size;
        }"""
    )
    assert lines == 1


@pytest.mark.parametrize("width", [1440, 390])
def test_the_layout_works_from_right_to_left(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    page.emulate_media(reduced_motion="reduce")
    page.reload()
    page.evaluate("document.documentElement.dir = 'rtl'")
    if width < 860:
        page.get_by_role("button", name="Open sidebar").click()
    bar, right = page.locator(".sidebar"), "bar => bar.getBoundingClientRect().right"
    wait_for(lambda: abs(bar.evaluate(right) - width) < 1, what="the list is at the right")
    assert not overflows(page)


def test_code_and_titles_keep_their_direction_in_a_right_to_left_layout(
    page: Page, alice: httpx2.Client
) -> None:
    said = [("user", "How?"), ("assistant", "```python\nprint('a')  # a comment\n```")]
    body = {"title": "What?", "messages": [{"role": role, "content": text} for role, text in said]}
    made = alice.post("/api/v1/conversations/import", json=body).raise_for_status().json()
    page.goto(f"/c/{made['id']}")
    page.evaluate("document.documentElement.dir = 'rtl'")
    expect(page.locator(".code pre")).to_have_css("direction", "ltr")
    assert page.locator(".row-title bdi").evaluate("(title) => getComputedStyle(title).direction") == "ltr"


def test_a_token_is_deleted_only_after_confirmation(page: Page, alice: httpx2.Client) -> None:
    before = len(alice.get("/api/v1/tokens").json()["items"])
    dialog = open_settings(page)
    tokens = dialog.locator(".token")
    expect(tokens).to_have_count(before)
    delete = dialog.get_by_role("button", name=re.compile("^Delete token")).first
    delete.click()
    question = dialog.get_by_role("group", name=re.compile("will be refused at once"))
    expect(question.get_by_role("button", name="Cancel")).to_be_focused()
    assert barriers(page) == []
    confirm = question.get_by_role("button", name=re.compile("^Delete token"))
    confirm.hover()
    assert barriers(page) == []
    question.get_by_role("button", name="Cancel").click()
    expect(delete).to_be_focused()
    expect(tokens).to_have_count(before)
    delete.click()
    confirm.click()
    expect(question).to_have_count(0)
    expect(tokens).to_have_count(before - 1)


def test_a_new_token_is_created_once_and_can_be_copied_without_the_clipboard_api(
    page: Page, email: str, alice: httpx2.Client
) -> None:
    before = len(alice.get("/api/v1/tokens").json()["items"])
    page.add_init_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    page.context.clear_cookies()
    sign_in(page, email)
    dialog = open_settings(page)
    name = dialog.get_by_label("Name", exact=True)
    name.fill("The heating")
    dialog.get_by_role("button", name="Create token").evaluate(TWICE)
    dialog.get_by_role("button", name="Copy token").click()
    copied = dialog.get_by_role("button", name="Copied")
    expect(copied).to_be_focused()
    name.focus()
    page.keyboard.press("Control+v")
    expect(name).to_have_value(dialog.locator(".secret code").inner_text())
    assert len(alice.get("/api/v1/tokens").json()["items"]) == before + 1


def test_server_errors_are_shown_in_the_language_of_the_page(
    page: Page, alice: httpx2.Client, model: ModelServer
) -> None:
    alice.patch("/api/v1/me/settings", json={"language": "zh-hans"}).raise_for_status()
    page.reload()
    expect(page.get_by_role("link", name="新对话")).to_be_visible()
    model.script(ERRORS["wrong_key"]())
    page.locator("#composer").fill("Hello")
    page.locator("#composer").press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("模型提供商不接受我们的密钥；你的消息已保存。")
