"""Imports of chats from another program in a real browser: upload in parts, progress, and report."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.frontend.chatting import barriers, looks, overflows
from tests.importing.exports import chatgpt
from tests.servers.service import Service

PART_BYTES = 65_536
FAILED = """
from datetime import timedelta
from chatapp.accounts.models import User
from chatapp.features.importing import job
from chatapp.features.importing.models import Import
from chatapp.operations import clock
now = clock.now()
row = Import.objects.create(user=User.objects.get(email={email!r}), file_name="conversations.json", size_bytes=1,
    state="failed", error=job.BROKEN, kept_until=now + timedelta(days=1), lease_expires_at=now, created_at=now)
job.folder().mkdir(parents=True, exist_ok=True)
(job.folder() / str(row.pk)).write_text({content!r})
"""


@pytest.fixture(scope="module")
def service_env() -> dict[str, str]:
    """Limit the size of requests, so that a small file has several parts."""
    return {"MAX_REQUEST_BYTES": "65536"}


@pytest.fixture
def export(tmp_path: Path) -> Path:
    """Return the path of an export that has five full parts and a smaller one."""
    chats = [chatgpt(conversation_id="one", is_archived=False), "x" * (5 * PART_BYTES)]
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(chats))
    return path


def open_dialog(page: Page) -> Locator:
    page.locator(".account-button").click()
    page.get_by_role("menuitem", name="Import chats…").click()
    return page.get_by_role("dialog", name="Import chats")


def choose(dialog: Locator, file: Path) -> None:
    dialog.get_by_label("Choose a file, or drop it here").set_input_files(file)


def look_at_all_sizes(page: Page) -> None:
    for _ in looks(page):
        assert barriers(page) == []
        assert not overflows(page)
    page.set_viewport_size({"width": 1440, "height": 900})


class Parts:
    """Records the offsets of the parts that the page sends, and drops the connection at part number `breaks_at`.

    With `stays_broken`, drop all later parts, too, until `mend`, because the page retries after two seconds.
    """

    def __init__(self, page: Page, stays_broken: bool = False) -> None:
        self.offsets: list[int] = []
        self.stays_broken = stays_broken
        self.breaks_at = -1
        self.breaks: Callable[[], None] = lambda: None
        page.route("**/api/v1/imports/*/parts?*", self._pass)

    def _pass(self, route: Route) -> None:
        self.offsets.append(int(parse_qs(urlsplit(route.request.url).query)["offset"][0]))
        count = len(self.offsets)
        if count == self.breaks_at or (self.stays_broken and 0 < self.breaks_at < count):
            self.breaks()
            route.abort("connectionreset")
        else:
            route.continue_()

    def mend(self) -> None:
        self.offsets.clear()
        self.breaks_at = -1


def test_an_export_is_uploaded_and_its_report_is_shown(page: Page) -> None:
    dialog = open_dialog(page)
    content = json.dumps([chatgpt(is_archived=False), {"a": 1}]).encode()
    export = {"name": "conversations.json", "mimeType": "application/json", "buffer": content}
    dialog.get_by_label("Choose a file, or drop it here").set_input_files(export)  # type: ignore[arg-type]  # a dict of these
    expect(dialog.get_by_text("messages imported.")).to_be_visible()
    dialog.get_by_text("Could not be read: 1").click()
    expect(dialog.get_by_text("Chat 2 of the file")).to_be_visible()
    expect(dialog.get_by_text("Importing used no model and cost nothing.")).to_contain_text(
        "tokens. Indexing them for search needs no model."
    )
    look_at_all_sizes(page)
    page.keyboard.press("Escape")
    expect(page.locator(".row")).to_have_count(1)


def test_an_upload_resumes_by_itself_after_the_server_was_killed(
    page: Page, service: Service, export: Path
) -> None:
    dialog, parts = open_dialog(page), Parts(page)
    parts.breaks_at, parts.breaks = 3, service.kill
    choose(dialog, export)
    expect(dialog.get_by_text("The connection is lost. The upload resumes when it is back.")).to_be_visible()
    look_at_all_sizes(page)
    service.start()
    expect(dialog.get_by_text("1 chat with")).to_be_visible()
    assert parts.offsets == [PART_BYTES * number for number in (0, 1, 2, 2, 3, 4, 5)]


def test_a_reloaded_page_resumes_the_upload_of_the_same_file(page: Page, export: Path) -> None:
    dialog, parts = open_dialog(page), Parts(page, stays_broken=True)
    parts.breaks_at = 4
    choose(dialog, export)
    expect(dialog.get_by_text("The connection is lost.")).to_be_visible()
    page.reload()
    dialog = open_dialog(page)
    held = dialog.locator(".import", has_text="conversations.json")
    expect(held).to_contain_text("Choose the same file again to resume.")
    look_at_all_sizes(page)
    parts.mend()
    choose(dialog, export)
    expect(dialog.get_by_text("1 chat with")).to_be_visible()
    assert parts.offsets[0] == 3 * PART_BYTES, "what the server has is not sent again"
    assert len(parts.offsets) == 3


def test_a_stopped_upload_can_be_discarded(page: Page, export: Path) -> None:
    dialog, parts = open_dialog(page), Parts(page, stays_broken=True)
    parts.breaks_at = 2
    choose(dialog, export)
    expect(dialog.get_by_text("The connection is lost.")).to_be_visible()
    dialog.get_by_role("button", name="Stop").click()
    held = dialog.locator(".import", has_text="Choose the same file again to resume.")
    held.get_by_role("button", name="Discard").click()
    expect(held).to_have_count(0)
    expect(dialog.get_by_label("Choose a file, or drop it here")).to_be_visible()


def test_an_import_that_failed_on_the_server_is_retried_without_the_file(
    page: Page, service: Service, email: str
) -> None:
    content = json.dumps([chatgpt(conversation_id="again", is_archived=False)])
    service.manage("shell", "-v", "0", "-c", FAILED.format(email=email, content=content))
    dialog = open_dialog(page)
    expect(dialog.get_by_text("Something went wrong on our side")).to_be_visible()
    dialog.get_by_role("button", name="Try again").click()
    expect(dialog.get_by_text("1 chat with")).to_be_visible()
