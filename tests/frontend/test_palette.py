"""The palette, the search in messages, copying and pasting long texts, and pausing memory."""

from __future__ import annotations

import re

import httpx2
from playwright.sync_api import Page, Route, expect

from tests.fixtures.browser import slow_down
from tests.frontend.chatting import ask, barriers, looks, overflows
from tests.servers.behaviour import says
from tests.servers.openai_server import ModelServer
from tests.servers.waiting import wait_for

LONG = "A line that was copied from somewhere.\n" * 200


def test_the_palette_finds_a_message_of_another_chat_and_opens_the_chat_there(
    page: Page, alice: httpx2.Client
) -> None:
    ask(page, "Our boat is called Halcyon and lies in Trondheim")
    place = page.url
    page.get_by_role("link", name="New chat").click()
    ask(page, "Something else altogether")

    def is_found() -> bool:
        found = alice.get("/api/v1/memory/search", params={"q": "boat Trondheim"}).json()["items"]
        return any("Halcyon" in item["text"] for item in found)

    wait_for(is_found, what="what was said is in the search")
    page.keyboard.press("Control+k")
    field = page.get_by_role("combobox", name="Search chats, messages and actions")
    expect(field).to_be_focused()
    field.fill("boat Trondheim")
    found = page.get_by_role("group", name="Messages").get_by_role("option")
    expect(found.first).to_contain_text("Halcyon")
    expect(found.first.locator("small")).to_contain_text(" · ")  # The title of the chat, then the date.
    for _ in looks(page):
        assert barriers(page) == []
        assert not overflows(page)
    while found.first.get_attribute("aria-selected") != "true":
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("article.is-user")).to_contain_text("Halcyon")
    expect(page).to_have_url(re.compile(f"^{re.escape(place)}#m-"))
    expect(page.locator("article.is-found")).to_contain_text("Halcyon")


def test_the_palette_runs_actions_and_its_shortcut_closes_it(page: Page) -> None:
    slow_down(page, 10)  # One dialog opens before the close event of the other one.
    page.keyboard.press("Control+k")
    dialog = page.get_by_role("dialog", name="Go to")
    expect(dialog.get_by_role("combobox")).to_be_focused()
    page.keyboard.type("shortcuts")
    expect(dialog.get_by_role("option", selected=True)).to_have_text("Keyboard shortcuts")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    expect(dialog).to_be_visible()
    page.keyboard.press("Control+k")
    expect(dialog).to_have_count(0)
    expect(page.locator("#composer")).to_be_focused()


def test_enter_waits_for_the_results_of_the_typed_words(page: Page) -> None:
    ask(page, "Where is the ferry?")
    page.get_by_role("link", name="New chat").click()
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route(re.compile(r"/conversations\?q="), hold)
    page.keyboard.press("Control+k")
    dialog = page.get_by_role("dialog", name="Go to")
    expect(dialog.get_by_role("option", selected=True)).to_have_text("Where is the ferry?")
    with page.expect_request(re.compile(r"/conversations\?q=shortcuts")):
        page.keyboard.type("shortcuts")
        page.keyboard.press("Enter")
    expect(dialog.get_by_role("combobox")).to_have_value("shortcuts")
    held.pop().continue_()
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()


def test_the_header_has_the_actions_of_the_chat_and_on_a_phone_its_menu_has_them(
    page: Page, alice: httpx2.Client
) -> None:
    sent = alice.post("/api/v1/conversations", json={"title": "Ferries"}).json()
    page.goto(f"/c/{sent['id']}")
    header = page.locator(".header")
    header.get_by_role("button", name="Share…").click()
    expect(page.get_by_role("dialog", name="Share this conversation")).to_be_visible()
    page.keyboard.press("Escape")
    header.get_by_role("button", name="Context").click()
    expect(page.get_by_role("button", name="Compact now")).to_be_visible()
    header.get_by_role("button", name="Context").click()
    expect(page.get_by_role("button", name="Compact now")).to_be_hidden()
    page.set_viewport_size({"width": 390, "height": 844})
    expect(header.get_by_role("button", name="Share…")).to_be_hidden()
    header.get_by_role("button", name="Conversation").click()
    page.get_by_role("menuitem", name="Context").click()
    expect(page.get_by_role("button", name="Compact now")).to_be_visible()


def test_an_answer_is_copied_as_markdown(page: Page, model: ModelServer) -> None:
    model.script(says("It is **blue**, says `sky`."))
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    ask(page, "What is blue?")
    page.locator("article.is-assistant").get_by_role("button", name="More").click()
    page.get_by_role("menuitem", name="Copy as Markdown").click()
    expect(page.locator(".toast")).to_have_text("Copied")
    page.locator("#composer").focus()
    page.keyboard.press("Control+v")
    expect(page.locator("#composer")).to_have_value("It is **blue**, says `sky`.")


def test_ctrl_and_a_slash_that_needs_shift_opens_the_shortcuts(page: Page) -> None:
    page.evaluate("dispatchEvent(new KeyboardEvent('keydown', {key: '/', ctrlKey: true, shiftKey: true}))")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()


def test_a_long_paste_can_be_attached_as_a_file(page: Page, model: ModelServer) -> None:
    composer = page.locator("#composer")
    composer.fill("What is this? ")
    page.evaluate(
        """text => {
          const box = document.getElementById("composer");
          const clipboardData = new DataTransfer();
          clipboardData.setData("text/plain", text);
          if (box.dispatchEvent(new ClipboardEvent("paste", { clipboardData, cancelable: true, bubbles: true })))
            document.execCommand("insertText", false, text);
        }""",
        LONG,
    )
    expect(composer).to_have_value(f"What is this? {LONG}")
    expect(page.get_by_text("You pasted 7,800 characters.")).to_be_visible()
    assert barriers(page) == []
    page.get_by_role("button", name="Attach as a file").click()
    expect(composer).to_have_value("What is this? ")
    expect(page.locator(".upload progress")).to_have_count(0)
    composer.press("Enter")
    expect(page.locator("article.is-user .file")).to_contain_text("Pasted text.txt")
    expect(page.locator("article.is-assistant")).to_have_attribute("data-status", "complete")
    assert "Pasted text.txt (text/plain, 7,800 bytes)" in model.requests_of("chat")[-1].text


def test_memory_is_paused_and_resumed_in_one_chat(page: Page, alice: httpx2.Client) -> None:
    ask(page, "Between us")
    chat = page.url.rsplit("/", 1)[1]
    row = page.locator(".row.is-open")

    def choose(action: str) -> None:
        row.hover()
        row.get_by_role("button", name="Options").click()
        page.get_by_role("menuitem", name=action, exact=True).click()

    choose("Pause memory")
    banner = page.get_by_text("Memory is paused in this chat.")
    expect(banner).to_be_visible()
    wait_for(
        lambda: alice.get(f"/api/v1/conversations/{chat}").json()["memory"] == "paused",
        what="paused",
    )
    page.reload()
    expect(banner).to_be_visible()
    page.get_by_role("link", name="New chat").click()
    expect(banner).to_have_count(0)
    page.go_back()
    page.get_by_role("button", name="Resume").click()
    expect(banner).to_have_count(0)
    wait_for(
        lambda: alice.get(f"/api/v1/conversations/{chat}").json()["memory"] == "on",
        what="resumed",
    )


def test_the_message_search_shows_the_matching_sentence_and_filters_by_role(
    page: Page, alice: httpx2.Client
) -> None:
    ask(page, "It rains. Our boat Halcyon lies in Trondheim. And so on.")

    def is_found() -> bool:
        asked = {"q": "Halcyon", "role": "user"}
        return bool(alice.get("/api/v1/memory/search", params=asked).json()["items"])

    wait_for(is_found, what="what was said is in the search")
    page.get_by_role("link", name="New chat").click()
    page.get_by_role("searchbox", name="Search conversations").fill("Halcyon")
    page.get_by_role("button", name="Search in all messages").click()
    dialog = page.get_by_role("dialog", name="Search messages")
    hit = dialog.locator(".search-hit").first
    expect(hit.locator(".excerpt")).to_have_text("Our boat Halcyon lies in Trondheim.")
    expect(hit.locator("mark")).to_have_text("Halcyon")
    dialog.get_by_label("Said by").select_option("Assistant")
    expect(dialog.get_by_text("Nothing was found.")).to_be_visible()
    dialog.get_by_label("Said by").select_option("You")
    expect(hit).to_be_visible()
    for _ in looks(page):
        assert barriers(page) == []
        assert not overflows(page)
    hit.click()
    expect(dialog).to_have_count(0)
    expect(page).to_have_url(re.compile(r"/c/[^#]+#m-"))
    expect(page.locator("article.is-found")).to_contain_text("Halcyon")
