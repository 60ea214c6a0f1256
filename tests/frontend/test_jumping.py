"""Links to messages open the conversation at the message, however long the conversation is."""

from __future__ import annotations

import re
from typing import Any

import httpx2
from playwright.sync_api import Locator, Page, expect

from tests.frontend.chatting import ask, barriers, looks, overflows
from tests.servers.behaviour import says
from tests.servers.openai_server import ModelServer
from tests.servers.waiting import wait_for

FAR_UP = 400


def import_numbered(alice: httpx2.Client, count: int = 800) -> str:
    """Return the id of a conversation in which each message states its number."""
    roles = ("user", "assistant")
    messages = [{"role": roles[n % 2], "content": f"Message number {n}."} for n in range(count)]
    answer = alice.post("/api/v1/conversations/import", json={"messages": messages}, timeout=120)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def messages_of(alice: httpx2.Client, chat: str, **place: Any) -> list[dict[str, Any]]:
    answer = alice.get(f"/api/v1/conversations/{chat}/messages", params=place)
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def numbers(page: Page) -> list[int]:
    return [
        int(n)
        for text in page.locator("article :is(.bubble, .prose)").all_inner_texts()
        for n in re.findall(r"number (\d+)", text)
    ]


def say(alice: httpx2.Client, chat: str, words: str) -> None:
    path = f"/api/v1/conversations/{chat}/messages"
    answer = alice.post(path, json={"content": words, "stream": False}, timeout=120)
    assert answer.status_code == 200, answer.text


def scroll_to(page: Page, number: int, *, down: bool) -> None:
    """Scroll until the message is there, because the page loads more messages only near the end of the list."""
    page.locator(".thread").hover()

    def is_there() -> bool:
        page.mouse.wheel(0, 100_000 if down else -100_000)
        return page.get_by_text(f"number {number}.").count() > 0

    wait_for(is_there, what=f"message {number} is loaded")


def open_at(page: Page, chat: str, message: dict[str, Any]) -> Locator:
    page.goto(f"/c/{chat}#m-{message['id']}")
    found = page.locator("article.is-found")
    expect(found).to_contain_text(message["content"])
    expect(found).to_be_in_viewport()
    return found


def test_a_link_opens_at_an_old_message_from_which_one_can_scroll_and_send(
    page: Page, alice: httpx2.Client, model: ModelServer
) -> None:
    chat = import_numbered(alice)
    found = open_at(page, chat, messages_of(alice, chat, before=FAR_UP + 1, limit=1)[0])
    seen = numbers(page)
    assert len(seen) < 400, "only what is around it is loaded"
    assert seen == list(range(seen[0], seen[-1] + 1))
    back = page.get_by_role("button", name="Back to the newest")
    look_at_it_everywhere(page, found, back)
    scroll_to(page, seen[-1] + 30, down=True)
    scroll_to(page, seen[0] - 30, down=False)
    read = numbers(page)
    assert read == list(range(read[0], read[-1] + 1))

    # Of two messages at the end, only the one sent from this page makes it scroll there.
    model.script(says("Said to a program."), says("Said on the page."))
    say(alice, chat, "From elsewhere")
    expect(page.get_by_text("From elsewhere")).to_have_count(0)
    page.locator("#composer").fill("From here")
    page.locator("#composer").press("Enter")
    expect(page.locator("article").last).to_contain_text("Said on the page.")
    expect(page.locator("article").last).to_be_in_viewport()
    said = ["From elsewhere", "Said to a program.", "From here", "Said on the page."]
    expect(page.locator("article :is(.bubble, .prose)").filter(has_not_text="number")).to_have_text(said)
    expect(page).to_have_url(f"/c/{chat}")


def look_at_it_everywhere(page: Page, found: Locator, back: Locator) -> None:
    page.get_by_role("button", name="Close sidebar").click()
    for look in looks(page):
        expect(found).to_be_in_viewport()
        expect(back).to_be_in_viewport()
        assert barriers(page) == [], look
        assert not overflows(page), look
    page.set_viewport_size({"width": 1280, "height": 800})


def test_scrolling_down_reaches_the_newest_messages_and_live_updates(
    page: Page, alice: httpx2.Client, model: ModelServer
) -> None:
    chat = import_numbered(alice, 400)
    open_at(page, chat, messages_of(alice, chat, limit=200)[0])
    back = page.get_by_role("button", name="Back to the newest")
    expect(back).to_be_visible()
    scroll_to(page, 399, down=True)
    expect(back).to_have_count(0)
    model.script(says("Seen at once."))
    say(alice, chat, "Live")
    expect(page.locator("article").last).to_contain_text("Seen at once.")

    page.reload()
    back.click()
    expect(page.locator("article").last).to_be_in_viewport()
    expect(back).to_have_count(0)
    expect(page).to_have_url(f"/c/{chat}")


def test_a_link_switches_to_another_branch_unless_an_answer_is_being_written(
    page: Page, alice: httpx2.Client, model: ModelServer
) -> None:
    model.script(says("Paris it is."), says("Oslo it is."), says("Slow and long.", hold_after=1))
    ask(page, "Capital of France?")
    chat = page.url.rsplit("/", 1)[1]
    [first, _] = messages_of(alice, chat)
    edited = alice.patch(
        f"/api/v1/conversations/{chat}/messages/{first['id']}",
        json={"content": "Capital of Norway?"},
        timeout=120,
    )
    assert edited.status_code == 200, edited.text
    [second, _] = messages_of(alice, chat)
    articles = page.locator("article :is(.bubble, .prose)")
    expect(articles).to_have_text(["Capital of Norway?", "Oslo it is."])
    open_at(page, chat, first)
    expect(articles).to_have_text(["Capital of France?", "Paris it is."])

    page.locator("#composer").fill("And its river?")
    page.locator("#composer").press("Enter")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    page.evaluate("id => { location.hash = `m-${id}` }", second["id"])
    expect(page.get_by_text("An answer is still being written here.")).to_be_visible()
    expect(articles.first).to_have_text("Capital of France?")
    model.wait_until(lambda server: len(server.requests_of("chat")) == 3)
    model.release()
    expect(page.locator("article.is-assistant").last).to_have_attribute("data-status", "complete")

    page.goto(f"/c/{chat}#m-00000000-0000-0000-0000-000000000000")
    expect(page.get_by_text("That message is no longer there.")).to_be_visible()
    expect(articles).to_have_text(["Capital of France?", "Paris it is.", "And its river?", "Slow and long."])
