"""What every browser test of the page does: sign in, ask, look for barriers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.environment import ROOT
from tests.servers.people import PASSWORD

AXE = ROOT / "static" / "node_modules" / "axe-core" / "axe.min.js"
SETTLES_WITHIN_S = 10
"""What fades, slides or follows the size of the window comes to rest by then, on a busy machine, too."""
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
"""Return what a finger may miss, with its size. A link in a line of text is left out; what another one has around it
belongs to it."""
TWICE = "button => { button.click(); button.click(); }"
"""A double click, both halves of which find the button as it was."""
SIZES = {"desktop": (1440, 900), "tablet": (820, 1180), "phone": (390, 844)}
LOOKS: tuple[tuple[str, Literal["light", "dark"]], ...] = (
    ("desktop", "light"),
    ("desktop", "dark"),
    ("tablet", "light"),
    ("phone", "dark"),
)
"""Every size, and both themes of each layout: a tablet has that of a phone. A theme decides on colours alone."""


def sign_in(page: Page, email: str, address: str = "/") -> None:
    """On the way to `address`, where they arrive."""
    page.goto(address)
    page.locator("[name=login]").fill(email)
    page.locator("[name=password]").fill(PASSWORD)
    page.locator("[name=password]").press("Enter")
    expect(page.locator("#composer")).to_be_visible()
    expect(page).to_have_url(address)


def reload(page: Page) -> None:
    """Load the page anew, until its message box has taken the focus: it would take it away from what comes next."""
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
    """Give the page one size and theme after the other; yield what the two are called."""
    for size, scheme in LOOKS:
        if size in sizes:
            width, height = SIZES[size]
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": height})
            yield f"{size} {scheme}"


def barriers(page: Page, *rules: str) -> list[Any]:
    """Return what axe-core finds wrong with the page and stays wrong, as [rule, places]: with rules, by these alone."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text() + ";0")
    began = time.monotonic()
    while (found := barriers_now(page, rules)) and time.monotonic() - began < SETTLES_WITHIN_S:
        pass
    return found


def barriers_now(page: Page, rules: Sequence[str]) -> list[Any]:
    found: list[Any] = page.evaluate(
        # Colours that are still fading to those of another theme belong to neither. Without `preload`, for which axe
        # would add style elements against the policy.
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
    """Return whether the page is wider than its window, and stays so."""
    began = time.monotonic()
    wide = f"async () => {{ await {DRAWN}; return document.documentElement.scrollWidth > innerWidth; }}"
    while (is_wide := bool(page.evaluate(wide))) and time.monotonic() - began < SETTLES_WITHIN_S:
        pass
    return is_wide


def too_low(page: Page, rows: str) -> list[str]:
    """Return the texts of the rows that are higher than their place, so that they lie on the next one."""
    found: list[str] = page.locator(rows).evaluate_all(
        "rows => rows.filter((row) => row.scrollHeight > row.clientHeight + 2).map((row) => row.textContent)"
    )
    return found


def touch_screen(browser: Browser, url: str) -> BrowserContext:
    """Return a phone, to be closed by the caller."""
    width, height = SIZES["phone"]
    return browser.new_context(
        base_url=url, viewport={"width": width, "height": height}, has_touch=True, is_mobile=True
    )


def too_small(page: Page) -> list[Any]:
    found: list[Any] = page.evaluate(SMALL)
    return found
