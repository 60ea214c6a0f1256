"""The panel in a real browser, under its content security policy: an operator's first day, forms and accessibility."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from agents.presets.yaml_text import read_yaml
from tests.admin.test_every_page import pages
from tests.fixtures.browser import open_tab
from tests.frontend.chatting import AXE, SIZES, ask, barriers, overflows, too_small, touch_screen
from tests.servers.behaviour import says
from tests.servers.openai_server import ModelServer
from tests.servers.people import ADMIN
from tests.servers.service import SETUP_LINK, Service

PASSWORD = "a long enough passphrase"
NO_PAGES = re.compile(r"[<(]|^admin/(logout|login|password_change|jsi18n|autocomplete)")

pytestmark = pytest.mark.slow


def set_up(page: Page, link: str) -> None:
    page.goto(link)
    page.get_by_label("Email").fill("root@example.com")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_label("How long are chats kept?").select_option("90")
    page.get_by_role("button", name="Create the admin account").click()
    expect(page.locator("#composer")).to_be_visible()


def connect(page: Page, address: str) -> None:
    """Connect a model, starting from the card in the empty chat."""
    page.get_by_role("link", name="Connect a model").first.click()
    page.get_by_role("link", name=re.compile("vLLM")).click()
    page.get_by_label("Address").fill(address)
    page.get_by_role("button", name="List its models").click()
    expect(page.get_by_label("Model", exact=True)).to_contain_text("test-model (16,384 tokens)")
    page.get_by_role("button", name="Test and connect").click()
    expect(page.get_by_role("status")).to_contain_text("a window of 16,384 tokens")


def test_the_first_day_of_an_operator(page: Page, service: Service) -> None:
    with ModelServer(
        models=[{"id": "test-model", "max_model_len": 16_384}], default=says("An answer.")
    ) as model:
        set_up(page, service.wait_for_output(SETUP_LINK)[0])
        expect(page.locator(".fine-print")).to_contain_text("90 days")
        connect(page, model.base_url)
        page.get_by_role("link", name="Open the chat").click()
        expect(ask(page, "Is anybody there?")).to_contain_text("An answer.")

    page.goto("/admin/chatapp/budget/add/")
    page.get_by_label("For:", exact=True).select_option("every_user")
    page.get_by_label("Per:", exact=True).select_option("day")
    page.get_by_label("Tokens").fill("100000")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("#result_list")).to_contain_text("each user")

    page.goto("/admin/chatapp/user/add/")
    page.locator("[name=email]").fill("erin@example.com")
    page.locator("[name=password1]").fill(PASSWORD)
    page.locator("[name=password2]").fill(PASSWORD)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".messagelist")).to_contain_text("erin@example.com")

    page.goto("/admin/settings/")
    page.get_by_label("SIGNUP").select_option("invite")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".messagelist")).to_contain_text("Changed: SIGNUP")

    page.goto("/admin/")
    expect(page.locator("#checks .findings")).to_contain_text("by invitation")
    expect(page.locator(".overview .bar").last).not_to_have_attribute("height", "0.00")
    page.goto("/admin/chatapp/usage/report/?group_by=user")
    expect(page.get_by_role("row", name=re.compile("root@example.com"))).to_be_visible()

    page.goto("/admin/chatapp/auditevent/")
    for done in ("test-model", "erin@example.com", "SIGNUP", "RETENTION_DAYS", "budget"):
        expect(page.locator("#result_list")).to_contain_text(done)
    expect(page.locator(".breadcrumbs")).to_have_text(re.compile(r"^\s*Home\s+›\s+Audit events\s*$"))
    subjects = page.locator("#nav-sidebar caption")
    expect(subjects).to_have_text(["Models and agents", "People", "Activity"])
    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_url(re.compile("/accounts/login/"))


def test_a_failed_test_is_reported_and_connects_no_model(panel: Page) -> None:
    panel.goto("/admin/chatapp/modelconfig/connect/?preset=other")
    panel.get_by_label("Address").fill("http://127.0.0.1:9/v1")
    panel.get_by_label("Model", exact=True).fill("m")
    panel.get_by_role("button", name="Test and connect").press("Enter")
    expect(panel.get_by_role("alert")).to_contain_text("It was not connected.")
    panel.goto("/admin/")
    expect(panel.get_by_role("heading", name="No model is connected yet")).to_be_visible()
    expect(panel.get_by_role("heading", name="Tokens by day")).to_be_visible()
    expect(panel.locator(".overview svg")).to_have_count(0)


def test_forms_write_policies_and_hooks_into_the_yaml_beside_them(panel: Page) -> None:
    panel.goto("/admin/chatapp/agent/add/")
    panel.locator("#id_name").fill("Reviewer")
    policy, hooks = panel.locator("#id_context_policy"), panel.locator("#id_hooks")
    summaries = panel.get_by_text("Form and examples")
    expect(summaries).to_have_count(2)
    for summary in summaries.all():
        summary.click()
    panel.get_by_role("button", name="Keep more of the chat").click()
    expect(panel.get_by_label("keep_recent", exact=True)).to_have_value("30")
    panel.get_by_label("keep_recent", exact=True).fill("25")
    panel.get_by_label("strategy", exact=True).select_option("turns")
    expect(policy).to_have_value("recall_tokens: 1000\nkeep_recent: 25\nstrategy: turns")
    panel.get_by_role("button", name="Compact early").click()
    panel.get_by_label("id", exact=True).fill("polite")
    panel.get_by_label("condition", exact=True).select_option("turn_count")
    panel.get_by_label("threshold", exact=True).fill("3")
    panel.get_by_label("action", exact=True).select_option("inject_message")
    panel.get_by_label("text", exact=True).fill('Say: "please".')
    panel.get_by_role("button", name="Write it as YAML").click()
    expect(hooks).to_have_value(re.compile(r"^- id: early\n[^-]*\n- id: polite\n  on: turn_end\n"))
    panel.get_by_role("button", name="Save and continue editing").click()
    expect(panel.locator(".messagelist")).to_contain_text("Reviewer")
    expect(policy).to_have_value(re.compile("keep_recent: 25"))
    expect(hooks).to_have_value(re.compile('Say: .?"please'))


def test_the_form_of_a_hook_shows_and_changes_its_yaml(panel: Page) -> None:
    panel.goto("/admin/chatapp/deploymenthook/add/")
    yaml = panel.get_by_label("Declaration")
    panel.get_by_role("button", name="Compact early").click()
    expect(panel.get_by_label("threshold", exact=True)).to_have_value("0.5")
    panel.get_by_label("threshold", exact=True).fill("0.6")
    expect(yaml).to_have_value(
        re.compile("threshold: 0.6}\naction: {type: compact_context, keep_recent: 10}$")
    )
    panel.get_by_role("button", name="Save and continue editing").click()
    expect(yaml).to_have_value(re.compile("  threshold: 0.6\n"))
    expect(panel.get_by_label("on", exact=True)).to_have_value("turn_end")
    expect(panel.get_by_label("condition", exact=True)).to_have_value("context_pressure")
    panel.get_by_label("action", exact=True).select_option("log")
    panel.get_by_label("text", exact=True).fill('It\'s "full": {pressure}')
    panel.get_by_role("button", name="Save and continue editing").click()
    expect(panel.get_by_label("text", exact=True)).to_have_value('It\'s "full": {pressure}')
    yaml.fill("id: early\naction:\n  type: log\n  message: |-\n    two\n    lines")
    yaml.blur()
    expect(panel.get_by_label("text", exact=True)).to_be_disabled()


OF_ANOTHER_TYPE = ("404", "yes", "no", "On", "true", "null", "~", "-", "1e3", "0x1f", ".inf", "2026-11-21")
"""Texts that YAML reads as another type unless they are quoted."""


def test_the_form_of_a_hook_writes_texts_as_texts_and_numbers_as_numbers(panel: Page) -> None:
    panel.goto("/admin/chatapp/deploymenthook/add/")
    yaml = panel.get_by_label("Declaration")
    yaml.fill(
        "id: early\non: turn_end\ncondition:\n  type: turn_count\n  count: 5 # turns\n"
        "action:\n  type: module_action\n  action: look_up\n  module: '404'\n"
    )
    yaml.blur()
    for text in OF_ANOTHER_TYPE:
        panel.get_by_label("id", exact=True).fill(text)
        expect(yaml).to_have_value(re.compile(f"^id: {re.escape(json.dumps(text))}\n"))
    panel.get_by_label("cooldown", exact=True).fill("60")
    written = read_yaml(yaml.input_value())
    assert written["condition"] == {"type": "turn_count", "count": 5}
    assert written["action"] == {"type": "module_action", "action": "look_up", "module": "404"}
    assert written["cooldown"] == 60

    panel.get_by_role("button", name="Compact early").click()
    panel.get_by_label("id", exact=True).fill("404")
    expect(yaml).to_have_value(re.compile("action: {type: compact_context, keep_recent: 10}$"))
    panel.get_by_label("action", exact=True).select_option("log")
    panel.get_by_label("text", exact=True).fill("yes")
    panel.get_by_role("button", name="Save and continue editing").click()
    expect(panel.locator(".messagelist")).to_contain_text("404")
    expect(panel.get_by_label("id", exact=True)).to_have_value("404")
    expect(panel.get_by_label("text", exact=True)).to_have_value("yes")


@pytest.mark.parametrize(
    "nested",
    [
        "  params:\n    a: 1",
        "  params: {a: 1}",
        "  params: [1, 2]",
    ],
)
def test_a_hook_with_a_nested_value_is_not_edited_in_its_form(panel: Page, nested: str) -> None:
    panel.goto("/admin/chatapp/deploymenthook/add/")
    yaml = panel.get_by_label("Declaration")
    yaml.fill(f"id: early\naction:\n  type: module_action\n{nested}\n  action: look_up")
    yaml.blur()
    expect(panel.get_by_label("text", exact=True)).to_be_disabled()


def test_the_form_of_a_policy_replaces_all_lines_of_a_field(panel: Page) -> None:
    panel.goto("/admin/chatapp/agent/add/")
    policy = panel.locator("#id_context_policy")
    panel.get_by_text("Form and examples").first.click()
    for value in (
        "|-\n  one\n\n  max_turns: 2",
        "\n  inner:\n    max_turns: 2",
        "\n- 1\n- 2",
        "{\n  a: 1\n}",
    ):
        policy.fill(
            f"summary_template: |-\n  Kept.\n\n  All of it.\nsummary_model: {value}\n\n# Few.\nkeep_recent: 5"
        )
        policy.blur()
        panel.get_by_label("summary_model", exact=True).fill("404")
        kept = "summary_template: |-\n  Kept.\n\n  All of it.\n\n# Few.\nkeep_recent: 5"
        expect(policy).to_have_value(f'{kept}\nsummary_model: "404"')
        panel.get_by_label("summary_model", exact=True).fill("")
        expect(policy).to_have_value(kept)
    panel.get_by_label("keep_recent", exact=True).fill("7")
    panel.get_by_label("auto_compact", exact=True).select_option("false")
    expect(policy).to_have_value(re.compile("keep_recent: 7\nauto_compact: false$"))


@pytest.fixture(scope="module")
def panel_service(start_shared: Callable[..., Service]) -> Service:
    return start_shared()


@pytest.fixture
def panel(browser: Browser, panel_service: Service) -> Iterator[Page]:
    with open_tab(browser, panel_service.url) as page:
        cookies = panel_service.cookies[ADMIN]
        page.context.add_cookies(
            [{"name": n, "value": v, "url": panel_service.url} for n, v in cookies.items()]
        )
        yield page


TOUCHED = [
    f"/admin/{address}"
    for address in (
        "",
        "chatapp/modelconfig/",
        "chatapp/modelconfig/add/",
        "chatapp/agent/add/",
        "chatapp/deploymenthook/add/",
        "chatapp/usage/report/",
        "chatapp/user/",
        "chatapp/run/add/",
        "checks/",
        "settings/",
    )
]
"""One page of each kind: home, lists, forms, own pages, a refusal. All other pages have the same colours."""
SHOWN = [f"/{route}" for route in pages() if route.startswith("admin/") and not NO_PAGES.search(route)]


def test_no_page_of_the_panel_violates_accessibility_rules(panel: Page) -> None:
    found = {}
    assert set(TOUCHED) <= set(SHOWN)
    panel.add_init_script(path=AXE)  # Sending axe to each page would take as long as running it.
    for address in [*SHOWN, "/admin/chatapp/modelconfig/connect/?preset=azure"]:
        panel.goto(address)
        wrong = barriers(panel)
        if address in TOUCHED:
            panel.evaluate("document.documentElement.dataset.theme = 'dark'")
            wrong += barriers(panel, "color-contrast")
        panel.set_viewport_size({"width": 390, "height": 844})
        wrong += ["wider than a phone"] if overflows(panel) else []
        panel.set_viewport_size({"width": 1440, "height": 900})
        if wrong:
            found[address] = wrong
    assert found == {}, "\n".join(f"{address}: {wrong}" for address, wrong in found.items())


OFF_CENTRE = """all => all.filter((one) => {
  const text = document.createRange();
  text.selectNodeContents(one);
  const [of_text, box] = [text.getBoundingClientRect(), one.getBoundingClientRect()];
  return Math.abs((of_text.top + of_text.bottom) - (box.top + box.bottom)) > 4;
}).map((one) => one.textContent)"""
"""Return the texts that are not vertically centred in their controls."""


BESIDE = """all => all.filter((one) => one.labels.length && one.checkVisibility()).filter((one) => {
  const words = document.createRange();
  words.selectNodeContents(one.labels[0]);
  if (one.labels[0].contains(one)) words.setStartAfter(one);
  const [text, box] = [words.getBoundingClientRect(), one.getBoundingClientRect()];
  return Math.abs((text.top + text.bottom) - (box.top + box.bottom)) > 4;
}).map((one) => one.labels[0].textContent.trim())"""
"""Return the labels that are higher or lower than their checkboxes."""


def test_controls_of_the_panel_are_large_enough_to_touch_and_fit_a_tablet(
    browser: Browser, panel_service: Service
) -> None:
    (phone_width, phone_height), (width, height) = SIZES["phone"], SIZES["tablet"]
    context = touch_screen(browser, panel_service.url)
    cookies = panel_service.cookies[ADMIN]
    context.add_cookies([{"name": n, "value": v, "url": panel_service.url} for n, v in cookies.items()])
    tab = context.new_page()
    found = {}
    for address in TOUCHED:
        tab.set_viewport_size({"width": width, "height": height})
        tab.goto(address)
        # Compare with the width that was set, because `innerWidth` grows with content that is too wide.
        is_wide = tab.evaluate("document.documentElement.scrollWidth") > width
        tab.set_viewport_size({"width": phone_width, "height": phone_height})
        wrong = too_small(tab) + tab.locator("#content-main [type=checkbox]").evaluate_all(BESIDE)
        wrong += ["wider than a tablet"] if is_wide else []
        if wrong:
            found[address] = wrong
    off_centre = tab.locator("#user-tools :is(a, button)").evaluate_all(OFF_CENTRE)
    context.close()
    assert off_centre == []
    assert found == {}, "\n".join(f"{address}: {wrong}" for address, wrong in found.items())
