"""Steps shared by the browser tests of the page: sign in, ask, check sizes and accessibility."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.environment import ROOT
from tests.servers.people import PASSWORD

AXE = ROOT / "static" / "node_modules" / "axe-core" / "axe.min.js"
SETTLES_WITHIN_S = 10
"""Transitions and layout changes end within this time, even on a busy machine."""
DRAWN = "new Promise(done => { requestAnimationFrame(() => setTimeout(done)); setTimeout(done, 1000); })"
SMALL = """() => [...document.querySelectorAll("button, a, input, select, textarea, summary, [role=button]")]
  .filter((one) => one.checkVisibility({visibilityProperty: true, opacityProperty: true}) && !one.closest("[inert]"))
  .filter((one) => !one.closest(".prose, .visually-hidden, .skip-link, .skip-to-content-link") && one.type !== "file")
  .filter((one) => one.tagName !== "A" || getComputedStyle(one).display !== "inline")
  .map((one) => {
    const box = (one.closest("label") ?? one).getBoundingClientRect();
    const around = getComputedStyle(one, "::after");
    const own = getComputedStyle(one);
    const margin = one.type === "checkbox" || one.type === "radio" ? 2 * parseFloat(own.marginLeft) : 0;
    const [width, height] = around.position === "absolute" ? [parseFloat(around.width), parseFloat(around.height)] : [0, 0];
    const name = one.getAttribute("aria-label") || one.textContent.trim() || one.name;
    return [name, Math.max(box.width + margin, width), Math.max(box.height + margin, height)];
  })
  .filter(([, width, height]) => width && height && (width < 43.5 || height < 43.5))
  .map(([name, width, height]) => `${name} ${Math.round(width)}x${Math.round(height)}`)"""
"""Return the controls that are too small to touch, with their sizes. Links within text are left out. A label around a
control and an enlarged `::after` area count as part of the control."""
TWICE = "button => { button.click(); button.click(); }"
"""A double click whose second half comes before the page can update the button."""
SIZES = {"desktop": (1440, 900), "tablet": (820, 1180), "phone": (390, 844)}
LOOKS: tuple[tuple[str, Literal["light", "dark"]], ...] = (
    ("desktop", "light"),
    ("desktop", "dark"),
    ("tablet", "light"),
    ("phone", "dark"),
)
"""All sizes, and both themes of each layout. A tablet has the layout of a phone, and a theme changes only colours."""


def sign_in(page: Page, email: str, address: str = "/") -> None:
    """Sign in on the way to `address`, and check that the page arrives there."""
    page.goto(address)
    page.locator("[name=login]").fill(email)
    page.locator("[name=password]").fill(PASSWORD)
    page.locator("[name=password]").press("Enter")
    expect(page.locator("#composer")).to_be_visible()
    expect(page).to_have_url(address)


def reload(page: Page) -> None:
    """Reload the page and wait until its message box has the focus, or it would take the focus from the next step."""
    page.reload()
    expect(page.locator("#composer")).to_be_focused()


def say(page: Page, text: str) -> None:
    page.locator("#composer").fill(text)
    page.get_by_role("button", name="Send").click()


def ask(page: Page, question: str) -> Locator:
    """Ask, and return the answer once it is complete."""
    answers = page.locator("article.is-assistant")
    before = answers.count()
    page.locator("#composer").fill(question)
    page.locator("#composer").press("Enter")
    expect(answers).to_have_count(before + 1)
    expect(answers.last).to_have_attribute("data-status", "complete")
    return answers.last


def looks(page: Page, sizes: Sequence[str] = tuple(SIZES)) -> Iterator[str]:
    """Set one size and theme after the other on the page; yield their names."""
    for size, scheme in LOOKS:
        if size in sizes:
            width, height = SIZES[size]
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": height})
            yield f"{size} {scheme}"


def barriers(page: Page, *rules: str) -> list[Any]:
    """Return the lasting accessibility violations that axe-core finds, as [rule, elements]; with `rules`, only of
    these."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text() + ";0")
    began = time.monotonic()
    while (found := barriers_now(page, rules)) and time.monotonic() - began < SETTLES_WITHIN_S:
        pass
    return found


def barriers_now(page: Page, rules: Sequence[str]) -> list[Any]:
    found: list[Any] = page.evaluate(
        # End the animations, because colours that fade between two themes belong to neither. With `preload`, axe would
        # add style elements, which the policy forbids.
        f"""async rules => {{
            await {DRAWN};
            for (const animation of document.getAnimations())
                if (Number.isFinite(animation.effect.getComputedTiming().endTime)) animation.finish();
            const found = await axe.run(document, {{preload: false, resultTypes: ['violations'], selectors: false, ...(rules.length ? {{runOnly: rules}} : {{}})}});
            return found.violations.map(v => [v.id, v.nodes.slice(0, 3).map(n => n.html.slice(0, 150))]);
        }}""",
        list(rules),
    )
    return found


def overflows(page: Page) -> bool:
    """Return whether the page remains wider than its window."""
    began = time.monotonic()
    wide = f"async () => {{ await {DRAWN}; return document.documentElement.scrollWidth > innerWidth; }}"
    while (is_wide := bool(page.evaluate(wide))) and time.monotonic() - began < SETTLES_WITHIN_S:
        pass
    return is_wide


def too_low(page: Page, rows: str) -> list[str]:
    """Return the texts of the rows that are higher than their space and overlap the next row."""
    found: list[str] = page.locator(rows).evaluate_all(
        "rows => rows.filter((row) => row.scrollHeight > row.clientHeight + 2).map((row) => row.textContent)"
    )
    return found


def touch_screen(browser: Browser, url: str) -> BrowserContext:
    """Return the browser context of a phone. The caller must close it."""
    width, height = SIZES["phone"]
    return browser.new_context(
        base_url=url, viewport={"width": width, "height": height}, has_touch=True, is_mobile=True
    )


def too_small(page: Page) -> list[Any]:
    found: list[Any] = page.evaluate(SMALL)
    return found
