"""The chat page in a real browser: first load, hostile answers, unsent messages, drafts, sign-out, accessibility."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.frontend.chatting import SIZES, ask, barriers, looks, overflows
from tests.servers.behaviour import says
from tests.servers.openai_server import ModelServer
from tests.servers.people import OPERATORS
from tests.servers.service import Service

HOSTILE = """# Hello
<script>window.wasHere = 1</script> <img src=x onerror="window.wasHere = 2">

![a cat](https://example.com/cat.png?stolen=secret) ![x](javascript:alert(1)) ![y](/accounts/logout/)

[script](javascript:window.wasHere=3) [data](data:text/html,<script>alert(1)</script>) [good](https://example.com/)

<style>body{display:none}</style><iframe src="https://example.com"></iframe>

$\\href{javascript:window.wasHere=4}{x}$ and $\\htmlStyle{color:red}{y}$ and $a^2$

```html
<img src=x onerror="window.wasHere = 5">
```

| a | b |
|---|--:|
| <b onclick="window.wasHere = 6">1</b> | 2 |

The end.
"""


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer(default=says(HOSTILE, rate=400.0)) as server:
        yield server


@pytest.fixture(scope="module")
def service_env() -> dict[str, str]:
    return {"LLM_CONTEXT_SIZE": "16000"}


@pytest.fixture
def email(service: Service) -> str:
    """Return an operator, because operators see more controls than other users."""
    return service.newcomer(OPERATORS)


def test_the_first_load_takes_few_requests_and_few_bytes(page: Page) -> None:
    page.wait_for_load_state("networkidle")
    session = page.context.new_cdp_session(page)
    bytes_of: dict[str, int] = {}
    session.on("Network.requestWillBeSent", lambda event: bytes_of.setdefault(event["requestId"], 0))
    session.on(
        "Network.loadingFinished",
        lambda event: bytes_of.update({event["requestId"]: event["encodedDataLength"]}),
    )
    session.send("Network.enable")
    session.send("Network.clearBrowserCache")
    page.goto("/", wait_until="networkidle")
    assert len(bytes_of) <= 15
    assert sum(bytes_of.values()) <= 200_000


def test_a_hostile_answer_runs_no_script_and_requests_no_foreign_address(
    page: Page, service: Service
) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    answer = ask(page, "Be hostile")
    expect(answer).to_contain_text("The end.")
    expect(answer.locator(".katex").last).to_be_visible()
    assert page.evaluate("window.wasHere") is None
    assert answer.locator("script, style, iframe, img, [onerror], [onclick]").count() == 0
    own = (service.url, service.url.replace("http", "ws"), "blob:", "data:")
    assert [url for url in asked if not url.startswith(own)] == []
    addresses = answer.locator("a").evaluate_all(
        "links => links.map(a => [a.getAttribute('href'), a.rel, a.target])"
    )
    assert [address for address in addresses if address[0]] == [
        ["https://example.com/", "noopener noreferrer nofollow", "_blank"]
    ]
    expect(answer.locator(".remote-image").first).to_contain_text("example.com")
    expect(answer.locator(".code code")).to_contain_text('onerror="window.wasHere = 5"')


def test_long_headers_do_not_widen_a_table(page: Page, model: ModelServer) -> None:
    long = "How many people may use it at the same time without waiting for an answer of any kind at all"
    model.script(
        says(f"| Plan | {long} | Notes |\n|---|--:|---|\n| Small | 5 | For a firm with several offices |\n")
    )
    frame = ask(page, "Compare the plans.").locator(".table-scroll")
    assert frame.evaluate("one => one.scrollWidth <= one.clientWidth")


def test_the_texts_of_menu_items_are_aligned(page: Page) -> None:
    page.get_by_role("button", name="Model:").click()
    add = page.get_by_role("menuitem", name="Connect a model…")
    expect(add).to_be_visible()
    places = page.locator(".menu:popover-open .menu-text > span").evaluate_all(
        "all => all.map((one) => one.getBoundingClientRect().left)"
    )
    assert len(places) > 1
    assert len(set(places)) == 1


def test_a_message_without_acknowledgement_returns_to_the_composer_and_is_sent_once(page: Page) -> None:
    answer = ask(page, "First")
    expect(answer).to_contain_text("The end.")

    def lose_answer(route: Route) -> None:
        if route.request.method == "POST":
            route.fetch()  # The server stores the message, but the page gets no response.
            route.abort()
        else:
            route.continue_()

    page.route("**/messages", lose_answer)
    page.locator("#composer").fill("Do not lose this")
    page.locator("#composer").press("Enter")
    expect(page.get_by_role("alert").filter(has_text="Not sent")).to_be_visible()
    expect(page.locator("#composer")).to_have_value("Do not lose this")
    page.unroute("**/messages")
    expect(page.get_by_role("button", name="Send")).to_be_enabled()
    page.locator("#composer").press("Enter")
    expect(page.locator("#composer")).to_have_value("")
    expect(page.locator("article.is-user", has_text="Do not lose this")).to_have_count(1)


OPEN_PALETTE_FIRST = """matchMedia("(max-width: 860px)").addEventListener("change", ({matches}) =>
  matches || document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "k", ctrlKey: true, bubbles: true})));"""
"""Opens the palette before the page handles the wider window."""


def test_the_sidebar_closes_in_a_narrow_window_and_opens_again_in_a_wide_one(page: Page) -> None:
    page.add_init_script(OPEN_PALETTE_FIRST)
    page.reload()
    shell = page.locator(".shell")
    expect(shell).to_have_attribute("data-sidebar", "open")
    page.set_viewport_size({"width": 390, "height": 844})
    expect(shell).to_have_attribute("data-sidebar", "closed")
    page.set_viewport_size({"width": 1440, "height": 900})
    expect(page.get_by_role("dialog")).to_be_visible()
    expect(shell).to_have_attribute("data-sidebar", "open")


def test_a_draft_survives_a_reload_and_stays_with_its_chat(page: Page) -> None:
    ask(page, "A chat of its own")
    page.locator("#composer").fill("half a thought")
    page.reload()
    expect(page.locator("#composer")).to_have_value("half a thought")
    page.get_by_role("link", name="New chat").click()
    expect(page.locator("#composer")).to_have_value("")


def test_signing_out_deletes_drafts_even_after_a_sign_in_in_another_tab(page: Page) -> None:
    page.locator("#composer").fill("not for the next one at this computer")
    drafts = "Object.keys(localStorage).filter((key) => key.includes('draft.')).length"
    assert page.evaluate(drafts) == 1

    def choose_sign_out() -> None:
        page.locator(".account-button").click()
        page.get_by_role("menuitem", name="Sign out").click()

    page.route("**/accounts/logout/", lambda route: route.fulfill(status=503))
    choose_sign_out()
    expect(page.get_by_text("The server answered with an error (503).")).to_be_visible()
    assert page.evaluate(drafts) == 1
    page.unroute("**/accounts/logout/")
    page.evaluate("document.cookie = `csrftoken=${'a'.repeat(32)}; path=/`")  # A sign-in changes this cookie.
    choose_sign_out()
    expect(page).to_have_url(re.compile("/accounts/login/"))
    assert page.evaluate(drafts) == 0


def test_signing_out_in_one_tab_redirects_other_tabs_without_an_error(page: Page) -> None:
    errors: list[str] = []
    page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    memory, other = page.context.new_page(), page.context.new_page()
    memory.goto("/memory")
    expect(memory.locator(".memory-main")).to_be_visible()
    other.goto("/")
    # Requests still running at that moment are refused, and the browser logs those as errors.
    for tab in (page, memory):
        tab.wait_for_load_state("networkidle")
    other.locator(".account-button").click()
    other.get_by_role("menuitem", name="Sign out").click()
    for tab in (page, memory):
        # Retry, because the socket may also notice the sign-out and redirect again.
        expect(tab).to_have_url(re.compile("/accounts/login/"))
    # The socket may reconnect once before the page notices the sign-out, which the browser logs as an error.
    assert [error for error in errors if not error.startswith("WebSocket connection")] == []


def test_drafts_of_another_user_are_deleted(page: Page) -> None:
    """The other user's session ended without a sign-out, e.g. because it expired."""
    page.locator("#composer").fill("my own")
    page.evaluate("localStorage.setItem('palimpsest.draft.somebody-else.new', 'of somebody else')")
    page.reload()
    expect(page.locator("#composer")).to_have_value("my own")
    assert page.evaluate("localStorage.getItem('palimpsest.draft.somebody-else.new')") is None


def test_a_conversation_can_be_renamed_pinned_and_deleted(page: Page) -> None:
    ask(page, "Name me")
    row = page.locator(".row.is-open")

    def choose(action: str) -> None:
        row.hover()
        row.get_by_role("button", name=re.compile("Options")).click()
        page.get_by_role("menuitem", name=action, exact=True).click()

    choose("Rename")
    expect(page.get_by_label("Title")).to_be_focused()
    page.keyboard.type("Renamed")
    page.keyboard.press("Enter")
    expect(row).to_contain_text("Renamed")
    expect(row.get_by_role("link")).to_be_focused()
    choose("Rename")
    page.locator("#composer").click()
    expect(page.get_by_label("Title")).to_have_count(0)
    expect(page.locator("#composer")).to_be_focused()
    choose("Pin")
    expect(page.locator(".group", has=page.get_by_role("heading", name="Pinned"))).to_contain_text("Renamed")
    choose("Delete")
    expect(page.locator(".row")).to_have_count(0)
    expect(page).to_have_url(re.compile(r"/$"))


def test_the_page_is_accessible_at_every_size_in_light_and_dark(
    browser: Browser, service: Service, page: Page
) -> None:
    ask(page, "Something to look at")
    width, height = SIZES["tablet"]
    touch = browser.new_context(
        base_url=service.url, viewport={"width": width, "height": height}, has_touch=True
    )
    touch.add_cookies(page.context.cookies())  # type: ignore[arg-type]  # what it gave is what it takes
    conversation, phone = page.url, touch.new_page()
    for tab, sizes in ((page, ["desktop"]), (phone, ["tablet", "phone"])):
        # Each page is complete once it shows the last of its elements.
        for address, last in (
            ("/", ".row-link"),
            (conversation, "article.is-assistant"),
            ("/memory", ".day-title"),
        ):
            tab.goto(address)
            expect(tab.locator(".composer, .memory-main").first).to_be_visible()
            expect(tab.locator(last).first).to_be_attached()
            for look in looks(tab, sizes):
                assert barriers(tab) == [], f"{address} {look}"
                assert not overflows(tab), f"{address} {look}"
    touch.close()
