"""Reading on screen, on paper and by screen reader: headings, tab stops, touch targets, code, footnotes, numbers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Browser, Page, WebSocketRoute, expect

from tests.frontend.chatting import SIZES, ask, barriers, overflows, reload, say, too_small, touch_screen
from tests.servers.behaviour import says
from tests.servers.openai_server import ModelServer
from tests.servers.service import Service
from tests.servers.waiting import wait_for

CODE = "for number in range(100):\n" + "".join(
    f"    print({n}, '{'a long line of code ' * 12}')\n" for n in range(30)
)
RICH = f"""Tides follow the moon.[^1] **Boldly** so.

```python
{CODE}```

[^1]: Newton, *Principia*."""
DIALOGS = ("Your agents", "Prompts", "New folder…", "Trash", "Settings", "Import chats…")


def history(count: int) -> list[dict[str, Any]]:
    return [
        {"role": ("user", "assistant")[n % 2], "content": f"{('Question', 'Answer')[n % 2]} number {n}."}
        for n in range(count)
    ]


def test_each_turn_has_a_heading_and_a_link_skips_to_the_message_box(page: Page) -> None:
    skip = page.get_by_role("link", name="Skip to the message box")
    ask(page, "Where is the ferry?\nAnd when?")
    ask(page, "Thanks")
    names = page.get_by_role("log").get_by_role("heading", level=2)
    expect(names).to_have_text(["You: Where is the ferry?", "You: Thanks"])
    reload(page)
    expect(page.locator("article.is-user")).to_have_count(2)
    # This is the state after loading without a focus.
    page.evaluate("document.body.tabIndex = -1, document.body.focus()")
    page.keyboard.press("Tab")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("#composer")).to_be_focused()


def test_the_usage_of_an_answer_fits_one_line_on_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    done = ask(page, "Where is the ferry?").locator(".done-card")
    line_px = done.evaluate("card => parseFloat(getComputedStyle(card).fontSize) * 1.8")
    assert done.evaluate("card => card.offsetHeight") <= line_px
    assert not overflows(page)


def test_the_list_of_chats_is_one_tab_stop_with_arrow_keys(page: Page, alice: httpx2.Client) -> None:
    for title in ("First", "Second", "Third"):
        assert alice.post("/api/v1/conversations", json={"title": title}).status_code == 201
    reload(page)
    rows = page.locator(".row-link")
    expect(rows).to_have_count(3)
    page.locator("#search").focus()
    page.keyboard.press("Tab")
    expect(rows.nth(0)).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(rows.nth(2)).to_be_focused()
    page.keyboard.press("Home")
    page.keyboard.press("End")
    expect(rows.nth(2)).to_be_focused()
    page.keyboard.press("ArrowRight")
    menu = page.get_by_role("button", name="Options for First")
    expect(menu).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(rows.nth(2)).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator(".account-button")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    expect(rows.nth(2)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/c/"))
    assert barriers(page) == []


def test_an_answer_is_announced_as_plain_text_by_sentence(page: Page, model: ModelServer) -> None:
    page.evaluate(
        """() => {
          window.heard = [];
          const box = document.querySelector("p[aria-live=polite]");
          new MutationObserver(() => heard.push(box.textContent)).observe(box, {childList: true, characterData: true, subtree: true});
        }"""
    )
    model.script(says("**Tides** follow the [moon](https://example.com). Twice a day, `mostly`", rate=40.0))
    ask(page, "Why tides?")
    expect(page.locator("p[aria-live=polite]")).to_have_text(re.compile("mostly$"))
    heard = page.evaluate("heard.filter(Boolean)")
    assert " ".join(heard) == "Tides follow the moon. Twice a day, mostly"
    assert all(sentence.endswith((".", "mostly")) for sentence in heard)


def test_controls_of_the_page_are_large_enough_to_touch(
    browser: Browser, service: Service, page: Page, model: ModelServer
) -> None:
    model.script(says("Cut off", finish_reason="length"))
    say(page, "Something to look at")
    expect(page.get_by_role("button", name="Continue")).to_be_visible()
    context = touch_screen(browser, service.url)
    context.add_cookies(page.context.cookies())  # type: ignore[arg-type]  # what it gave is what it takes
    tab = context.new_page()
    tab.goto(page.url)
    expect(tab.locator("article.is-assistant")).to_be_visible()
    assert too_small(tab) == []
    for item in (*DIALOGS, "Memory"):
        tab.get_by_role("button", name="Open sidebar").click()
        expect(tab.locator(".row-link")).to_be_visible()
        assert too_small(tab) == [], "sidebar"
        tab.locator(".account-button").click()
        tab.get_by_role("menuitem", name=item, exact=True).click()
        expect(tab.get_by_role("dialog") if item in DIALOGS else tab.locator(".memory-main")).to_be_visible()
        assert too_small(tab) == [], item
        tab.goto("/")
    context.close()


@pytest.mark.parametrize("size", ["desktop", "phone"])
def test_code_can_be_wrapped_folded_and_saved_and_footnotes_link_both_ways(
    page: Page, model: ModelServer, size: str
) -> None:
    width, height = SIZES[size]
    page.set_viewport_size({"width": width, "height": height})
    page.reload()
    model.script(says(RICH))
    page.locator("#composer").fill("Tides?")
    page.locator("#composer").press("Enter")
    answer = page.locator("article.is-assistant")
    expect(answer).to_have_attribute("data-status", "complete")
    code = answer.locator(".code pre")
    wide = "pre => pre.scrollWidth > pre.clientWidth"
    assert code.evaluate(wide)
    answer.get_by_role("button", name="Wrap lines").click()
    assert not code.evaluate(wide)
    tall = code.evaluate("pre => pre.clientHeight")
    answer.get_by_role("button", name="Fold code").click()
    assert code.evaluate("pre => pre.clientHeight") < tall / 2
    assert barriers(page) == []
    with page.expect_download() as download:
        answer.get_by_role("button", name="Download code").click()
    assert download.value.suggested_filename == "code.py"
    assert Path(download.value.path()).read_text() == CODE.rstrip("\n")
    assert answer.locator(".code-head").evaluate("head => getComputedStyle(head).position") == "sticky"

    mark = answer.get_by_role("button", name="Footnote 1", exact=True)
    mark.click()
    note = answer.locator(".footnote")
    expect(note).to_be_focused()
    expect(note).to_contain_text("Newton, Principia.")
    answer.get_by_role("button", name="Back from footnote 1").click()
    expect(mark).to_be_focused()
    assert not overflows(page)


def test_text_generated_before_the_subscription_is_requested(
    page: Page, alice: httpx2.Client, model: ModelServer
) -> None:
    held: list[str | bytes] = []
    servers: list[WebSocketRoute] = []

    def hold_back(socket: WebSocketRoute) -> None:
        server = socket.connect_to_server()
        servers.append(server)
        socket.on_message(
            lambda frame: held.append(frame) if '"subscribe"' in str(frame) else server.send(frame)
        )

    page.route_web_socket("**/ws/chat", hold_back)
    reload(page)
    model.script(says("Slow and steady", hold_after=2))
    say(page, "Go")
    expect(page).to_have_url(re.compile("/c/"))
    messages = f"/api/v1/conversations/{page.url.rpartition('/')[2]}/messages"
    wait_for(lambda: "Slow and" in alice.get(messages).text, what="the first words are stored")
    for frame in held:
        servers[-1].send(frame)
    expect(page.locator("article.is-assistant .prose")).to_contain_text("Slow and")
    model.release()


def test_selected_items_activity_and_the_stop_button_are_visible_in_forced_colours(
    page: Page, model: ModelServer
) -> None:
    page.emulate_media(forced_colors="active")
    style = "(one, name) => getComputedStyle(one)[name]"
    model.script(says("Slow and steady", hold_after=2))
    say(page, "Go")
    stop = page.get_by_role("button", name="Stop")
    expect(stop).to_have_css("border-width", "1px")
    for shape, ground in (
        (stop.locator("i"), stop),
        (page.locator(".dot.is-busy"), page.locator(".sidebar")),
    ):
        colours = [one.evaluate(style, "backgroundColor") for one in (shape, ground)]
        assert len(set(colours)) == 2, colours
    expect(page.locator(".row.is-open .row-link")).to_have_css("outline-style", "solid")
    model.release()
    page.locator("#composer").fill("/")
    expect(page.locator(".commands .is-chosen")).to_have_css("outline-style", "solid")
    page.locator(".account-button").click()
    expect(page.locator(".theme-switch [aria-checked=true]")).to_have_css("outline-style", "solid")
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    expect(page.locator(".palette .is-chosen")).to_have_css("outline-style", "solid")


def test_a_growing_answer_has_a_caret(page: Page, model: ModelServer) -> None:
    model.script(says("Slow and steady", hold_after=2))
    say(page, "Go")
    growing = page.locator(".prose.is-growing p").last
    expect(growing).to_be_visible()
    caret = "p => getComputedStyle(p, '::after').animationName"
    assert growing.evaluate(caret) == "caret"
    model.release()
    done = page.locator("article.is-assistant .prose:not(.is-growing) p").last
    expect(done).to_be_visible()
    assert done.evaluate(caret) == "none"


def test_the_whole_chat_is_printed(page: Page, alice: httpx2.Client) -> None:
    made = alice.post("/api/v1/conversations/import", json={"title": "Long", "messages": history(250)})
    page.goto(f"/c/{made.json()['id']}")
    expect(page.locator("article").last).to_contain_text("number 249.")
    assert page.evaluate("document.documentElement.scrollHeight <= innerHeight"), (
        "the list scrolls, not the page"
    )
    page.evaluate("() => { window.print = () => {}; }")
    page.locator("#composer").press("Control+p")
    expect(page.locator(".print-sheet article")).to_have_count(250)
    printed = page.locator(".print-sheet").text_content() or ""
    assert all(f"number {n}." in printed for n in range(250))
    page.emulate_media(media="print")
    expect(page.locator(".print-sheet")).to_be_visible()
    expect(page.locator("#app")).to_be_hidden()
    page.emulate_media(media="screen")
    expect(page.locator(".print-sheet")).to_be_hidden()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    expect(page.locator(".print-sheet")).to_have_count(0)


def test_the_context_numbers_of_the_api_add_up_and_match_the_meter(page: Page, alice: httpx2.Client) -> None:
    answer = ask(page, "Hello")
    expect(answer.locator(".done-card")).to_have_text(re.compile(r"^\d[\d.k]* in / [1-9]\d* out$"))
    identifier = page.url.rpartition("/")[2]
    seen = alice.post(f"/api/v1/conversations/{identifier}/context", json={}).json()
    assert seen["budget_tokens"] < seen["limit_tokens"] < seen["context_size"]
    assert sum(seen["parts"].values()) == seen["total_tokens"] <= seen["limit_tokens"]
    meter = page.get_by_role("meter")
    percent = round(100 * seen["total_tokens"] / seen["limit_tokens"])
    expect(meter).to_have_attribute("aria-valuenow", str(percent))


def test_a_divider_follows_the_last_message_that_left_the_context_without_a_summary(
    page: Page, alice: httpx2.Client
) -> None:
    said = [{**one, "content": one["content"] + " A sentence about it." * 50} for one in history(60)]
    made = alice.post("/api/v1/conversations/import", json={"title": "Long", "messages": said})
    address = f"/api/v1/conversations/{made.raise_for_status().json()['id']}"
    policy = {"context_size": 8_000, "strategy": "truncate"}
    alice.patch(address, json={"context_policy": policy}).raise_for_status()
    count = alice.post(f"{address}/context", json={}).json()["left_out"]
    assert 30 < count < 60
    page.goto(f"/c/{made.json()['id']}")
    sentence = f"Earlier context ({count} messages) was left out without a summary."
    expect(page.locator(".divider")).to_have_text(sentence)
    # The divider directly follows the last message that left.
    expect(page.locator(f"article:has-text('number {count - 1}.') + .divider")).to_have_count(1)
    assert barriers(page) == []
