"""Answers in a real browser: other versions, ratings, traces, and results of tools too large for the context."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.frontend.chatting import TWICE, ask, barriers
from tests.servers.behaviour import Behaviour, says
from tests.servers.openai_server import ModelServer

TRACE, LIST, ONE = r"/runs/[^/]+/trace$", r"/runs/[^/]+/requests$", r"/runs/[^/]+/requests/1$"
LINES = [f"line {number} of the catalogue" for number in range(1_800)]
RESULT = "\n".join(LINES)


@pytest.fixture(scope="module")
def service_env() -> dict[str, str]:
    own_tool = {"EXTRA_TOOLS": "tests.api.own_tools.look_up", "DEFAULT_TOOLS": "look_up"}
    return {"LLM_CONTEXT_SIZE": "100000", **own_tool}


def begin_to_edit(page: Page, old: str, new: str, expected: str = "") -> Locator:
    """Return the editor with the new text. Check that it showed `expected` before, or `old` by default."""
    question = page.locator("article.is-user", has_text=old)
    question.hover()
    question.get_by_role("button", name="Edit").click()
    editor = page.get_by_role("form", name="Edit message")
    expect(editor.get_by_label("Message")).to_have_value(expected or old)
    editor.get_by_label("Message").fill(new)
    return editor


def rewrite(page: Page, old: str, new: str) -> None:
    editor = begin_to_edit(page, old, new)
    editor.get_by_role("button", name="Save & rerun").click()
    expect(editor).to_have_count(0)


def expect_texts(page: Page, *texts: str) -> None:
    expect(page.locator("article .bubble, article .prose")).to_have_text(list(texts), use_inner_text=True)


def test_an_edited_question_starts_a_branch_beside_the_old_one(page: Page, model: ModelServer) -> None:
    model.script(says("Paris it is."), says("Two million."), says("Oslo it is."))
    ask(page, "Capital of France?")
    ask(page, "How many live there?")
    old = ["Capital of France?", "Paris it is.", "How many live there?", "Two million."]
    new = ["Capital of Norway?", "Oslo it is."]
    expect_texts(page, *old)

    begin_to_edit(page, "Capital of France?", "Capital of France in 1943?")
    page.get_by_role("link", name="New chat").click()
    page.go_back()
    begin_to_edit(page, "Capital of France?", "Capital of", expected="Capital of France in 1943?")
    page.keyboard.press("Escape")
    rewrite(page, "Capital of France?", "Capital of Norway?")
    expect(page.locator("article.is-assistant")).to_have_attribute("data-status", "complete")
    expect(page.locator("article.is-assistant")).to_contain_text("Oslo it is.")
    expect_texts(page, *new)
    versions = page.get_by_role("group", name="Versions of this message")
    expect(versions).to_contain_text("2/2")
    assert barriers(page) == []

    versions.get_by_role("button", name="Version before").click()
    expect(versions).to_contain_text("1/2")
    expect(page.locator("article")).to_have_count(4)
    expect_texts(page, *old)
    page.reload()
    expect(page.locator("article")).to_have_count(4)
    expect_texts(page, *old)

    versions.get_by_role("button", name="Next version").click()
    expect(page.locator("article")).to_have_count(2)
    expect_texts(page, *new)
    page.reload()
    expect(page.locator("article.is-assistant")).to_contain_text("Oslo it is.")
    expect_texts(page, *new)


def test_a_regenerated_answer_is_a_version_and_a_new_branch_can_start_at_any_answer(
    page: Page, model: ModelServer
) -> None:
    model.script(says("First try."), says("Going on."), says("Second try."), says("Elsewhere."))
    first = ask(page, "Try")
    ask(page, "Go on")
    first = page.locator("article.is-assistant").first
    first.hover()
    first.get_by_role("button", name="Regenerate").click()
    expect(page.locator("article.is-assistant")).to_contain_text(["Second try."])
    expect(page.locator("article.is-assistant")).to_have_attribute("data-status", "complete")
    versions = first.get_by_role("group", name="Versions of this message")
    expect(versions).to_contain_text("2/2")
    versions.get_by_role("button", name="Version before").click()
    expect(page.locator("article")).to_have_count(4)
    expect_texts(page, "Try", "First try.", "Go on", "Going on.")

    first.get_by_role("button", name="More").click()
    page.get_by_role("menuitem", name="Branch from here").click()
    expect(page.get_by_text("Your next message starts a new branch.")).to_be_visible()
    page.locator("#composer").fill("Go elsewhere")
    page.locator("#composer").press("Enter")
    expect(page.locator("article.is-assistant").last).to_contain_text("Elsewhere.")
    expect(page.locator("article.is-assistant").last).to_have_attribute("data-status", "complete")
    expect(page.locator("article.is-user").last).to_contain_text("2/2")
    expect_texts(page, "Try", "First try.", "Go elsewhere", "Elsewhere.")


def test_the_up_arrow_edits_the_last_message_and_escape_discards_the_edit(page: Page) -> None:
    ask(page, "As it was")
    page.locator("#composer").press("ArrowUp")
    editor = page.get_by_role("form", name="Edit message")
    expect(editor.get_by_label("Message")).to_be_focused()
    page.keyboard.type(" and more")
    page.keyboard.press("Escape")
    expect(editor).to_have_count(0)
    expect(page.locator("#composer")).to_be_focused()
    expect(page.locator("article .bubble").first).to_have_text("As it was", use_inner_text=True)


def test_an_answer_is_rated_with_a_reason(page: Page) -> None:
    answer = ask(page, "Where is the ferry?")
    bad = answer.get_by_role("button", name="Bad answer")
    bad.click()
    expect(bad).to_have_attribute("aria-pressed", "true")
    answer.get_by_role("button", name="Why?").click()
    with page.expect_response("**/feedback"):
        page.get_by_role("menuitemradio", name="Not correct").click()
    assert barriers(page) == []
    page.reload()
    answer.get_by_role("button", name="Why?").click()
    expect(page.get_by_role("menuitemradio", name="Not correct")).to_have_attribute("aria-checked", "true")
    page.keyboard.press("Escape")
    answer.get_by_role("button", name="Good answer").click()
    expect(bad).to_have_attribute("aria-pressed", "false")
    expect(answer.get_by_role("button", name="Why?")).to_have_count(0)


def refuse(route: Route) -> None:
    route.fulfill(status=503, json={"error": {"code": "unavailable", "message": "The database is away."}})


def test_each_part_of_the_trace_fails_separately_and_can_be_retried(page: Page) -> None:
    more = ask(page, "Hello?").get_by_role("button", name="More")
    steps, told = page.locator(".waterfall tbody tr"), page.get_by_role("alert")
    requests, pieces = page.locator(".request"), page.locator(".pieces > li")
    for refused in (TRACE, LIST, ONE):
        page.route(re.compile(refused), refuse)
        more.click()
        page.get_by_role("menuitem", name="How this answer was made").click()
        expect(told if refused == TRACE else steps, refused).to_have_count(1)
        page.get_by_role("tab", name="What the model saw").click()
        expect(told, refused).to_have_text("The database is away. Try again")
        expect(requests, refused).to_have_count(0 if refused == LIST else 1)
        if refused == TRACE:
            expect(requests).to_contain_text("1. Answer")
            expect(pieces).to_have_count(2)
        assert barriers(page) == [], refused
        page.unroute(re.compile(refused))
        told.get_by_role("button", name="Try again").click()
        expect(told, refused).to_have_count(0)
        expect(pieces, refused).to_have_count(2)
        page.get_by_role("tab", name="Steps").click()
        expect(steps, refused).to_have_count(1)
        page.get_by_role("complementary").get_by_role("button", name="Close").click()
        expect(more, refused).to_be_focused()


def test_an_offloaded_result_is_read_page_by_page_to_its_end(page: Page, model: ModelServer) -> None:
    call = {"name": "look_up", "arguments": {"say": RESULT}}
    model.script(Behaviour(tokens=0, tool_calls=(call,)))
    ask(page, "Look it up in the catalogue")
    tool = page.locator(".tool")
    tool.locator("summary").click()
    tool.get_by_role("button", name="Open").evaluate(TWICE)
    text = tool.locator("pre.is-tall")
    expect(tool).to_contain_text(f"Showing 20,000 of {len(RESULT):,} characters")
    expect(text).to_contain_text(LINES[0])
    expect(text).not_to_contain_text(LINES[-1])
    assert barriers(page) == []

    more = tool.get_by_role("button", name="More")
    while more.count():
        shown = text.inner_text()
        more.evaluate(TWICE)
        expect(text).not_to_have_text(shown)
    assert text.inner_text() == RESULT
    page.reload()
    tool.locator("summary").click()
    expect(tool.get_by_role("button", name="Open")).to_be_visible()
