"""The whole service as users meet it: import, browser, summary, memory, an image, a killed process, another user.

`SCREENSHOTS=docs/images pytest tests/acceptance` also makes the picture of the README.
"""

from __future__ import annotations

import base64
import io
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from memory.tokens import estimate_text
from tests.acceptance.conversations import long_history
from tests.frontend.chatting import say
from tests.servers.behaviour import Behaviour, says
from tests.servers.openai_server import ModelServer
from tests.servers.people import CHARLIE
from tests.servers.service import Service
from tests.servers.waiting import PATIENCE_S, wait_for
from tests.servers.websocket import connect, receive

WINDOW, OUTPUT = 16_000, 2_000
BUDGET = WINDOW - OUTPUT - 4_000
SUMMARY = "The user keeps numbered notes about the harbour, the garden and five more places, with codes QX. SUMMARY-MARK-1."
ANSWER = (
    "Note **17** is about the workshop, and its code is `QX-00017`.\n\n"
    "| note | subject | code |\n|---|---|---|\n| 16 | the choir | QX-00016 |\n| 17 | the workshop | QX-00017 |\n\n"
    "You wrote it early in this conversation; it left the context long ago and was recalled for this answer."
)
DIVIDER = re.compile(r"^Earlier context \(\d+ messages\) was summarized by AI\.$")


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    summary = Behaviour(text=SUMMARY)
    with ModelServer(default=says(ANSWER, rate=40.0), summary_default=summary, window=WINDOW) as server:
        yield server


@pytest.fixture(scope="module")
def service_env() -> dict[str, str]:
    return {"LLM_CONTEXT_SIZE": str(WINDOW), "LLM_MAX_OUTPUT_TOKENS": str(OUTPUT)}


def import_notes(alice: httpx2.Client) -> str:
    body = {"title": "Notes of a year", "messages": long_history(2_000)}
    imported = alice.post("/api/v1/conversations/import", json=body, timeout=PATIENCE_S)
    assert imported.status_code == 201, imported.text
    assert imported.json()["message_count"] == 2_000
    return str(imported.json()["id"])


def compactions(alice: httpx2.Client, conversation: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = alice.get(f"/api/v1/conversations/{conversation}/compactions").json()[
        "items"
    ]
    return items


def last_answer(page: Page) -> Any:
    return page.locator("article.is-assistant").last


def request_tokens(request: Any) -> int:
    return sum(estimate_text(message["content"]) + 4 for message in request.messages)


def take_picture(page: Page, name: str) -> None:
    folder = os.environ.get("SCREENSHOTS")
    if folder:
        page.screenshot(path=str(Path(folder) / name))


def test_an_imported_conversation_is_summarised_recalled_and_answered(
    page: Page, service: Service, model: ModelServer, alice: httpx2.Client
) -> None:
    conversation = import_notes(alice)
    assert not model.requests_of("summary"), "what is only imported costs nothing"
    compacted = alice.post(f"/api/v1/conversations/{conversation}/compact", json={"wait": True})
    assert compacted.json()["status"] == "done", compacted.text

    page.goto(f"/c/{conversation}")
    divider = page.locator(".divider-sentence")
    expect(divider.first).to_have_text(DIVIDER)
    model.clear()
    model.script(says(ANSWER, hold_after=12))
    say(page, "What is the code of note 17?")
    expect(last_answer(page)).to_have_attribute("data-status", "streaming")
    expect(last_answer(page)).to_contain_text("Note 17 is about")
    expect(last_answer(page)).not_to_contain_text("recalled for this answer")  # it streams
    model.release()
    expect(last_answer(page)).to_contain_text("recalled for this answer")
    expect(last_answer(page)).to_have_attribute("data-status", "complete")
    expect(last_answer(page).locator(".done-card")).to_have_text(re.compile(r"^[\d.]+k? in / [\d.]+k? out$"))

    divider.last.scroll_into_view_if_needed()
    take_picture(page, "two-thousand-messages.png")

    [request] = model.requests_of("chat")
    assert request.messages[0]["role"] == "system"
    assert request.messages[0]["content"].startswith("You are a helpful assistant.")
    assert "SUMMARY-MARK-1" in request.text
    assert "QX-00017" in request.text, "what left the context is recalled"
    assert request.messages[-1] == {"role": "user", "content": "What is the code of note 17?"}
    assert request_tokens(request) <= BUDGET + 4_000

    [day] = alice.get("/api/v1/memory/days").json()["items"]
    file = next((service.data_dir / "memory").glob(f"*/{day['day']}.md"))
    assert "SUMMARY-MARK-1" in file.read_text()

    say(page, "And of note 18?")
    expect(page.locator("article.is-assistant[data-status=complete]").last).to_contain_text("recalled")
    wait_for(lambda: len(model.requests_of("chat")) == 2, what="the second request")
    assert not model.requests_of("summary"), "one span, one summary"
    spans = [(row["first_position"], row["last_position"]) for row in compactions(alice, conversation)]
    assert len(spans) == len(set(spans)) == 1

    page.reload()
    expect(divider.first).to_have_text(DIVIDER)
    expect(last_answer(page)).to_contain_text("recalled for this answer")
    expect(last_answer(page)).to_contain_text(re.compile(r"Recalled \d+ earlier messages?"))


@pytest.mark.mechanism("cowagent.restart")
def test_text_shown_before_kill_9_survives_and_can_be_continued(
    page: Page, service: Service, model: ModelServer, alice: httpx2.Client
) -> None:
    words = " ".join(f"word{number}" for number in range(60))
    model.script(says(words, rate=60.0, hold_after=40))
    say(page, "Count some words for me")
    expect(last_answer(page)).to_contain_text("word38")
    shown = last_answer(page).locator(".prose").inner_text().strip()
    conversation = page.url.rpartition("/")[2]
    path = f"/api/v1/conversations/{conversation}/messages"
    wait_for(
        lambda: alice.get(path).json()["items"][-1]["content"].startswith(shown),
        what="what was shown is stored",
    )
    service.kill()
    service.start()

    page.reload()
    answer = last_answer(page)
    expect(answer).to_have_attribute("data-status", "interrupted")
    expect(answer).to_contain_text("Interrupted")
    assert answer.locator(".prose").inner_text().strip().startswith(shown)
    expect(answer.get_by_role("button", name="Retry")).to_be_visible()

    model.script(says("and here it goes on."))
    answer.get_by_role("button", name="Continue").click()
    expect(last_answer(page)).to_contain_text("and here it goes on.")
    continued = model.requests_of("chat")[-1]
    assert "word38" in continued.messages[-2]["content"]
    assert "exactly where it stopped" in continued.messages[-1]["content"]


def test_two_tabs_and_a_reload_show_the_same_text_and_any_tab_can_stop_the_answer(
    page: Page, service: Service, model: ModelServer, alice: httpx2.Client
) -> None:
    words = " ".join(f"word{number}" for number in range(1_500))
    model.script(says(words, rate=20.0))  # long enough for two tabs on a busy machine; the test stops it
    say(page, "Talk for a while")
    expect(last_answer(page)).to_contain_text("word5")
    page.wait_for_url("**/c/*")
    second = page.context.new_page()
    second.goto(page.url)
    expect(second.locator("article.is-assistant").last).to_contain_text("word20")
    page.reload()
    expect(last_answer(page)).to_contain_text("word40")

    second.get_by_role("button", name="Stop").click()
    for tab in (page, second):
        expect(tab.locator("article.is-assistant").last).to_have_attribute("data-status", "stopped")
    conversation = page.url.rpartition("/")[2]
    stored = alice.get(f"/api/v1/conversations/{conversation}/messages").json()["items"][-1]
    assert stored["status"] == "stopped"
    for tab in (page, second):
        assert (
            tab.locator("article.is-assistant .prose").last.inner_text().strip() == stored["content"].strip()
        )
    model.script(says("And so it ended."))
    page.get_by_role("button", name="Continue").click()
    expect(page.locator("article.is-assistant").last).to_contain_text("And so it ended.")


def test_another_user_gets_404_for_every_address_of_a_conversation(
    service: Service, alice: httpx2.Client, model: ModelServer
) -> None:
    charlie = service.client_of(CHARLIE)
    made = alice.post("/api/v1/conversations", json={"title": "Private"}).json()["id"]
    sent = alice.post(
        f"/api/v1/conversations/{made}/messages", json={"content": "Mine", "stream": False}
    ).json()
    run, message = sent["message"]["run"]["id"], sent["message"]["id"]
    addresses = [
        ("GET", f"/api/v1/conversations/{made}"),
        ("PATCH", f"/api/v1/conversations/{made}"),
        ("DELETE", f"/api/v1/conversations/{made}"),
        ("GET", f"/api/v1/conversations/{made}/messages"),
        ("POST", f"/api/v1/conversations/{made}/messages"),
        ("POST", f"/api/v1/conversations/{made}/messages/{message}/regenerate"),
        ("GET", f"/api/v1/conversations/{made}/events"),
        ("POST", f"/api/v1/conversations/{made}/context"),
        ("POST", f"/api/v1/conversations/{made}/compact"),
        ("GET", f"/api/v1/conversations/{made}/compactions"),
        ("GET", f"/api/v1/conversations/{made}/export"),
        ("GET", f"/api/v1/runs/{run}"),
        ("POST", f"/api/v1/runs/{run}/stop"),
        ("POST", f"/api/v1/runs/{run}/continue"),
    ]
    for method, address in addresses:
        body = {"content": "x"} if address.endswith("/messages") else {}
        answer = charlie.request(method, address, json=body if method in ("POST", "PATCH") else None)
        assert answer.status_code == 404, (method, address, answer.status_code, answer.text)

    with connect(
        service.ws_url, additional_headers={"Authorization": f"Bearer {service.tokens[CHARLIE]}"}
    ) as socket:
        for frame in (
            {"type": "subscribe", "conversation_id": made, "after_seq": 0},
            {"type": "message.send", "client_id": "c", "conversation_id": made, "content": "x"},
            {"type": "run.stop", "run_id": run},
            {"type": "message.sync", "message_id": message, "length": 0},
        ):
            socket.send(json.dumps(frame))
            assert receive(socket, "error")["code"] == "not_found"


def picture() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (64, 48), (200, 30, 60)).save(buffer, "PNG")
    return buffer.getvalue()


def image_urls(message: dict) -> list[str]:
    content = message["content"]
    return (
        [part["image_url"]["url"] for part in content if part["type"] == "image_url"]
        if isinstance(content, list)
        else []
    )


@pytest.mark.mechanism("fim.load-images")
def test_an_uploaded_image_reaches_the_model_and_is_rebuilt_in_later_turns(
    model: ModelServer, alice: httpx2.Client
) -> None:
    uploaded = alice.post("/api/v1/files", files={"file": ("red.png", picture(), "image/png")})
    assert uploaded.status_code == 201, uploaded.text
    conversation = alice.post("/api/v1/conversations", json={}).json()["id"]
    address = f"/api/v1/conversations/{conversation}/messages"

    first = alice.post(
        address,
        json={"content": "What is this?", "attachments": [uploaded.json()["id"]], "stream": False},
    )
    assert first.status_code == 200, first.text
    alice.post(address, json={"content": "And its colour?", "stream": False}).raise_for_status()

    [asked, again] = model.requests_of("chat")
    [url] = image_urls(asked.messages[-1])
    kind, _, data = url.partition(";base64,")
    assert kind.startswith("data:image/")
    assert Image.open(io.BytesIO(base64.b64decode(data))).size == (64, 48)
    assert image_urls(again.messages[1]) == [url], "the earlier turn still shows it"
    assert again.messages[-1]["content"] == "And its colour?"

    stored = alice.get(address).json()["items"][0]
    assert [part["type"] for part in stored["content"]] == ["image", "text"]
