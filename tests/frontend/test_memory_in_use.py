"""Memory in use in a real browser: learning at once or after a review, search, forgetting, and shared memory."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest
from playwright.sync_api import Page, expect

from tests.frontend.chatting import ask, barriers
from tests.servers.behaviour import Behaviour, says
from tests.servers.openai_server import ModelServer
from tests.servers.people import BOB
from tests.servers.recording import RecordedRequest
from tests.servers.service import Service
from tests.servers.waiting import wait_for

PORTER = """
agents:
  - {{id: Porter, shared_memory: true, brain: {{provider: openai, model: test-model, config: {{base_url: "{url}"}}}}}}
"""
CODE = "The gate code of the depot is 7731-heliotrope."
BOAT = "The user owns a boat called Halcyon."
DOG = "The user walks a dog called Biscuit."
FILLER = "and then we talked about harbours, gardens and the weather of that week, at some length. " * 30


def summary_of(request: RecordedRequest) -> Behaviour:
    if "Halcyon" in request.text:
        return says(BOAT)
    return says(DOG if "Biscuit" in request.text else "They talk about the orders INV-100 and INV-200.")


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer(default=says("I see."), summary_default=summary_of) as server:
        yield server


@pytest.fixture(scope="module")
def service_env() -> dict[str, str]:
    return {"LLM_CONTEXT_SIZE": "8000", "LLM_MAX_OUTPUT_TOKENS": "500"}


def test_the_profile_is_learned_on_request_and_a_search_limited_to_one_conversation(
    page: Page, alice: httpx2.Client, model: ModelServer
) -> None:
    alice.post("/api/v1/memory/entries", json={"text": "She plays the cello."}).raise_for_status()
    model.script(says("- Plays the cello in a quartet"))
    page.goto("/memory?view=profile")
    page.get_by_role("button", name="Learn now").click()
    expect(page.locator(".prose")).to_contain_text("Plays the cello in a quartet")
    expect(page.get_by_role("button", name="Learn now")).to_be_enabled()

    for title, text in (
        ("Ships", "The lighthouse of Genoa is old."),
        ("Trips", "A lighthouse stands in Brest."),
    ):
        messages = [{"role": "user", "content": text}, {"role": "assistant", "content": "I see."}]
        imported = {"title": title, "messages": messages}
        alice.post("/api/v1/conversations/import", json=imported).raise_for_status()
    page.get_by_label("Search memory").fill("lighthouse")
    results = page.locator(".result-row")
    expect(results).to_have_count(2)
    results.filter(has_text="Genoa").get_by_role("button", name="Only this conversation").click()
    expect(results).to_have_count(1)
    expect(results).to_contain_text("Genoa")
    page.get_by_role("button", name="One conversation only").click()
    expect(results).to_have_count(2)


def test_proposals_for_a_forget_request_can_be_loaded_again_after_an_error(
    page: Page, alice: httpx2.Client
) -> None:
    alice.post("/api/v1/memory/entries", json={"text": "My dog is called Rex."}).raise_for_status()
    refused = {"status": 503, "json": {"error": {"code": "unavailable", "message": "The database is away."}}}
    page.route("**/memory/forget/proposals/*", lambda route: route.fulfill(**refused))
    ask(page, "Forget that my dog is called Rex")
    card = page.get_by_role("region", name="Forget")
    expect(card.get_by_role("alert")).to_contain_text("The database is away.")
    page.unroute("**/memory/forget/proposals/*")
    card.get_by_role("button", name="Try again").click()
    expect(card).to_contain_text("My dog is called Rex.")


def test_a_chat_with_shared_memory_says_so_and_marks_recalled_shared_entries(
    page: Page, service: Service, alice: httpx2.Client, model: ModelServer
) -> None:
    file = service.data_dir / "agents.yaml"
    file.write_text(PORTER.format(url=model.base_url))
    service.manage("load_agents", str(file))
    tell_as_bob(service)

    page.reload()
    begun = alice.post("/api/v1/conversations", json={"agent": "Porter"}).json()["id"]
    page.goto(f"/c/{begun}")
    expect(page.get_by_role("note")).to_contain_text("everybody who talks to Porter can see")
    answer = ask(page, "What is the gate code of the depot?")
    answer.locator(".recalled summary").click()
    expect(answer.locator(".recalled li")).to_contain_text("7731-heliotrope")
    expect(answer.locator(".recalled li")).to_contain_text("from the memory this agent shares")
    expect(answer.locator(".recalled a")).to_have_count(0)

    page.goto("/memory")
    page.get_by_role("link", name="Shared by agents").click()
    expect(page.locator(".entry")).to_contain_text("7731-heliotrope")
    expect(page.locator(".entry").get_by_role("button")).to_have_count(0)
    expect(page.locator(".entry").get_by_role("link")).to_have_count(0)
    assert barriers(page) == []


def tell_as_bob(service: Service) -> None:
    bob = service.client_of(BOB)
    short = {"keep_recent": 2, "reserve_ratio": 0.01}
    chat = bob.post("/api/v1/conversations", json={"agent": "Porter", "context_policy": short}).json()["id"]
    for said in (CODE, "Order INV-100 is due.", "Order INV-200 is due."):
        message = {"content": said, "stream": False}
        bob.post(f"/api/v1/conversations/{chat}/messages", json=message).raise_for_status()
    bob.post(f"/api/v1/conversations/{chat}/compact", json={"wait": False}).raise_for_status()
    wait_for(lambda: bob.get("/api/v1/memory/days").json()["items"], what="bob is remembered")


def tell(alice: httpx2.Client, fact: str) -> None:
    """State a fact in a conversation that is summarised at once."""
    said = [fact, *(f"{number}: {FILLER}" for number in range(14))]
    messages = [{"role": "assistant" if at % 2 else "user", "content": text} for at, text in enumerate(said)]
    made = alice.post("/api/v1/conversations/import", json={"messages": messages}).raise_for_status().json()
    alice.post(
        f"/api/v1/conversations/{made['id']}/compact", json={"wait": True, "keep_recent": 2}
    ).raise_for_status()


def found(alice: httpx2.Client, word: str) -> list[str]:
    """Return the entries found by the search, without turns."""
    items = alice.get("/api/v1/memory/search", params={"q": word}).json()["items"]
    return [item["text"] for item in items if item["source"]["kind"] == "entry"]


def test_approved_entries_are_remembered_and_rejected_ones_are_not(page: Page, alice: httpx2.Client) -> None:
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
    expect(page.get_by_text("There is nothing to review.")).to_be_visible()
    wait_for(lambda: found(alice, "boat"), what="the approved one is found")
    assert found(alice, "dog") == []
    assert waiting() == 0
