"""Chromium meets the service."""

from __future__ import annotations

from tests.servers.service import SETUP_LINK


def test_the_first_visitor_becomes_the_admin(page, service):
    page.goto(service.wait_for_output(SETUP_LINK).group(0))
    page.fill("input[type=email]", "root@example.com")
    for field in page.locator("input[type=password]").all():
        field.fill("correct horse battery")
    page.locator("form button[type=submit]").first.click()
    page.wait_for_url(f"{service.url}/")
    assert page.goto("/admin/").status == 200
