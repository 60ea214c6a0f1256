"""Every sentence of the page has its Chinese, and the catalogue has no others."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from babel.messages.pofile import read_po

from tests.environment import ROOT
from tests.frontend.test_modules import NODE

PAGE = ROOT / "static" / "app" / "js"
CATALOGUE = PAGE / "i18n" / "zh.js"
TEXT = r'"(?:[^"\\]|\\.)*"'
CALL = re.compile(rf"(?<![\w.])t\(\s*(?:({TEXT})|.)")
PLURAL = re.compile(rf"(?<![\w.])plural\(\s*[^\"]*?({TEXT}),\s*({TEXT})")
ANY_PLURAL = re.compile(r"(?<![\w.])plural\(")
PO = ROOT / "templates" / "locale" / "zh_Hans" / "LC_MESSAGES" / "django.po"
TRANSLATED = re.compile(r"""\{% trans(?:late)? (?:"([^"]+)"|'([^']+)') %\}""")
BLOCKS = re.compile(r"\{% blocktrans(?:late)? %\}(.*?)\{% endblocktrans(?:late)? %\}")
LABELS = re.compile(r'\b(?:_|gettext)\("([^"]+)"\)')
ERRORS = {"InvalidInput", "Unauthorized", "Forbidden", "NotFound", "Conflict", "TooLarge", "RateLimited"}
FOR_PROGRAMS = (
    "agent_presets/actions", "agent_presets/hook_actions", "features/openai_api", "features/mcp_server",
    "features/webhooks", "operations/serving", "runs/api", "runs/hook_tools",
)  # fmt: skip
"""What below `chatapp` answers requests that the page does not make."""
NAMES = re.compile(r"\{(\w+)\}")


def place_holders(node: ast.expr) -> str:
    """The sentence with `{}` where it is filled in; empty where it is made elsewhere."""
    if isinstance(node, ast.JoinedStr):
        return "".join(
            place_holders(part) if isinstance(part, ast.Constant) else "{}" for part in node.values
        )
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def sentences_of_server() -> tuple[set[str], set[str]]:
    """Those that an error of the page's API is raised with, and every text of the server."""
    raised, texts = set(), set()
    for file in [*(ROOT / "chatapp").rglob("*.py"), *(ROOT / "agents").rglob("*.py")]:
        is_for_programs = str(file.relative_to(ROOT)).removeprefix("chatapp/").startswith(FOR_PROGRAMS)
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Constant | ast.JoinedStr):
                texts.add(place_holders(node))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ERRORS:
                raised |= {place_holders(given) for given in node.args[:1] if not is_for_programs}
    # A name of a field before it is for programs, too.
    return {text for text in raised if re.match(r"[A-Z]|\{\} [a-z]", text)}, texts


def sources() -> list[Path]:
    own = {CATALOGUE, CATALOGUE.with_name("zh_server.js"), PAGE / "i18n.js"}
    return [file for file in sorted(PAGE.rglob("*.js")) if file not in own]


def catalogue(name: str) -> dict[str, Any]:
    script = f"import({json.dumps(CATALOGUE.as_uri())}).then((m) => console.log(JSON.stringify(m.{name})))"
    run = subprocess.run(
        [sys.executable, "-c", NODE, "-e", script], capture_output=True, text=True, timeout=60, check=True
    )
    found: dict[str, Any] = json.loads(run.stdout)
    return found


@pytest.fixture(scope="module")
def chinese() -> dict[str, str | dict[str, str]]:
    return catalogue("sentences")


def sentences_of(text: str) -> set[str]:
    called = {json.loads(literal) for literal in CALL.findall(text) if literal}
    return called | {json.loads(other) for _, other in PLURAL.findall(text)}


def test_every_sentence_is_a_literal_that_can_be_looked_up() -> None:
    for file in sources():
        text = file.read_text()
        assert "" not in CALL.findall(text), f"{file}: t() takes a literal"
        assert len(ANY_PLURAL.findall(text)) == len(PLURAL.findall(text)), (
            f"{file}: plural() takes two literals"
        )


def test_every_sentence_of_the_page_has_its_chinese_and_no_entry_is_left_over(
    chinese: dict[str, str | dict[str, str]],
) -> None:
    said = {sentence for file in sources() for sentence in sentences_of(file.read_text())}
    assert sorted(said - set(chinese)) == []
    assert sorted(set(chinese) - said) == []


def test_the_chinese_has_the_places_of_the_english(chinese: dict[str, str | dict[str, str]]) -> None:
    for english, found in chinese.items():
        for translated in [found] if isinstance(found, str) else found.values():
            assert translated.strip(), english
            assert set(NAMES.findall(translated)) == set(NAMES.findall(english)), english


def test_every_error_that_the_page_may_show_has_its_chinese() -> None:
    known = catalogue("serverSentences")
    raised, texts = sentences_of_server()
    assert sorted(raised - set(known)) == []
    assert sorted(set(known) - texts) == []
    for english, translated in known.items():
        filled = {str(at) for at in range(english.count("{}"))}
        assert set(NAMES.findall(translated)) == filled, english


def sentences_of_templates() -> set[str]:
    templates = (ROOT / "templates").rglob("*.*")
    files = [file for file in templates if file.suffix in (".html", ".txt") and "admin" not in file.parts]
    texts = [file.read_text() for file in files]
    plain = {double or single for text in texts for double, single in TRANSLATED.findall(text)}
    blocks = {
        re.sub(r"\{\{ (\w+) \}\}", r"%(\1)s", block) for text in texts for block in BLOCKS.findall(text)
    }
    modules = (ROOT / "chatapp" / "accounts").rglob("*.py")
    return plain | blocks | {label for file in modules for label in LABELS.findall(file.read_text())}


def test_every_sentence_of_the_templates_has_its_chinese_and_no_entry_is_left_over() -> None:
    with PO.open("rb") as file:
        entries = {entry.id: entry.string for entry in read_po(file, locale="zh_Hans") if entry.id}
    assert sorted(sentences_of_templates() ^ set(entries)) == []
    assert all(entries.values())
