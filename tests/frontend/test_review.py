"""Who wants to be asked first approves or rejects what was extracted, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest
from playwright.sync_api import Page, expect

from tests.frontend.chatting import barriers
from tests.servers.behaviour import Behaviour, says
from tests.servers.openai_server import ModelServer
from tests.servers.recording import RecordedRequest
from tests.servers.waiting import wait_for

BOAT = "The user owns a boat called Halcyon."
DOG = "The user walks a dog called Biscuit."
FILLER = "and then we talked about harbours, gardens and the weather of that week, at some length. " * 30


def summary_of(request: RecordedRequest) -> Behaviour:
    return says(BOAT if "Halcyon" in request.text else DOG)


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer(default=says("I see."), summary_default=summary_of) as server:
        yield server


@pytest.fixture(scope="module")
def service_env() -> dict[str, str]:
    return {"LLM_CONTEXT_SIZE": "8000", "LLM_MAX_OUTPUT_TOKENS": "500"}


def tell(alice: httpx2.Client, fact: str) -> None:
    """In a conversation that is summarised at once."""
    said = [fact, *(f"{number}: {FILLER}" for number in range(14))]
    messages = [{"role": "assistant" if at % 2 else "user", "content": text} for at, text in enumerate(said)]
    made = alice.post("/api/v1/conversations/import", json={"messages": messages}).raise_for_status().json()
    alice.post(
        f"/api/v1/conversations/{made['id']}/compact", json={"wait": True, "keep_recent": 2}
    ).raise_for_status()


def found(alice: httpx2.Client, word: str) -> list[str]:
    """Return the entries found, without the turns that they came from."""
    items = alice.get("/api/v1/memory/search", params={"q": word}).json()["items"]
    return [item["text"] for item in items if item["source"]["kind"] == "entry"]


def test_what_is_approved_is_remembered_and_what_is_rejected_is_not(page: Page, alice: httpx2.Client) -> None:
    alice.patch("/api/v1/memory/settings", json={"review": True}).raise_for_status()
    for fact in ("My boat is called Halcyon.", "My dog is called Biscuit."):
        tell(alice, fact)

    def waiting() -> int:
        return len(alice.get("/api/v1/memory/review").json()["items"])

    wait_for(lambda: waiting() == 2, what="both are proposed")
    assert not found(alice, "boat") + found(alice, "dog")
    refused = {"status": 503, "json": {"error": {"code": "unavailable", "message": "The database is away."}}}
    page.route("**/memory/review*", lambda route: route.fulfill(**refused))
    page.goto("/memory?view=review")
    expect(page.get_by_role("alert")).to_contain_text("The database is away.")
    expect(page.get_by_role("status", name="Loading…")).to_have_count(0)
    page.unroute("**/memory/review*")
    page.get_by_role("button", name="Try again").click()
    proposed = page.locator(".entry")
    expect(proposed).to_have_count(2)
    assert barriers(page) == []
    proposed.filter(has_text="Halcyon").get_by_role("button", name="Remember").click()
    expect(proposed).to_have_count(1)
    proposed.filter(has_text="Biscuit").get_by_role("button", name="Reject").click()
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    wait_for(lambda: found(alice, "boat"), what="the approved one is found")
    assert found(alice, "dog") == []
    assert waiting() == 0
