"""Answers that are slow to render or nested too deeply stay readable, and so does their conversation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.frontend.chatting import ask
from tests.servers.behaviour import says
from tests.servers.openai_server import ModelServer
from tests.servers.waiting import wait_for

FIRST, LAST = "It begins here.", "It ends here."
DEEP_LIST = "\n".join("  " * depth + f"- {depth}" for depth in range(900))
HOSTILE = {
    "quotes": ">" * 3_000,
    "quotes with spaces": "> " * 3_000,
    "nested quotes and tables": "\n".join(
        "> " * depth + "|a|b|\n" + "> " * depth + "|-|-|" for depth in range(60)
    ),
    "brackets": "[" * 3_000 + "(" * 3_000,
    "stars": "*a " * 3_000 + "a* " * 3_000,
    "underscores": "_a" * 3_000 + "_" * 3_000,
    "backticks": "`" * 3_000 + " ``` " + "`a " * 3_000,
    "images in images": "![" * 3_000 + "](x)" * 3_000,
    "items in items": "- " * 3_000,
    "a deep list": DEEP_LIST,
    "a deep formula": "$$\n" + "\\frac{" * 2_000 + "1" + "}{2}" * 2_000 + "\n$$",
    "many formulas": "$a^2$ " * 3_000,
    "macros": "$$\\def\\a{\\a\\a}\\a \\rule{9999em}{9999em}$$",
    "a paragraph of 800 kB": "word " * 160_000,
    "a line of 1 MB": "x" * 990_000,
    "10,000 links": "[link](https://example.com/a) " * 10_000,
    "a table of 5,000 columns": "|a" * 5_000 + "|\n" + "|-" * 5_000 + "|\n" + "|b" * 5_000 + "|",
    "a table of 20,000 rows": "|a|b|\n|-|-|\n" + "|c|d|\n" * 20_000,
    "code of 1 MB": "```js\n" + "let a = 'b'; // c\n" * 50_000 + "```",
    "code in one line": "```json\n" + "[1," * 300_000 + "\n```",
    "open fence": "```js\nlet a;\n\n" * 2_001,
    "open formulas": "$$ a\n\n" * 20_000,
    "tag soup": "<div><b onclick=x><p></i></table>" * 5_000 + "<!-- " * 3_000,
    "40,000 paragraphs": "a *b*\n\n" * 40_000,
}
MOST_BLOCKS = 400
DEEPEST = 120
DEPTH = """() => { let most = 0; for (let e of document.querySelectorAll(".prose *")) {
  let depth = 0; for (; e; e = e.parentElement) depth += 1; most = Math.max(most, depth); } return most; }"""
IN_VIEW = (
    "end => { const box = end.getBoundingClientRect(); return box.bottom > 0 && box.top < innerHeight; }"
)
BREAK_ON_POISON = """
const { set, ...rest } = Object.getOwnPropertyDescriptor(Element.prototype, "innerHTML");
Object.defineProperty(Element.prototype, "innerHTML", {
  ...rest, set(value) { if (String(value).includes("poison")) throw new Error("broken"); set.call(this, value); } });
"""
# Count the changes in blocks and pieces of code that another one already followed.
COUNT_REDRAWS = """
window.redraws = 0;
const finished = new WeakSet();
new MutationObserver((changes) => {
  for (const { target } of changes) {
    const element = target instanceof Element ? target : target.parentElement;
    for (const holder of [element?.closest(".section > .block"), element?.closest(".code-piece")])
      if (holder && finished.has(holder)) window.redraws += 1;
  }
  for (const one of document.querySelectorAll(".section > .block, .code-piece"))
    if (one.nextElementSibling) finished.add(one);
}).observe(document, { subtree: true, childList: true, characterData: true });
"""
GROWING = "\n\n".join(
    f"Paragraph {n} with *stress*, `code` and a [link](https://example.com/{n})." for n in range(20)
)
TABLE = "|n|square|\n|-|-|\n" + "".join(f"|{n}|{n * n}|\n" for n in range(30))
LONG_CODE = "```\n" + "\n".join(f"line {n} of the code" for n in range(640)) + "\n```\n\nThe end."


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer(default=says(f"{GROWING}\n\n{TABLE}\n{LONG_CODE}", rate=2_000.0)) as server:
        yield server


BEFORE = "Before it."


def keep(alice: httpx2.Client, hostile: str, role: str = "assistant", before: str = BEFORE) -> str:
    """Return the address of a conversation with one hostile message and a harmless last one."""
    text = f"{FIRST}\n\n{hostile}\n\n{LAST}"
    said = [("user", before), (role, text), ("user", "After it"), ("assistant", "All is *well*.")]
    messages = [{"role": role, "content": content} for role, content in said]
    answer = alice.post("/api/v1/conversations/import", json={"title": "Hostile", "messages": messages})
    return f"/c/{answer.raise_for_status().json()['id']}"


def hostile_message(page: Page, before: str = BEFORE) -> Locator:
    """Return the hostile message once the page shows the other ones."""
    expect(page.locator("article").first).to_contain_text(before)
    expect(page.locator("article").last).to_have_text("All is well.", use_inner_text=True)
    expect(page.locator("article")).to_have_count(4)
    return page.locator("article").nth(1)


def drawn_to_the_end(page: Page, before: str = BEFORE) -> Locator:
    """Scroll to the end of the hostile message, and return it once its end is drawn."""
    message = hostile_message(page, before)
    expect(message).to_contain_text(FIRST)
    expect(message).to_contain_text(LAST)
    last = message.get_by_text(LAST).last

    def is_in_view() -> bool:
        """Scroll to the end again, because sections drawn on the way may push it out; return whether it is in view."""
        last.scroll_into_view_if_needed()
        return bool(last.evaluate(IN_VIEW))

    wait_for(is_in_view, what="the end is in view")
    expect(message.locator(".section").last).not_to_have_class("section is-far")
    return message


def test_no_answer_makes_its_conversation_unreadable(page: Page, alice: httpx2.Client) -> None:
    kept = {name: keep(alice, hostile, before=f"Before {name}.") for name, hostile in HOSTILE.items()}
    page.goto("/")  # Load the page once, because readers switch conversations within it.
    for name, address in kept.items():
        page.locator(f'.row-link[href="{address}"]').click()
        message = drawn_to_the_end(page, f"Before {name}.")
        blocks = message.locator(".block, .code-piece [class^=hljs]:first-child").count()
        assert blocks <= MOST_BLOCKS, f"{name}: {blocks} blocks were drawn"
        depth = page.evaluate(DEPTH)
        assert depth <= DEEPEST, f"{name}: {depth} elements in each other"
        assert message.locator(".as-written").count() == 0, name


def test_only_the_nearby_part_of_a_long_code_line_is_highlighted(page: Page, alice: httpx2.Client) -> None:
    page.goto(keep(alice, "```json\n[" + '{"some": "words", "of": [1, null]}, ' * 25_000 + "]\n```"))
    message = hostile_message(page)
    wraps = message.get_by_role("button", name="Wrap lines")
    expect(wraps).to_have_attribute("aria-pressed", "true")
    coloured = message.locator(".code-piece:has([class^=hljs])")
    wraps.scroll_into_view_if_needed()
    expect(coloured.first).to_be_visible()
    assert message.locator(".code-piece").count() > 100
    assert coloured.count() < 20
    wraps.click()
    expect(wraps).to_have_attribute("aria-pressed", "false")
    # Without wrapping, each piece is one line high, so many pieces move near at once.
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert coloured.count() < 20


def test_a_far_part_of_a_long_answer_is_drawn_when_scrolled_into_view(
    page: Page, alice: httpx2.Client
) -> None:
    page.goto(keep(alice, "a *b*\n\n" * 40_000))
    message = drawn_to_the_end(page)
    far = message.locator(".section").first
    expect(far).to_have_class("section is-far")
    far.scroll_into_view_if_needed()
    expect(far).to_have_class("section")
    expect(far.locator(".block").first).to_have_text(FIRST)


def test_a_long_question_shows_its_beginning_and_all_of_it_on_request(
    page: Page, alice: httpx2.Client
) -> None:
    page.goto(keep(alice, "word " * 20_000, role="user"))
    message = hostile_message(page)
    assert len(message.locator(".bubble").inner_text()) < 10_000
    message.get_by_role("button", name="Show more").click()
    expect(message.locator(".bubble")).to_contain_text(LAST)


def test_a_block_that_cannot_be_rendered_is_shown_as_source(page: Page, alice: httpx2.Client) -> None:
    page.add_init_script(BREAK_ON_POISON)
    page.goto(keep(alice, "This *poison* breaks."))
    message = hostile_message(page)
    expect(message.locator(".as-written pre")).to_have_text("This *poison* breaks.\n\n")
    expect(message.locator(".block").first).to_have_text(FIRST)
    expect(message.locator(".block").last).to_have_text(LAST)


def test_a_message_that_cannot_be_rendered_is_shown_as_source(page: Page, alice: httpx2.Client) -> None:
    def spoil(route: Route) -> None:
        answer = route.fetch()
        body: dict[str, Any] = answer.json()
        body["items"][1]["recalled"] = [None]
        route.fulfill(response=answer, json=body)

    page.route("**/messages?*", spoil)
    page.route("**/messages", spoil)
    page.goto(keep(alice, "Some *text*."))
    message = hostile_message(page)
    expect(message.locator(".as-written pre")).to_have_text(f"{FIRST}\n\nSome *text*.\n\n{LAST}")


def test_finished_blocks_of_a_growing_answer_are_not_drawn_again(page: Page) -> None:
    page.evaluate(COUNT_REDRAWS)
    answer = ask(page, "Grow")
    expect(answer).to_contain_text("The end.")
    assert page.evaluate("window.redraws") == 0
    assert answer.locator(".code-piece").count() > 3
    expect(answer.locator("table tr")).to_have_count(31)
