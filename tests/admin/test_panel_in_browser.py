"""From the printed set-up link to a tested model, in a real browser, under the policy every page is served with."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.servers.openai_server import ModelServer
from tests.servers.service import SETUP_LINK, Service

PASSWORD = "a long enough passphrase"

pytestmark = pytest.mark.slow


def test_the_first_visitor_sets_up_and_connects_a_model(page: Page, service: Service) -> None:
    refused: list[str] = []
    page.on(
        "console", lambda message: refused.append(message.text) if "Security Policy" in message.text else None
    )
    page.goto(service.wait_for_output(SETUP_LINK)[0])
    page.get_by_label("E-mail").fill("root@example.com")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Create the admin account").click()
    expect(page).to_have_url(f"{service.url}/")

    page.goto(f"{service.url}/admin/")
    expect(page.locator("#checks .findings")).to_contain_text("schema")

    with ModelServer(models=[{"id": "test-model", "max_model_len": 16_384}]) as server:
        page.goto(f"{service.url}/admin/chatapp/modelconfig/add/")
        page.locator("#id_name").fill("Ours")
        page.locator("#id_base_url").fill(server.base_url)
        page.locator("#id_model_id").fill("test-model")
        page.get_by_role("button", name="Save and test").click()
        expect(page.get_by_text(re.compile("test-model answers")).first).to_be_visible()
        page.goto(f"{service.url}/admin/chatapp/modelconfig/")
        row = page.locator("#result_list tr", has_text="Ours")
        expect(row).to_contain_text("16,384")
        row.get_by_role("button", name="Test").click()
        expect(page.locator(".messagelist")).to_contain_text("answers")

    page.goto(f"{service.url}/admin/chatapp/user/")
    page.get_by_role("button", name="Log out").click()
    expect(page).to_have_url(re.compile("/accounts/login/"))
    assert refused == []
