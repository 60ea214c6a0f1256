"""What a user sees of an agent at work: tool calls, consent, messages sent meanwhile, a hook's call and a plan."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import httpx2
import pytest
from playwright.sync_api import Page, expect

from agents.plan.prompts import ANALYST_MARK, PLANNER_MARK, STEP_MARK
from tests.frontend.chatting import barriers, say
from tests.servers.behaviour import Behaviour, says
from tests.servers.openai_server import ModelServer
from tests.servers.recording import RecordedRequest
from tests.servers.waiting import wait_for

STEPS = [
    {"id": "price", "title": "Price of larch", "task": "Find the price of larch.", "dependencies": []},
    {"id": "hours", "title": "Opening hours", "task": "Find the opening hours.", "dependencies": []},
    {"id": "letter", "title": "Letter", "task": "Draft the letter.", "dependencies": ["price", "hours"]},
]
TOLL = "toll_" + "of_the_ferry_" * 6
HOOK = {
    "id": TOLL,
    "on": "turn_start",
    "condition": {"type": "turn_count", "count": 2},
    "action": {"type": "module_action", "action": "pay", "params": {"say": "Paid the toll."}},
}
BESIDE_THE_CARD = """() => {
  const right = document.querySelector(".consent").getBoundingClientRect().right;
  const parts = document.querySelectorAll(".consent *, .tool > summary > *");
  return [...parts].filter((part) => part.getBoundingClientRect().right > right).map((part) => part.textContent);
}"""
GOAL_MET = {"goal_met": True, "confidence": 1.0, "missing": ""}


def asks_for(name: str, **arguments: object) -> Behaviour:
    return Behaviour(tokens=0, tool_calls=({"name": name, "arguments": arguments},))


def answer_of(request: RecordedRequest) -> Behaviour:
    """Answer as planner, step, analyst or writer of the answer, depending on the instructions in the request."""
    if PLANNER_MARK in request.text:
        return says(json.dumps({"steps": STEPS}))
    if ANALYST_MARK in request.text:
        return says(json.dumps(GOAL_MET))
    if STEP_MARK in request.text:
        return says("It was found.", hold_after=1)
    return says("All **done**.")


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer(default=answer_of) as server:
        yield server


@pytest.fixture(scope="module")
def service_env() -> dict[str, str]:
    return {
        "EXTRA_TOOLS": "tests.api.own_tools.pay",
        "DEFAULT_TOOLS": "calculator pay",
        "HOOKS": json.dumps([HOOK]),
    }


def test_tools_are_shown_a_denied_one_is_not_called_and_messages_sent_meanwhile_arrive(
    page: Page, model: ModelServer, alice: httpx2.Client
) -> None:
    model.script(asks_for("calculator", expression="17*23"), asks_for("pay", amount=391))
    say(page, "Compute 17 times 23 and pay it")
    consent = page.get_by_role("alertdialog")
    expect(consent).to_contain_text("pay")
    expect(consent).to_contain_text(re.compile(r"\d:\d\d left"))
    tools = page.locator(".tool")
    expect(tools).to_have_count(2)
    expect(tools.first).to_have_attribute("data-state", "done")
    tools.first.locator("summary").click()
    expect(tools.first).to_contain_text("391")
    assert barriers(page) == []

    say(page, "And be qwick about it")
    queued = page.locator("article.is-user").last
    expect(queued).to_contain_text("Waits for the next step of the answer")
    queued.get_by_role("button", name="Edit").click()
    queued.get_by_role("textbox").fill("And be quick about it")
    queued.get_by_role("button", name="Save").click()
    expect(queued.locator(".bubble")).to_have_text("And be quick about it")
    say(page, "Take a boat")
    expect(page.locator("article.is-user")).to_have_count(3)
    page.locator("article.is-user").last.get_by_role("button", name="Take back").click()
    expect(page.get_by_text("Taken back: Take a boat")).to_be_visible()
    expect(page.locator("article", has_text="Take a boat")).to_have_count(0)
    assert barriers(page) == []
    consent.get_by_role("button", name="Deny").click()
    answer = page.locator("article.is-assistant").last
    expect(answer).to_have_attribute("data-status", "complete")
    expect(tools.last).to_have_attribute("data-state", "denied")
    last = model.requests_of("chat")[-1]
    assert "denied this call" in last.text
    assert "And be quick about it" in last.text
    assert "Take a boat" not in last.text

    page.reload()
    expect(page.locator("article")).to_have_count(4)
    expect(page.locator("article").nth(1)).to_contain_text("And be quick about it")
    expect(tools).to_have_count(2)
    expect(tools.last).to_contain_text("denied")

    page.locator("article.is-assistant").get_by_role("button", name="More").click()
    page.get_by_role("menuitem", name="How this answer was made").click()
    expect(page.locator(".waterfall tbody tr")).to_have_count(5)
    page.get_by_role("tab", name="What the model saw").click()
    expect(page.locator(".request")).to_have_count(3)
    assert barriers(page) == []
    page.get_by_role("button", name="Close", exact=True).click()
    approve_what_a_hook_calls(page, model)


def approve_what_a_hook_calls(page: Page, model: ModelServer) -> None:
    """Approve the hook's call in the second turn, before the model is called."""
    asked = len(model.requests_of("chat"))
    say(page, "Let us go on")
    consent = page.get_by_role("alertdialog")
    expect(consent).to_contain_text(f"May the hook {TOLL} call pay?")
    expect(consent).to_contain_text("Paid the toll.")
    expect(consent).to_contain_text(re.compile(r"\d:\d\d left"))
    assert barriers(page) == []
    assert len(model.requests_of("chat")) == asked
    page.set_viewport_size({"width": 390, "height": 844})
    page.reload()
    expect(consent).to_contain_text("Paid the toll.")
    assert page.evaluate(BESIDE_THE_CARD) == []
    assert barriers(page) == []
    page.set_viewport_size({"width": 1440, "height": 900})
    page.reload()
    consent.get_by_role("button", name="Approve").click()
    answer = page.locator("article.is-assistant").last
    expect(answer).to_have_attribute("data-status", "complete")
    expect(consent).to_have_count(0)
    call = answer.locator(".tool")
    expect(call).to_have_attribute("data-state", "done")
    expect(call).to_contain_text(f"by the hook {TOLL}")
    assert "pay:\\nPaid the toll." in model.requests_of("chat")[-1].text
    answer.get_by_role("button", name="More").click()
    page.get_by_role("menuitem", name="How this answer was made").click()
    expect(page.locator(".waterfall tbody tr")).to_have_count(2)
    expect(page.locator(".panel-list")).to_contain_text("toll")


def test_a_plan_is_shown_while_it_runs_and_after_a_reload(
    page: Page, model: ModelServer, alice: httpx2.Client
) -> None:
    page.get_by_role("button", name="Mode:").click()
    page.get_by_role("menuitemradio", name=re.compile("^Plan")).click()
    say(page, "Find the price of larch and the opening hours, then draft a letter")
    plan = page.locator(".plan")
    expect(plan.locator(".plan-node.is-running")).to_have_count(2)
    expect(plan.locator(".plan-node.is-pending")).to_have_count(1)
    assert barriers(page) == []
    answer = page.locator("article.is-assistant").last

    def is_complete() -> bool:
        model.release()
        return answer.get_attribute("data-status") == "complete"

    wait_for(is_complete, what="the plan is worked through")
    expect(answer).to_contain_text("All done.")
    expect(plan.locator(".plan-node.is-done")).to_have_count(3)

    page.reload()
    expect(plan).to_contain_text("Plan: 3 of 3 steps done")
    letter = plan.locator(".plan-step").last
    letter.locator("summary").click()
    expect(letter).to_contain_text("Price of larch, Opening hours")
    expect(letter).to_contain_text("It was found.")
    conversation = page.url.rpartition("/")[2]
    run = alice.get(f"/api/v1/conversations/{conversation}/messages").json()["items"][-1]["run"]
    assert [step["state"] for step in run["plan"]] == ["done"] * 3
    answer.get_by_role("button", name="More").click()
    page.get_by_role("menuitem", name="How this answer was made").click()
    named = page.locator(".waterfall .is-step th span")
    expect(named).to_have_count(6)
    first, *at_once, letter_step, analysis, final = named.all_text_contents()
    assert (first, letter_step, analysis, final) == ("Plan", "Letter", "Analysis", "Answer")
    assert sorted(at_once) == ["Opening hours", "Price of larch"]  # these run in parallel, in any order
    wait_for(
        lambda: len(model.requests_of("chat")) == 6,
        what="planner, three steps, analyst and the answer",
        explain=lambda: str(len(model.requests_of("chat"))),
    )
