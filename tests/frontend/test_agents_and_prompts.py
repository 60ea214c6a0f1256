"""A user's own agents, pins and prompts in a real browser."""

from __future__ import annotations

from pathlib import Path

import httpx2
from playwright.sync_api import Page, Route, expect

from tests.frontend.chatting import SIZES, ask, barriers, overflows, too_low


def test_an_agent_is_created_changed_exported_imported_and_used(page: Page, tmp_path: Path) -> None:
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


def test_forms_do_not_overwrite_values_that_failed_to_load(page: Page, alice: httpx2.Client) -> None:
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


def test_a_message_is_pinned_and_unpinned(page: Page) -> None:
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


def test_a_prompt_is_created_used_and_deleted_with_undo(page: Page) -> None:
    page.locator(".account-button").click()
    page.get_by_role("menuitem", name="Prompts").click()
    dialog = page.get_by_role("dialog", name="Prompts")
    dialog.get_by_role("button", name="New prompt").click()
    dialog.get_by_label("Name, typed after the slash").fill("french")
    dialog.get_by_label("What it is for").fill("Into French")
    dialog.get_by_label("Text").fill("Translate into French:\n")
    dialog.get_by_role("button", name="Save").click()
    row = dialog.locator(".trash-row")
    expect(row).to_contain_text("/french")
    for width, height in SIZES.values():
        page.set_viewport_size({"width": width, "height": height})
        assert barriers(page) == []
        assert not overflows(page)
    dialog.get_by_role("button", name="Delete french").click()
    expect(row).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(row).to_have_count(1)
    page.keyboard.press("Escape")

    composer = page.locator("#composer")
    composer.fill("/fre")
    expect(page.get_by_role("option", name="/french")).to_be_visible()
    composer.press("Enter")
    expect(composer).to_have_value("Translate into French:\n")


def test_many_prompts_can_be_searched_and_do_not_hide_the_message_box(
    page: Page, alice: httpx2.Client
) -> None:
    for number in range(30):
        body = {"name": f"letter-{number:02}", "text": "Dear Sir"}
        alice.post("/api/v1/prompts", json=body).raise_for_status()
    page.locator(".account-button").click()
    page.get_by_role("menuitem", name="Prompts").click()
    dialog = page.get_by_role("dialog", name="Prompts")
    rows = dialog.locator(".trash-row")
    expect(rows).to_have_count(30)
    dialog.get_by_label("Find a prompt").fill("SIR letter-07")
    expect(rows).to_have_count(1)
    assert barriers(page) == []
    dialog.get_by_label("Find a prompt").fill("nowhere")
    expect(dialog.get_by_text("Nothing was found.")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    composer = page.locator("#composer")
    composer.fill("/letter")
    option = page.get_by_role("option")
    expect(option).to_have_count(30)
    expect(composer).to_be_in_viewport(ratio=1)
    composer.press("ArrowUp")
    chosen = page.get_by_role("option", selected=True)
    expect(chosen).to_contain_text("/letter-29")
    expect(chosen).to_be_in_viewport(ratio=1)
    assert composer.get_attribute("aria-activedescendant") == chosen.get_attribute("id")
    assert barriers(page) == []


def test_commands_do_not_overlap_on_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 700})
    page.locator("#composer").fill("/")
    expect(page.get_by_role("option", name="/compact")).to_be_visible()
    assert too_low(page, ".commands li") == []
