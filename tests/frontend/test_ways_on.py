"""Continuing and undoing in a real browser: messages held by Stop, edited answers, new chats, undo, uploads."""

from __future__ import annotations

import re

import httpx2
import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.frontend.chatting import SIZES, ask, barriers, overflows, reload, say
from tests.servers.behaviour import says
from tests.servers.openai_server import ModelServer

# Make notices stay, because a busy machine may take longer than they are shown.
PATIENT = """const later = setTimeout;
window.setTimeout = (act, wait, ...given) => later(act, wait >= 5000 ? 600_000 : wait, ...given);"""
both_sizes = pytest.mark.parametrize("size", ["desktop", "phone"])


def resize(page: Page, size: str) -> None:
    width, height = SIZES[size]
    page.set_viewport_size({"width": width, "height": height})
    reload(page)


def choose(page: Page, message: Locator, action: str) -> None:
    message.hover()
    message.get_by_role("button", name="More").click()
    page.get_by_role("menuitem", name=action).click()


@both_sizes
def test_stop_holds_waiting_messages(page: Page, model: ModelServer, size: str) -> None:
    resize(page, size)
    model.script(says("Slow and long.", hold_after=1), says("All at once, then."))
    say(page, "First?")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    say(page, "Second?")
    waiting = page.locator("article.is-user").last
    expect(waiting).to_contain_text("Waits for the next step of the answer")
    say(page, "Third?")
    expect(page.locator("article.is-user")).to_have_count(3)
    page.get_by_role("button", name="Stop").click()
    held = page.locator("article.is-user", has_text="On hold, because the answer was stopped")
    expect(held).to_have_count(2)
    expect(page.locator("article.is-assistant")).to_have_count(1)
    assert barriers(page) == []
    assert not overflows(page)
    page.reload()
    expect(held).to_have_count(2)

    held.last.hover()
    held.last.get_by_role("button", name="Take back").click()
    expect(held).to_have_count(1)
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(page.locator("#composer")).to_have_value("Third?")
    held.get_by_role("button", name="Send now").click()
    expect(page.locator("article.is-assistant").last).to_contain_text("All at once, then.")
    expect(held).to_have_count(0)
    asked = [one["content"] for one in model.requests_of("chat")[-1].messages if one["role"] == "user"]
    assert asked == ["First?", "Second?"]


def test_escape_closes_open_lists_and_clears_a_field_before_it_stops_the_answer(
    page: Page, model: ModelServer
) -> None:
    model.script(says("Slow and long.", hold_after=1))
    say(page, "First?")
    stop = page.get_by_role("button", name="Stop", exact=True)
    expect(stop).to_be_visible()
    told = page.locator(".command-answer")
    say(page, "/help")
    expect(told).to_be_visible()
    composer, offered = page.locator("#composer"), page.get_by_role("listbox", name="Commands")
    composer.fill("/co")
    expect(offered).to_be_visible()
    composer.press("Shift+Tab")
    expect(composer).to_have_value("/co")
    for gone in (offered, told):
        composer.press("Escape")
        expect(gone).to_have_count(0)
    composer.fill("/com")
    expect(offered).to_be_visible()
    composer.fill("")
    search = page.get_by_role("searchbox", name="Search conversations")
    search.fill("harbour")
    search.press("Escape")
    expect(search).to_have_value("")
    expect(stop).to_be_visible()
    with page.expect_request("**/stop"):
        search.press("Escape")
    expect(stop).to_have_count(0)


@both_sizes
def test_continuing_a_stopped_answer_sends_the_held_message(
    page: Page, model: ModelServer, size: str
) -> None:
    resize(page, size)
    model.script(says("Slow and long.", hold_after=1), says(" And in prose."))
    say(page, "First?")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    say(page, "In prose, please.")
    waiting = page.locator("article.is-user", has_text="Waits for the next step of the answer")
    expect(waiting).to_have_count(1)
    say(page, "Never mind.")
    expect(waiting).to_have_count(2)
    page.get_by_role("button", name="Stop").click()
    held = page.locator("article.is-user", has_text="On hold, because the answer was stopped")
    expect(held).to_have_count(2)
    held.last.hover()
    held.last.get_by_role("button", name="Take back").click()
    expect(page.locator("article.is-user")).to_have_count(2)
    stopped = page.locator("article.is-assistant").first
    # Retry would leave the held messages behind.
    expect(stopped.get_by_role("button", name="Retry")).to_have_count(0)
    stopped.get_by_role("button", name="Continue").click()
    goes_on = page.locator("article.is-assistant").nth(1)
    expect(goes_on).to_have_attribute("data-status", "complete")
    expect(goes_on).to_contain_text("And in prose.")
    expect(held).to_have_count(0)
    sent = page.locator("article.is-user", has_text="Sent while the answer was being written")
    expect(sent).to_have_count(1)
    reload(page)
    expect(sent).to_have_count(1)
    expect(page.locator("article.is-user")).to_have_count(2)
    assert model.requests_of("chat")[-1].messages[-1]["content"] == "In prose, please."


@both_sizes
def test_an_edited_answer_is_a_version_beside_the_old_one(page: Page, model: ModelServer, size: str) -> None:
    resize(page, size)
    model.script(says("Lyon it is."))
    answer = ask(page, "Capital of France?")
    answer.hover()
    answer.get_by_role("button", name="Edit").click()
    editor = page.get_by_role("form", name="Edit message")
    expect(editor.get_by_label("Message")).to_have_value("Lyon it is.")
    assert barriers(page) == []
    editor.get_by_label("Message").fill("Paris it is.")
    editor.get_by_role("button", name="Save").click()
    expect(answer).to_contain_text("Paris it is.")
    expect(answer).to_contain_text("Edited by you")
    versions = page.get_by_role("group", name="Versions of this message")
    expect(versions).to_contain_text("2/2")
    versions.get_by_role("button", name="Version before").click()
    expect(answer).to_contain_text("Lyon it is.")
    expect(answer).not_to_contain_text("Edited by you")


def test_the_error_card_of_an_older_answer_mentions_no_missing_buttons(
    page: Page, model: ModelServer
) -> None:
    model.script(says("Half of an answer", fault="cut"), says("A whole one."))
    say(page, "First?")
    card = page.locator("article.is-assistant").first.locator(".card.is-bad")
    expect(card).to_contain_text("Press Continue or Retry.")
    ask(page, "Second?")
    expect(card).to_have_text("The connection to the model broke before the answer was finished.")
    expect(card.locator(".card-actions")).to_have_count(0)


def test_a_new_chat_can_start_at_any_message(page: Page, model: ModelServer) -> None:
    model.script(says("Paris it is."), says("Two million."), says("Sure."))
    ask(page, "Capital of France?")
    ask(page, "How many live there?")
    old = page.url
    choose(page, page.locator("article.is-assistant").first, "New chat from here")
    expect(page).not_to_have_url(old)
    expect(page.locator("article")).to_have_count(2)
    expect(page.locator(".row-link", has_text="Capital of France?")).to_have_count(2)
    ask(page, "Sure?")
    page.goto(old)
    expect(page.locator("article")).to_have_count(4)


def test_archiving_a_chat_can_be_undone(page: Page) -> None:
    ask(page, "Put me away")
    row = page.locator(".row", has_text="Put me away")
    row.hover()
    row.get_by_role("button", name=re.compile("Options")).click()
    page.get_by_role("menuitem", name="Archive", exact=True).click()
    expect(row).to_have_count(0)
    notice = page.locator(".toast", has_text="Archived: Put me away")
    shown, composer = notice.bounding_box(), page.locator(".composer").bounding_box()
    assert shown
    assert composer
    assert shown["y"] + shown["height"] <= composer["y"], "one can go on writing"
    notice.get_by_role("button", name="Undo").click()
    expect(row).to_have_count(1)


def test_a_notice_can_be_used_above_a_dialog(page: Page) -> None:
    page.add_init_script(PATIENT)
    page.reload()
    ask(page, "Put me away")
    row = page.locator(".row", has_text="Put me away")
    row.hover()
    row.get_by_role("button", name=re.compile("Options")).click()
    page.get_by_role("menuitem", name="Archive", exact=True).click()
    expect(page.locator(".toast", has_text="Archived: Put me away")).to_be_visible()
    page.keyboard.press("Control+/")
    notice = page.get_by_role("dialog").locator(".toasts:popover-open .toast")
    assert barriers(page) == []
    notice.get_by_role("button", name="Undo").click()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(row).to_have_count(1)


def test_a_continuation_of_an_answer_cannot_be_edited_separately(page: Page, model: ModelServer) -> None:
    model.script(says("Half of", finish_reason="length"), says("the story."))
    say(page, "A story?")
    answer = page.locator("article.is-assistant").first
    expect(answer).to_have_attribute("data-status", "cut")
    answer.get_by_role("button", name="Continue").click()
    rest = page.locator("article.is-assistant", has_text="the story.")
    rest.hover()
    expect(rest.get_by_role("button", name="Copy")).to_be_visible()
    expect(rest.get_by_role("button", name="Edit")).to_have_count(0)
    expect(answer.get_by_role("button", name="Edit")).to_have_count(1)


def test_a_continuation_of_an_answer_that_is_not_loaded_cannot_be_edited(
    page: Page, alice: httpx2.Client
) -> None:
    said = [("user", "A long story?"), *(("assistant", f"Part {number}.") for number in range(120))]
    body = {"title": "Story", "messages": [{"role": role, "content": text} for role, text in said]}
    made = alice.post("/api/v1/conversations/import", json=body).raise_for_status().json()
    page.goto(f"/c/{made['id']}")
    answers = page.locator("article.is-assistant")
    expect(answers.last).to_contain_text("Part 119.")
    expect(page.locator("article.is-user")).to_have_count(0)
    expect(answers.last.get_by_role("button", name="Copy")).to_have_count(1)
    expect(answers.get_by_role("button", name="Edit")).to_have_count(0)


def test_a_refused_file_says_why_before_anything_is_sent(page: Page) -> None:
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    page.locator("input[type=file]").set_input_files(
        {"name": "song.mp3", "mimeType": "audio/mpeg", "buffer": b"ID3\x04" + bytes(range(256)) * 8}
    )
    refusal = page.locator(".upload-refusal")
    expect(refusal).to_contain_text("song.mp3")
    expect(refusal).to_contain_text("neither an image, nor a text")
    assert sent == []
    assert barriers(page) == []
    # Reading fails for a dropped folder, or for a file that was moved meanwhile.
    page.evaluate("""() => {
        const read = Blob.prototype.arrayBuffer;
        Blob.prototype.arrayBuffer = function () {
            Blob.prototype.arrayBuffer = read;
            return Promise.reject(new DOMException("", "NotFoundError"));
        };
    }""")
    page.locator("input[type=file]").set_input_files(
        [
            {"name": "moved.txt", "mimeType": "text/plain", "buffer": b"Gone."},
            {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"Meet at noon."},
        ]
    )
    expect(page.locator(".uploads")).to_contain_text("notes.txt")
    expect(refusal.filter(has_text="moved.txt")).to_contain_text("This file can no longer be read.")
    say(page, "Without them")
    expect(page.locator("article.is-user")).to_have_text(re.compile("Without them"))
    expect(refusal).to_have_count(0)


def test_enter_during_an_upload_says_why_no_message_is_sent(page: Page) -> None:
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/api/v1/files", hold)
    with page.expect_request("**/api/v1/files"):
        page.locator("input[type=file]").set_input_files(
            {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"Meet at noon."}
        )
    page.locator("#composer").fill("When do we meet?")
    page.locator("#composer").press("Enter")
    expect(page.locator(".toast")).to_contain_text("still being uploaded")
    expect(page.locator("#composer")).to_have_value("When do we meet?")
    held[0].continue_()
    expect(page.get_by_role("button", name="Send")).to_be_enabled()


def test_uploads_stay_with_their_draft(page: Page) -> None:
    ask(page, "A chat of its own")
    page.locator("input[type=file]").set_input_files(
        {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"Meet at noon."}
    )
    thumb = page.locator(".uploads li")
    expect(thumb).to_contain_text("notes.txt")
    expect(page.get_by_role("button", name="Send")).to_be_enabled()
    page.get_by_role("link", name="New chat").click()
    expect(thumb).to_have_count(0)
    page.locator(".row-link", has_text="A chat of its own").click()
    expect(thumb).to_contain_text("notes.txt")
    page.reload()
    expect(thumb).to_contain_text("notes.txt")
    expect(page.get_by_role("button", name="Send")).to_be_enabled()
