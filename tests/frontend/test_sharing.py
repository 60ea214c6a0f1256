"""Sharing in a real browser: creating a link, reading it while signed out, continuing in a copy."""

from __future__ import annotations

import httpx2
from playwright.sync_api import Browser, Page, expect

from tests.files.test_attachments import picture
from tests.fixtures.browser import VIEWPORT
from tests.frontend.chatting import SIZES, TWICE, ask, barriers, overflows
from tests.servers.service import Service


def test_a_link_shows_the_snapshot_to_anybody_until_it_is_revoked(
    page: Page, browser: Browser, service: Service
) -> None:
    page.locator("input[type=file]").set_input_files(
        {"name": "quay.png", "mimeType": "image/png", "buffer": picture()}
    )
    expect(page.locator(".uploads progress")).to_have_count(0)
    ask(page, "Where is the ferry?")
    page.get_by_role("button", name="Conversation", exact=True).click()
    page.get_by_role("menuitem", name="Share…").click()
    page.get_by_role("button", name="Create link").click()
    address = page.locator(".share-link a").get_attribute("href")
    assert address
    assert barriers(page) == []

    stranger = browser.new_context(base_url=service.url, viewport=VIEWPORT).new_page()
    stranger.goto(address)
    expect(stranger.locator("article.is-user img")).to_have_js_property("complete", True)
    assert stranger.locator(".bubble").text_content() == "Where is the ferry?", "no empty line for the image"
    expect(stranger.locator("article.is-assistant")).to_be_visible()
    expect(stranger.get_by_role("heading", level=2)).to_have_text("Question: Where is the ferry?")
    expect(stranger.locator(".wordmark")).to_have_text("Palimpsest")
    assert barriers(stranger) == []
    for width, height in SIZES.values():
        stranger.set_viewport_size({"width": width, "height": height})
        assert not overflows(stranger)

    for end in ("A week", "Unchanged"):
        page.get_by_label("The link ends after").select_option(end)
        with page.expect_request("**/share") as asked:
            page.get_by_role("button", name="Update").click()
        assert asked.value.post_data_json["expires_at"], "an update keeps the end that the link has"
        expect(page.get_by_label("The link ends after")).to_have_value("as it is")

    page.get_by_role("button", name="Revoke link").click()
    expect(page.get_by_role("dialog")).to_contain_text("The link will stop working")
    page.get_by_role("button", name="Revoke link").click()
    expect(page.locator(".share-link")).to_have_count(0)
    stranger.reload()
    expect(stranger.get_by_role("heading")).to_have_text("Nothing here.")
    stranger.context.close()


def test_a_signed_in_user_continues_a_share_as_one_copy(page: Page, alice: httpx2.Client) -> None:
    ask(page, "Where is the ferry?")
    conversation = page.url.rpartition("/")[2]
    url = page.evaluate(
        """async (id) => {
          const token = /csrftoken=([^;]+)/.exec(document.cookie)[1];
          const init = { method: "POST", headers: { "X-CSRFToken": token, "Content-Type": "application/json" }, body: "{}" };
          return (await (await fetch(`/api/v1/conversations/${id}/share`, init)).json()).url;
        }""",
        conversation,
    )
    page.goto(url)
    page.get_by_role("button", name="Continue as my own copy").evaluate(TWICE)
    expect(page.locator("article.is-user .bubble")).to_have_text("Where is the ferry?")
    assert page.url.rpartition("/")[2] != conversation
    expect(page.locator("article.is-assistant")).to_have_count(1)
    ask(page, "And back?")
    assert len(alice.get("/api/v1/conversations").json()["items"]) == 2
