"""A person's own agents and pins, in a real browser."""

from __future__ import annotations

from pathlib import Path

import httpx2
from playwright.sync_api import Page, Route, expect

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


def test_what_has_not_loaded_is_not_saved_as_nothing(page: Page, alice: httpx2.Client) -> None:
    made = alice.post("/api/v1/agents", json={"name": "Gardener", "tools": ["clock"]}).json()
    folder = alice.post("/api/v1/folders", json={"name": "Lisbon", "agent": "Gardener"}).json()

    def fail(route: Route) -> None:
        route.fulfill(status=503, json={"error": {"code": "x", "message": "Not now."}})

    page.route("**/api/v1/tools", fail)
    page.route("**/api/v1/agents", fail)
    page.reload()
    page.get_by_role("button", name="Options for Lisbon").click()
    page.get_by_role("menuitem", name="Edit folder…").click()
    page.get_by_label("Name", exact=True).fill("Porto")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    [changed] = alice.get("/api/v1/folders").json()["items"]
    assert changed == {**folder, "name": "Porto"}

    page.unroute("**/api/v1/agents")
    page.reload()
    page.locator(".account-button").click()
    page.get_by_role("menuitem", name="Your agents").click()
    page.get_by_role("button", name="Change Gardener").click()
    expect(page.get_by_role("alert")).to_have_text("Not now.")
    page.get_by_label("Instructions").fill("You plan gardens.")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("button", name="Change Gardener").wait_for()
    stored = alice.get(f"/api/v1/agents/{made['id']}").json()
    assert stored["system_prompt"] == "You plan gardens."
    assert stored["tools"] == ["clock"]

    def answer_without_clock(route: Route) -> None:
        tools = route.fetch().json()["items"]
        route.fulfill(json={"items": [tool for tool in tools if tool["name"] != "clock"]})

    page.unroute("**/api/v1/tools")
    page.route("**/api/v1/tools", answer_without_clock)
    page.get_by_role("button", name="Change Gardener").click()
    page.get_by_label("calculator").check()
    page.get_by_role("button", name="Save").click()
    page.get_by_role("button", name="Change Gardener").wait_for()
    assert sorted(alice.get(f"/api/v1/agents/{made['id']}").json()["tools"]) == ["calculator", "clock"]


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
