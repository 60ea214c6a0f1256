"""Features of the device: the service worker, the offline page, speech output and dictation."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.fixtures.browser import open_tab
from tests.frontend.chatting import ask, barriers, overflows
from tests.servers.behaviour import says
from tests.servers.openai_server import ModelServer
from tests.servers.service import Service

KEPT = """caches.keys()
  .then((names) => Promise.all(names.map((name) => caches.open(name).then((cache) => cache.keys()))))
  .then((found) => found.flat().map(({ url }) => new URL(url).pathname))"""
STUBS = """
window.spoken = [];
const queue = [];
window.SpeechSynthesisUtterance = class { constructor(text) { this.text = text; } };
Object.defineProperty(window, "speechSynthesis", { value: {
  speak: (piece) => { window.spoken.push([piece.lang, piece.text]); queue.push(piece); },
  cancel: () => { for (const piece of queue.splice(0)) piece.onerror({ error: "canceled" }); },
} });
window.finishSpeaking = () => { for (const piece of queue.splice(0)) piece.onend?.(); };
window.SpeechRecognition = class {
  constructor() { window.recogniser = this; }
  start() { this.isOn = true; }
  stop() { this.isOn = false; this.onend(); }
  abort() { this.stop(); }
  hear(...texts) { this.onresult({ results: texts.map((transcript) => [{ transcript }]) }); }
};
"""
SILENT = """for (const name of ["speechSynthesis", "SpeechRecognition", "webkitSpeechRecognition"])
  Object.defineProperty(window, name, { value: undefined });"""


@pytest.fixture
def installed(browser: Browser, service: Service, email: str) -> Iterator[Page]:
    """Yield a tab with an active service worker, and with the cache of an older one."""
    with open_tab(browser, service.url, service_workers="allow") as tab:
        cookies = service.cookies[email]
        tab.context.add_cookies([{"name": n, "value": v, "url": service.url} for n, v in cookies.items()])
        tab.goto("/")
        expect(tab.locator("#composer")).to_be_visible()
        tab.evaluate("caches.open('offline-older').then(() => true)")
        tab.keyboard.press("Control+/")  # This loads the module that registers the worker.
        expect(tab.get_by_role("dialog")).to_contain_text("Print the whole chat")
        tab.evaluate("navigator.serviceWorker.ready.then(() => true)")
        tab.keyboard.press("Escape")
        expect(tab.get_by_role("dialog")).to_have_count(0)
        yield tab


def test_without_a_connection_an_offline_page_is_shown(installed: Page) -> None:
    ask(installed, "Something private")
    installed.wait_for_function("caches.has('offline-older').then((has) => !has)")
    kept = installed.evaluate(KEPT)
    assert "/offline" in kept
    assert all(path == "/offline" or path.startswith("/static/") for path in kept)

    installed.context.set_offline(True)
    installed.reload()
    expect(installed.get_by_role("heading", name="No connection.")).to_be_visible()
    assert installed.evaluate("document.styleSheets[0].cssRules.length > 0")
    assert barriers(installed) == []
    assert not overflows(installed)
    installed.context.set_offline(False)
    expect(installed.locator("article.is-user")).to_contain_text("Something private")
    assert "Something private" not in installed.evaluate(
        "caches.match('/offline', {ignoreSearch: true}).then((r) => r.text())"
    )


def test_an_answer_is_read_aloud_until_it_is_stopped_or_finished(page: Page, model: ModelServer) -> None:
    page.add_init_script(STUBS)
    page.reload()
    model.script(says("# Tides\n\n**They** follow the [moon](https://example.com). 潮汐。"))
    answer = ask(page, "Why tides?")
    answer.hover()
    begin = answer.get_by_role("button", name="Read aloud")
    begin.click()
    expect(answer.get_by_role("button", name="Stop reading")).to_be_visible()
    assert page.evaluate("spoken") == [["en", "Tides They follow the moon."], ["zh", "潮汐。"]]
    assert barriers(page) == []
    answer.get_by_role("button", name="Stop reading").click()
    expect(begin).to_be_visible()
    begin.click()
    expect(answer.get_by_role("button", name="Stop reading")).to_be_visible()
    page.evaluate("finishSpeaking()")
    expect(begin).to_be_visible()


def test_dictated_text_is_appended_to_the_typed_text(page: Page) -> None:
    page.add_init_script(STUBS)
    page.reload()
    composer = page.locator("#composer")
    composer.fill("Dear diary,")
    page.get_by_role("button", name="Dictate").click()
    expect(page.get_by_role("button", name="Stop dictating")).to_be_visible()
    page.evaluate("recogniser.hear('today')")
    expect(composer).to_have_value("Dear diary, today")
    page.evaluate("recogniser.hear('today', 'it rained')")
    expect(composer).to_have_value("Dear diary, today it rained")
    assert barriers(page) == []
    composer.press("Enter")
    expect(page.locator("article.is-user")).to_contain_text("Dear diary, today it rained")
    expect(page.get_by_role("button", name="Dictate")).to_be_visible()
    assert page.evaluate("recogniser.isOn") is False
    page.evaluate("recogniser.hear('too late')")
    expect(composer).to_have_value("")


def test_a_browser_without_speech_shows_no_speech_buttons(page: Page) -> None:
    page.add_init_script(SILENT)
    page.reload()
    answer = ask(page, "Quiet, please")
    answer.hover()
    expect(answer.get_by_role("button", name="Copy")).to_be_visible()
    expect(page.get_by_role("button", name="Read aloud")).to_have_count(0)
    expect(page.get_by_role("button", name="Dictate")).to_have_count(0)
