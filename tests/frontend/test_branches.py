"""Branches in a real browser: a question written anew, another answer, and the way back."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

from tests.frontend.chatting import ask, barriers
from tests.servers.behaviour import says
from tests.servers.openai_server import ModelServer


def begin_to_edit(page: Page, old: str, new: str, expected: str = "") -> Locator:
    """Return the editor with the new text, which showed the old one, or the expected one, before."""
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


def test_an_edited_question_is_a_branch_and_the_old_one_stays_behind_it(
    page: Page, model: ModelServer
) -> None:
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


def test_another_answer_stands_beside_the_first_and_a_third_course_branches_off(
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
    expect(page.get_by_text("Your next message begins a branch of its own.")).to_be_visible()
    page.locator("#composer").fill("Go elsewhere")
    page.locator("#composer").press("Enter")
    expect(page.locator("article.is-assistant").last).to_contain_text("Elsewhere.")
    expect(page.locator("article.is-assistant").last).to_have_attribute("data-status", "complete")
    expect(page.locator("article.is-user").last).to_contain_text("2/2")
    expect_texts(page, "Try", "First try.", "Go elsewhere", "Elsewhere.")


def test_the_up_arrow_edits_the_last_message_and_escape_leaves_it_as_it_was(page: Page) -> None:
    ask(page, "As it was")
    page.locator("#composer").press("ArrowUp")
    editor = page.get_by_role("form", name="Edit message")
    expect(editor.get_by_label("Message")).to_be_focused()
    page.keyboard.type(" and more")
    page.keyboard.press("Escape")
    expect(editor).to_have_count(0)
    expect(page.locator("#composer")).to_be_focused()
    expect(page.locator("article .bubble").first).to_have_text("As it was", use_inner_text=True)
