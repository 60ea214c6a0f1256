"""What every browser test of the page does: sign in, ask, look for barriers."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.environment import ROOT
from tests.servers.people import PASSWORD

AXE = ROOT / "static" / "node_modules" / "axe-core" / "axe.min.js"
SIZES = {"desktop": (1440, 900), "tablet": (820, 1180), "phone": (390, 844)}


def sign_in(page: Page, email: str, address: str = "/") -> None:
    """On the way to `address`, where they arrive."""
    page.goto(address)
    page.locator("[name=login]").fill(email)
    page.locator("[name=password]").fill(PASSWORD)
    page.locator("[name=password]").press("Enter")
    expect(page.locator("#composer")).to_be_visible()
    expect(page).to_have_url(address)


def say(page: Page, text: str) -> None:
    page.locator("#composer").fill(text)
    page.get_by_role("button", name="Send").click()


def ask(page: Page, question: str) -> Locator:
    """The answer, once it is complete."""
    answers = page.locator("article.is-assistant")
    before = answers.count()
    page.locator("#composer").fill(question)
    page.locator("#composer").press("Enter")
    expect(answers).to_have_count(before + 1)
    expect(answers.last).to_have_attribute("data-status", "complete")
    return answers.last


def barriers(page: Page, *rules: str) -> list[Any]:
    """Return what axe-core finds wrong with the page as it is now, as [rule, places]: with rules, by these alone."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text() + ";0")
    found: list[Any] = page.evaluate(
        # Colours that are still fading to those of another theme belong to neither. Without `preload`, for which axe
        # would add style elements against the policy.
        """async rules => {
            for (const animation of document.getAnimations())
                if (Number.isFinite(animation.effect.getComputedTiming().endTime)) animation.finish();
            const found = await axe.run(document, {preload: false, ...(rules.length ? {runOnly: rules} : {})});
            return found.violations.map(v => [v.id, v.nodes.slice(0, 3).map(n => n.html.slice(0, 150))]);
        }""",
        list(rules),
    )
    return found


def overflows(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth > innerWidth"))
