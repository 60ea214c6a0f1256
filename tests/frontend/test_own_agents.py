"""A person's own agents and pins, in a real browser."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, expect

from tests.frontend.chatting import ask, barriers


def test_an_agent_is_made_changed_taken_along_and_talked_to(page: Page, tmp_path: Path) -> None:
    page.locator(".account-button").click()
    page.get_by_role("menuitem", name="Your agents").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="New agent").click()
    dialog.get_by_label("Name").fill("Gardener")
    dialog.get_by_label("Instructions").fill("You plan gardens.")
    dialog.get_by_label("Greeting").fill("What grows at yours?")
    dialog.get_by_label("Only some of the tools").check()
    dialog.get_by_label("clock").uncheck()
    assert barriers(page) == []
    dialog.get_by_role("button", name="Save").click()
    dialog.get_by_role("button", name="Change Gardener").click()
    expect(dialog.get_by_label("clock")).not_to_be_checked()
    dialog.get_by_label("Instructions").fill("You plan gardens and orchards.")
    dialog.get_by_role("button", name="Save").click()

    with page.expect_download() as download:
        dialog.get_by_role("link", name="Export Gardener as YAML").click()
    yaml = Path(download.value.path()).read_text()
    assert "You plan gardens and orchards." in yaml
    file = tmp_path / "farmer.yaml"
    file.write_text(yaml.replace("Gardener", "Farmer") + "\nmodel: no-such-model\n")
    dialog.locator("input[type=file]").set_input_files(file)
    expect(dialog).to_contain_text("There is no model no-such-model here")
    dialog.get_by_role("button", name="Delete Gardener").click()
    expect(dialog).to_contain_text("will be gone for good")
    dialog.get_by_role("button", name="Delete Gardener").click()
    expect(dialog.locator(".token")).to_have_count(1)
    dialog.get_by_role("button", name="Close").click()

    page.get_by_role("button", name="Agent:").click()
    page.get_by_role("menuitemradio", name="Farmer").click()
    expect(page.locator(".greeting-note")).to_have_text("What grows at yours?")
    ask(page, "Apples")
    expect(page.get_by_role("button", name="Agent:")).to_contain_text("Farmer")


def test_a_message_is_pinned_until_it_is_not(page: Page) -> None:
    ask(page, "The launch is on 2 May.")
    question = page.locator("article.is-user")
    for action in ("Pin in context", "Unpin"):
        question.hover()
        question.get_by_role("button", name="More").click()
        page.get_by_role("menuitem", name=action).click()
        mark = question.get_by_text("Pinned: always in context")
        expect(mark).to_have_count(1 if action != "Unpin" else 0)
        page.reload()
        expect(mark).to_have_count(1 if action != "Unpin" else 0)
