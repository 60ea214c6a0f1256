"""The documentation page of the API in a browser, under the content security policy and without any other host."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.servers.service import Service


def test_the_api_page_shows_the_operations_without_errors_and_other_hosts(
    page: Page, service: Service
) -> None:
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    addresses: list[str] = []
    page.on("request", lambda request: addresses.append(request.url))
    page.goto("/api/docs")
    expect(page.get_by_text("/api/v1/conversations/import", exact=True)).to_be_visible()
    assert "Palimpsest" in page.title()
    page.locator('.opblock-patch [data-path="/api/v1/me"]').click()
    expect(page.locator(".opblock-body")).to_contain_text("The time zone decides when your days begin.")
    assert complaints == []
    assert {address.split("/")[2] for address in addresses if address.startswith("http")} == {
        service.url.removeprefix("http://")
    }
