"""The memory page in a real browser: entries and the profile are read, changed, restored, searched and forgotten."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx2
import pytest
from playwright.sync_api import Page, expect

from tests.frontend.chatting import barriers, looks, overflows
from tests.servers.behaviour import says
from tests.servers.openai_server import ModelServer

FORGET_CHOSEN = re.compile(r"Forget \d+ chosen")


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer(default=says("- Sails a boat called Halcyon.")) as server:
        yield server


@pytest.fixture
def page(page: Page, alice: httpx2.Client) -> Page:
    """Return a tab on the memory page, with entries on two days."""
    for day, text in (
        ("2026-11-20", "The boat is called *Halcyon*."),
        ("2026-10-05", "The budget is 6,500 €."),
    ):
        alice.post("/api/v1/memory/entries", json={"text": text, "day": day}).raise_for_status()
    page.goto("/memory")
    return page


def test_an_entry_is_changed_restored_and_forgotten(page: Page, alice: httpx2.Client) -> None:
    entry = page.locator(".entry")
    expect(entry).to_contain_text("The boat is called Halcyon.")
    entry.get_by_role("button", name="Edit").click()
    page.get_by_label("Text of the entry").fill("The boat is called Heron.")
    page.get_by_role("button", name="Save").click()
    expect(entry).to_contain_text("The boat is called Heron.")

    entry.get_by_role("button", name="History").click()
    expect(entry.locator(".revision")).to_have_count(2)
    entry.get_by_role("button", name="Restore").click()
    expect(entry.locator(".prose")).to_have_text("The boat is called Halcyon.")

    entry.get_by_role("button", name="Forget").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Never learn it again").check()
    with page.expect_request("**/memory/forget") as asked:
        dialog.get_by_role("button", name="Forget").click()
    assert asked.value.post_data_json["for_good"] is True
    expect(dialog.locator(".receipt")).to_contain_text("Memory entries")
    dialog.get_by_role("button", name="Close").last.click()
    expect(entry).not_to_contain_text("Halcyon")
    # The day disappears with its last entry.
    expect(page.locator("h2.day-title")).to_contain_text("October 5")
    assert [day["day"] for day in alice.get("/api/v1/memory/days").json()["items"]] == ["2026-10-05"]


def test_a_long_day_is_drawn_only_as_far_as_scrolled(page: Page, alice: httpx2.Client) -> None:
    day = alice.get("/api/v1/memory/days/2026-11-20").json()
    sections = "".join(f"\n## 15:{at // 3:02}\n\nNote {at} of a long day.\n" for at in range(170))
    written = alice.put("/api/v1/memory/days/2026-11-20", json={"markdown": day["markdown"] + sections})
    assert written.status_code == 200, written.text
    entries, last = page.locator(".entry"), written.json()["entries"][-1]["id"]
    page.reload()
    expect(entries).to_have_count(50)
    page.keyboard.press("End")
    page.mouse.wheel(0, 100_000)
    expect(entries.nth(99)).to_be_attached()
    expect(entries.nth(170)).not_to_be_attached()
    page.goto(f"/memory?day=2026-11-20#e-{last}")
    expect(page.locator(f"#e-{last}")).to_be_in_viewport()
    expect(entries).to_have_count(171)


def test_found_entries_are_forgotten_and_for_good_if_ticked(page: Page, alice: httpx2.Client) -> None:
    page.get_by_role("link", name="Forgetting").click()
    for wish, is_for_good in (("the boat Halcyon", False), ("the budget of 6,500 €", True)):
        page.get_by_label("What should be forgotten?").fill(wish)
        page.get_by_role("button", name="Find it").click()
        page.get_by_label("Never learn it again").set_checked(is_for_good)
        assert barriers(page) == []
        with page.expect_response("**/memory/forget/confirm") as answered:
            page.get_by_role("button", name="Forget 1 chosen").click()
        assert answered.value.ok
        assert answered.value.request.post_data_json["for_good"] is is_for_good
    assert alice.get("/api/v1/memory/days").json()["items"] == []


def test_texts_that_repeat_a_forgotten_one_are_proposed_next(page: Page, alice: httpx2.Client) -> None:
    for text in ("The tide table is TT-5521.", "It was TT-5521."):
        made = alice.post("/api/v1/conversations", json={}).json()
        alice.post(f"/api/v1/conversations/{made['id']}/messages", json={"content": text}).raise_for_status()
    page.get_by_role("link", name="Forgetting").click()
    page.get_by_label("What should be forgotten?").fill("the tide table")
    page.get_by_role("button", name="Find it").click()
    page.get_by_role("button", name=FORGET_CHOSEN).click()
    expect(page.get_by_text("Other places that say the same:")).to_be_visible()
    expect(page.locator(".forget-items")).to_contain_text("It was TT-5521.")
    page.get_by_role("button", name=FORGET_CHOSEN).click()
    expect(page.locator(".forget-items")).to_have_count(0)
    assert alice.get("/api/v1/memory/search", params={"q": "TT-5521"}).json()["items"] == []


def test_a_day_of_another_month_is_opened_in_the_calendar_and_its_markdown_edited(
    page: Page, alice: httpx2.Client
) -> None:
    page.get_by_role("button", name="Earlier").click()
    page.get_by_role("button", name="Monday, October 5, 2026, 1 entry").click()
    expect(page.locator(".entry")).to_contain_text("6,500 €")
    page.get_by_role("button", name="Edit the day").click()
    markdown = page.get_by_label("Markdown of the day")
    written = markdown.input_value()
    alice.put("/api/v1/memory/days/2026-10-05", json={"markdown": written.replace("6,500", "7,000")})
    markdown.fill(written.replace("6,500", "8,000"))
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_be_visible()
    expect(markdown).to_have_value(written.replace("6,500", "8,000"))

    page.reload()
    page.get_by_role("button", name="Edit the day").click()
    markdown.fill(markdown.input_value().replace("7,000", "8,000"))
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".entry")).to_contain_text("8,000 €")


def test_the_profile_is_written_compared_and_reverted(page: Page) -> None:
    page.get_by_role("link", name="Profile").click()
    for text in ("- Builds boats", "- Builds boats\n- Sings"):
        page.get_by_role("button", name="Edit").click()
        page.get_by_label("Text of the profile").fill(text)
        page.get_by_role("button", name="Save").click()
        expect(page.locator(".prose")).to_contain_text(text.split("- ")[-1])
    versions = page.locator(".version")
    versions.first.locator("summary").click()
    expect(versions.first.locator(".is-added")).to_have_text("- Sings")
    versions.last.locator("summary").click()
    versions.last.get_by_role("button", name="Revert to this version").click()
    expect(page.locator(".prose")).not_to_contain_text("Sings")
    expect(page.locator(".version")).to_have_count(3)


def test_saving_an_edit_does_not_overwrite_a_profile_learned_meanwhile(page: Page) -> None:
    page.get_by_role("link", name="Profile").click()
    expect(page.get_by_text("There is nothing here yet.")).to_be_visible()
    page.get_by_role("button", name="Edit").click()
    words = page.get_by_label("Text of the profile")
    words.fill("- Builds boats")
    page.get_by_role("button", name="Learn now").click()
    expect(page.get_by_text("created version 1")).to_be_visible()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_be_visible()
    expect(words).to_have_value("- Builds boats")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".prose")).to_have_text("Sails a boat called Halcyon.")
    expect(page.locator(".version")).to_contain_text("Version 1")
    page.get_by_role("button", name="Learn now").click()
    expect(page.get_by_text("found nothing new")).to_be_visible()
    expect(page.get_by_role("button", name="Learn now")).to_be_enabled()
    expect(page.locator(".version")).to_have_count(1)


def test_a_search_is_limited_to_one_conversation_until_the_limit_is_removed(
    page: Page, alice: httpx2.Client
) -> None:
    for words in ("Our boat lies in Trondheim", "The boat needs paint"):
        said = {"messages": [{"role": "user", "content": words}]}
        alice.post("/api/v1/conversations/import", json=said).raise_for_status()
    page.goto("/memory?q=boat")
    results = page.locator(".result")
    expect(results).to_have_count(3)
    row = page.locator(".result-row", has_text="Trondheim")
    row.hover()
    row.get_by_role("button", name="Only this conversation").click()
    expect(results).to_have_count(1)
    expect(results).to_contain_text("Trondheim")
    page.reload()
    expect(results).to_have_count(1)
    assert barriers(page) == []
    page.get_by_role("button", name="One conversation only").click()
    expect(results).to_have_count(3)


def test_a_search_result_limited_by_date_opens_its_day(page: Page) -> None:
    page.get_by_label("Search memory").fill("the boat and the budget")
    results = page.locator(".result")
    expect(results).to_have_count(2)
    page.get_by_label("To", exact=True).fill("2026-10-31")
    expect(results).to_have_count(1)
    expect(results).to_contain_text("6,500 €")
    results.click()
    expect(page.locator(".day-title")).to_have_text("Monday, October 5, 2026")


def test_every_view_is_accessible_at_every_size_in_light_and_dark(page: Page) -> None:
    for address in (
        "/memory",
        "/memory?q=boat",
        "/memory?view=review",
        "/memory?view=profile",
        "/memory?view=forgotten",
        "/memory?view=chart",
    ):
        page.goto(address)
        for look in looks(page):
            expect(page.locator(".day-title").first).to_be_visible()
            assert barriers(page) == [], f"{address} {look}"
            assert not overflows(page), f"{address} {look}"
