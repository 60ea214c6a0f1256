"""A fact that a user mentions is remembered, found with its source, edited and, on request, forgotten everywhere."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator

import httpx2
import pytest
from playwright.sync_api import Page, expect

from tests.acceptance.conversations import SUBJECTS
from tests.acceptance.stored import places_with
from tests.frontend.chatting import ask
from tests.servers.behaviour import Behaviour, says
from tests.servers.openai_server import ModelServer
from tests.servers.service import Service
from tests.servers.waiting import wait_for

NAME = "Quillfeather"
TOLD = f"My dentist is called Dr {NAME}, in Elm Street 14."
SUMMARY = f"The user talks about harbours and gardens. Their dentist is Dr {NAME}, in Elm Street 14."
FILLER_TURNS = 8
FILLER_WORDS = 450


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer(default=says("I see."), summary_default=Behaviour(text=SUMMARY)) as server:
        yield server


@pytest.fixture(scope="module")
def service_env() -> dict[str, str]:
    return {"LLM_CONTEXT_SIZE": "8000", "LLM_MAX_OUTPUT_TOKENS": "500"}


def talk_on(alice: httpx2.Client, conversation: str) -> None:
    """Talk about other things until the beginning has left the context."""
    for number in range(FILLER_TURNS):
        words = " ".join(
            f"{SUBJECTS[(number + step) % len(SUBJECTS)]} {step}" for step in range(FILLER_WORDS // 3)
        )
        said = {"content": f"Turn {number}: {words}", "stream": False}
        alice.post(f"/api/v1/conversations/{conversation}/messages", json=said).raise_for_status()


def entries(alice: httpx2.Client) -> list[dict[str, str]]:
    days = alice.get("/api/v1/memory/days").json()["items"]
    return [
        entry for day in days for entry in alice.get(f"/api/v1/memory/days/{day['day']}").json()["entries"]
    ]


def traces(service: Service, alice: httpx2.Client, word: str) -> list[str]:
    """Return all places and API addresses that still contain the word."""
    found = [*places_with(word, service.env), *(["the log"] if word in service.output() else [])]
    told = {
        address: alice.get(address).text
        for address in (
            f"/api/v1/memory/search?q={word}",
            "/api/v1/memory/profile",
            "/api/v1/memory/receipts",
        )
    }
    for conversation in alice.get("/api/v1/conversations").json()["items"]:
        for path in ("export?format=json", "export?format=markdown", "messages?limit=200", "compactions"):
            address = f"/api/v1/conversations/{conversation['id']}/{path}"
            told[address] = alice.get(address).text
    with zipfile.ZipFile(io.BytesIO(alice.get("/api/v1/memory/export").content)) as archive:
        told |= {f"exported {name}": archive.read(name).decode() for name in archive.namelist()}
    return found + [address for address, text in told.items() if word.lower() in text.lower()]


@pytest.mark.mechanism("forgetting.everywhere")
def test_a_fact_is_remembered_recalled_edited_and_forgotten_everywhere(
    page: Page, service: Service, model: ModelServer, alice: httpx2.Client
) -> None:
    # The user mentions the fact, and it leaves the context.
    ask(page, TOLD)
    page.wait_for_url("**/c/*")
    first = page.url.rpartition("/")[2]
    talk_on(alice, first)
    wait_for(lambda: entries(alice), what="what left the context is remembered")
    view = alice.post(f"/api/v1/conversations/{first}/context", json={"query": "Hello"}).json()
    tail = [piece for piece in view["messages"] if piece["source"] == "history"]
    assert not any(NAME in str(piece["content"]) for piece in tail)

    # A question in another conversation recalls it with its source.
    page.get_by_role("link", name="New chat").click()
    model.clear()
    model.script(says(f"Dr {NAME}, in Elm Street 14."))
    answer = ask(page, "What is my dentist called?")
    expect(answer).to_contain_text(NAME)
    [request] = model.requests_of("chat")
    assert NAME in request.text, "the model was told"
    answer.locator(".recalled summary").click()
    source = answer.locator(".recalled a", has_text=NAME).first
    expect(source).to_be_visible()
    assert re.search(rf"/c/{first}#m-|/memory\?day=", source.get_attribute("href") or "")
    answer.locator(f".recalled a[href*='/c/{first}#m-']", has_text=NAME).first.click()
    expect(page.locator("article.is-found")).to_contain_text(NAME)
    expect(page.locator("article.is-found")).to_be_in_viewport()

    # The user edits the entry.
    page.goto("/memory")
    entry = page.locator(".entry").first
    expect(entry).to_contain_text(NAME)
    entry.get_by_role("button", name="Edit").click()
    text = page.get_by_label("Text of the entry")
    text.fill(text.input_value() + f"\n\nDr {NAME} is closed on Mondays.")
    page.get_by_role("button", name="Save").click()
    expect(entry).to_contain_text("closed on Mondays")
    folder = service.data_dir / "memory"
    wait_for(
        lambda: any("closed on Mondays" in file.read_text() for file in folder.rglob("*.md")),
        what="the file says it, too",
    )
    told = traces(service, alice, NAME)
    for place in ("chatapp_message.parts", "chatapp_memoryentry.text"):
        assert place in told, "there is something to forget"
    assert any(place.startswith("memory/") for place in told)
    assert any(place.startswith("exported ") for place in told)

    # The user forgets all matches until none is left. The model rewrites the summary from messages without the fact.
    model.defaults["summary"] = Behaviour(text="The user asked for several things.")
    page.goto("/memory?view=forgotten")
    forget_all_of(page, f"my dentist is called Dr {NAME}")
    wait_for(
        lambda: not traces(service, alice, NAME),
        what="nothing of it is left",
        explain=lambda: "\n".join(traces(service, alice, NAME)),
    )
    page.get_by_label("Search memory").fill(NAME)
    expect(page.get_by_role("heading", name=f"Nothing found for “{NAME}”")).to_be_visible()

    # The fact is not learned again.
    model.clear()
    ask_again = alice.post("/api/v1/conversations").json()["id"]
    said = {"content": "What is my dentist called?", "stream": False}
    alice.post(f"/api/v1/conversations/{ask_again}/messages", json=said).raise_for_status()
    assert NAME not in model.requests_of("chat")[0].text


def forget_all_of(page: Page, wish: str) -> None:
    """Search for the wish and forget all matches, until there are none."""
    for _ in range(5):
        page.get_by_label("What should be forgotten?").fill(wish)
        page.get_by_role("button", name="Find it").click()
        nothing = page.get_by_text("Nothing like that is remembered.")
        forget = page.get_by_role("button", name=re.compile(r"Forget \d+ chosen"))
        expect(nothing.or_(forget)).to_be_visible()
        if nothing.is_visible():
            return
        forget.click()
        expect(page.locator("main .receipt").first).to_be_visible()
        page.reload()
    raise AssertionError("it is found again and again")
