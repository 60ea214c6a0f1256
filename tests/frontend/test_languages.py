"""Every sentence of the page and the panel has a Chinese translation, and no translation is unused."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any, get_args
from uuid import uuid4

import pytest
from babel.messages.extract import extract
from babel.messages.pofile import read_po
from django.contrib.admin import ModelAdmin, site
from django.contrib.admin.utils import flatten_fieldsets
from django.db.models import Model
from django.utils import translation
from django.utils.translation.template import templatize

from agents.background.summarise import CUT_OFF, EMPTY, FAILURES, NO_FACTS, NO_MODEL, NO_ROOM
from agents.chat_models.error_mapping import describe_error
from agents.errors import ModelErrorCategory
from agents.loop.react import (
    NO_FINAL_ANSWER,
    NO_ROOM_TO_ANSWER,
    OUT_OF_STEPS,
    REPEATING,
    SHORTENED,
    UNASKED_TOOL,
)
from agents.plan.run import NO_STEPS, SHORTER_HISTORY, UNREAD_ANALYSIS
from agents.types import FinishReason
from chatapp.accounts.budgets.values import Limit
from chatapp.context.tools.registry import local_tools
from chatapp.forgetting.actions.derived_texts import FORGOTTEN
from chatapp.operations.translations import SENTENCE_CONTEXT, translate_sentence
from chatapp.providers.presets import Preset, presets
from chatapp.runs.actions.endings import INTERRUPTED
from chatapp.runs.answer_ends import NOTHING_KEPT, describe_end
from chatapp.runs.runner import FAILED, OUTAGE, SHUTTING_DOWN
from memory.window.policy import ContextPolicy
from tests.environment import ROOT
from tests.frontend.test_modules import NODE

PAGE = ROOT / "static" / "app" / "js"
CATALOGUE = PAGE / "i18n" / "zh.js"
TEXT = r'"(?:[^"\\]|\\.)*"'
CALL = re.compile(rf"(?<![\w.])t\(\s*(?:({TEXT})|.)")
PLURAL = re.compile(rf"(?<![\w.])plural\(\s*[^\"]*?({TEXT}),\s*({TEXT})")
ANY_PLURAL = re.compile(r"(?<![\w.])plural\(")
PO = ROOT / "templates" / "locale" / "zh_Hans" / "LC_MESSAGES" / "django.po"
KEYWORDS: dict[str, Any] = {
    **dict.fromkeys(("_", "gettext", "gettext_lazy", "gettext_noop")),
    **dict.fromkeys(("pgettext", "pgettext_lazy"), ((1, "c"), 2)),
    "ngettext": (1, 2),
}
"""The functions that mark a sentence, with the position of the sentence among their arguments."""
CHECKS = (
    "chatapp/operations/monitoring/doctor.py",
    "chatapp/providers/model_check.py",
    "chatapp/providers/named_windows.py",
    "chatapp/agent_presets/mcp_servers.py",
    "agents/chat_models/probing.py",
    "memory/budget.py",
)
NOT_SHOWN = {"Answer with the one word: ready"}
"""Texts in these modules that operators do not see."""
OF_DJANGO = {"Add link", "Change or view list link", "Model name", "- Select an option -"}
"""Texts of Django that its own catalogue lacks."""
OF_PYDANTIC = ("Input should", "Field required", "Extra inputs", "String should")
ERRORS = {"InvalidInput", "Unauthorized", "Forbidden", "NotFound", "Conflict", "TooLarge", "RateLimited"}
FOR_PROGRAMS = (
    "agent_presets/actions", "agent_presets/hook_actions", "features/openai_api", "features/mcp_server",
    "features/webhooks", "operations/serving", "runs/api", "runs/hook_tools",
)  # fmt: skip
"""Parts of `chatapp` that answer requests of programs, not of the page."""
NAMES = re.compile(r"\{(\w+)\}")


def place_holders(node: ast.expr) -> str:
    """Return the sentence with `{}` for each value; empty if the node is no literal."""
    if isinstance(node, ast.JoinedStr):
        return "".join(
            place_holders(part) if isinstance(part, ast.Constant) else "{}" for part in node.values
        )
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def sentence_of_error(call: ast.Call) -> list[ast.expr]:
    """Return the argument with the sentence of an error; nothing for other calls."""
    match call.func:
        case ast.Name(name) if name in ERRORS:
            return call.args[:1]
        case ast.Attribute(ast.Name(name), "in_field") if name in ERRORS:
            return call.args[2:3]
    return []


@cache
def sentences_of_server() -> tuple[set[str], set[str]]:
    """Return (sentences with which errors of the page's API are raised, all texts of the server)."""
    raised, texts = set(), set()
    for file in (
        file for package in ("chatapp", "agents", "memory") for file in (ROOT / package).rglob("*.py")
    ):
        is_for_programs = str(file.relative_to(ROOT)).removeprefix("chatapp/").startswith(FOR_PROGRAMS)
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Constant | ast.JoinedStr):
                texts.add(place_holders(node))
            if isinstance(node, ast.Call) and not is_for_programs:
                raised |= {place_holders(given) for given in sentence_of_error(node)}
    # Sentences that begin with the name of a field are for programs, too.
    return {text for text in raised if re.match(r"[A-Z]|\{\} [a-z]", text)}, texts


def sources() -> list[Path]:
    own = {CATALOGUE, CATALOGUE.with_name("zh_server.js"), PAGE / "i18n.js"}
    return [file for file in sorted(PAGE.rglob("*.js")) if file not in own]


@cache
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


def sentences_in(text: str) -> set[str]:
    called = {json.loads(literal) for literal in CALL.findall(text) if literal}
    return called | {json.loads(other) for _, other in PLURAL.findall(text)}


def test_every_sentence_of_the_page_is_a_literal() -> None:
    for file in sources():
        text = file.read_text()
        assert "" not in CALL.findall(text), f"{file}: t() takes a literal"
        assert len(ANY_PLURAL.findall(text)) == len(PLURAL.findall(text)), (
            f"{file}: plural() takes two literals"
        )


def test_the_catalogue_of_the_page_has_exactly_the_sentences_of_the_page(
    chinese: dict[str, str | dict[str, str]],
) -> None:
    said = {sentence for file in sources() for sentence in sentences_in(file.read_text())}
    assert sorted(said - set(chinese)) == []
    assert sorted(set(chinese) - said) == []


def test_chinese_sentences_have_the_placeholders_of_the_english_ones(
    chinese: dict[str, str | dict[str, str]],
) -> None:
    for english, found in chinese.items():
        for translated in [found] if isinstance(found, str) else found.values():
            assert translated.strip(), english
            assert set(NAMES.findall(translated)) == set(NAMES.findall(english)), english


def test_every_error_that_the_page_may_show_has_a_translation() -> None:
    known = catalogue("serverSentences")
    raised, texts = sentences_of_server()
    assert sorted(raised - set(known)) == []
    assert sorted(set(known) - texts) == []
    for english, translated in known.items():
        filled = {str(at) for at in range(english.count("{}"))}
        assert set(NAMES.findall(translated)) == filled, english


@pytest.mark.parametrize(
    ("folder", "made_by"),
    [("agents/plan", {"PlanError"}), ("chatapp/features/importing", {"Unreadable", "Entry"})],
)
def test_reasons_for_rejecting_plans_and_parts_of_imports_have_a_translation(
    folder: str, made_by: set[str]
) -> None:
    known = catalogue("serverSentences")
    trees = [ast.parse(file.read_text()) for file in (ROOT / folder).rglob("*.py")]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    refused = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id in made_by]
    said = {text for call in refused for given in call.args[-1:] if " " in (text := place_holders(given))}
    assert said
    assert sorted(said - set(known)) == []


def test_names_of_parts_that_an_import_leaves_out_have_a_translation() -> None:
    counted = {"left_out", "not_made", "of_new"}
    files = (ROOT / "chatapp" / "features" / "importing").rglob("*.py")
    counts = [
        node.target
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Subscript)
    ]
    names = {
        place_holders(one.slice) for one in counts if ast.unparse(one.value).rpartition(".")[2] in counted
    }
    assert len(names) > 15
    assert sorted(names - {""} - set(catalogue("serverSentences"))) == []


def test_reasons_for_a_missing_model_summary_have_a_translation() -> None:
    known = catalogue("serverSentences")
    tree = ast.parse((ROOT / "memory" / "strategies" / "checkpoint.py").read_text())
    returned = [
        place_holders(node.value) for node in ast.walk(tree) if isinstance(node, ast.Return) and node.value
    ]
    faults = {text for text in returned if re.match("(the|it) ", text)}
    assert len(faults) == 4
    faults |= {NO_MODEL, NO_ROOM, FORGOTTEN, "the summary model failed ({})", CUT_OFF, EMPTY, NO_FACTS}
    assert sorted({*faults, *FAILURES.values()} - set(known)) == []


def test_every_model_error_category_has_a_text_for_summaries() -> None:
    assert FAILURES.keys() == set(get_args(ModelErrorCategory))


def test_errors_and_notices_at_the_end_of_answers_have_a_translation() -> None:
    errors = [describe_error(category).message for category in get_args(ModelErrorCategory)]
    ends = [
        describe_end(reason, has_text=some, time_limit="")[2]
        for reason in get_args(FinishReason)
        for some in (True, False)
    ]
    spent = (
        Limit(uuid4(), "Your", None, "day", 10_000, None).refusal(datetime(2026, 12, 3, tzinfo=UTC)).message
    )
    late = f"The time limit of 90 s for one answer was reached; {NOTHING_KEPT}"
    others = [UNASKED_TOOL, NO_FINAL_ANSWER, NO_ROOM_TO_ANSWER, FAILED, OUTAGE, SHUTTING_DOWN, INTERRUPTED]
    notices = [SHORTENED.text, REPEATING.text, OUT_OF_STEPS.text, NO_STEPS.reason]
    notices += [f"{who}: {REPEATING.text}" for who in ("The planner", "The analyst", "Step s1")]
    notices += [SHORTER_HISTORY.text, UNREAD_ANALYSIS.text]
    with translation.override("zh-hans"):
        for sentence in filter(None, (*errors, *ends, spent, late, *others, *notices)):
            assert not re.search("[a-z]+ [a-z]+", translate_sentence(sentence)), sentence


def is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def is_log(node: ast.AST) -> bool:
    called = node.func if isinstance(node, ast.Call) else None
    return (
        isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "log"
    )


def entries_of(context: str | None) -> dict[Any, Any]:
    with PO.open("rb") as file:
        entries = read_po(file, locale="zh_Hans")
        return {entry.id: entry.string for entry in entries if entry.id and entry.context == context}


def marked_sentences() -> set[tuple[str | None, Any]]:
    """Return (context, sentence) of all sentences that templates and code look up; plurals as a pair of forms."""
    code = [(file, file.read_text()) for file in (ROOT / "chatapp").rglob("*.py")]
    templates = [
        file for file in (ROOT / "templates").rglob("*.*") if file.suffix in (".html", ".txt", ".js")
    ]
    texts = [*code, *((file, templatize(file.read_text(), origin=str(file))) for file in templates)]
    return {
        (context, sentence)
        for _, text in texts
        for _, sentence, _, context in extract("python", BytesIO(text.encode()), keywords=KEYWORDS)
    }


def shown_columns(table: type[Model], page: Any) -> Iterator[Any]:
    """Yield the columns that a page of the panel may show; all columns for an inline."""
    columns = (*table._meta.fields, *table._meta.many_to_many)
    if not isinstance(page, ModelAdmin):
        yield from columns
        return
    filters = (name if isinstance(name, str) else name[0] for name in page.list_filter)
    groups = (*(page.fieldsets or ()), *getattr(page, "add_fieldsets", ()))
    form = getattr(page.form, "_meta", None)
    named = {
        *page.list_display,
        *filters,
        *page.readonly_fields,
        *(page.fields or ()),
        *flatten_fieldsets(groups),
    }
    named |= set(getattr(form, "fields", None) or ())
    yield from (column for column in columns if {column.name, column.attname} & named)


def labels_of_tables() -> set[str]:
    """Return names, help texts and choices of our tables and columns in the panel. Django translates its own."""
    import_module("chatapp.operations.admin.addresses")  # This import registers the pages.
    registered = list(site._registry.items())
    parts = [(inline.model, inline) for _, page in registered for inline in page.inlines]
    found: set[str] = set()
    for table, page in [*registered, *parts]:
        if not table.__module__.startswith("chatapp."):
            continue
        found |= {str(table._meta.verbose_name), str(table._meta.verbose_name_plural)}
        for column in shown_columns(table, page):
            if not column.model.__module__.startswith("django."):
                found |= {str(column.verbose_name), str(column.help_text)}
                found |= {str(label) for _, label in column.flatchoices or ()}
    return found - {"", "ID"}


def test_the_catalogue_of_the_server_has_exactly_the_marked_sentences() -> None:
    marked = marked_sentences()
    plain = {sentence for context, sentence in marked if context is None}
    contexts = {context for context, _ in marked} - {None}
    labels = {label for label in labels_of_tables() if label not in plain and not is_of_django(label)}
    known = entries_of(None)
    assert sorted(map(str, (plain | labels | OF_DJANGO) ^ set(known))) == []
    for context in contexts:
        of_context = {sentence for among, sentence in marked if among == context}
        assert sorted(of_context ^ set(entries_of(context))) == []
    assert all(known.values())


def is_of_django(label: str) -> bool:
    """Return whether Django's own catalogue translates this label of a column, and ours does not."""
    with translation.override("zh-hans"):
        return label not in entries_of(None) and translation.gettext(label) != label


@cache
def texts_below() -> set[str]:
    """Return all texts of the packages, with `{}` for each value."""
    return {text.strip() for text in sentences_of_server()[1]}


def test_the_catalogue_has_no_unused_sentences_of_lower_packages() -> None:
    for english, chinese in entries_of(SENTENCE_CONTEXT).items():
        # Sentences of pydantic do not occur in our code.
        if not english.startswith(OF_PYDANTIC):
            assert english in texts_below(), english
        places = {str(at) for at in range(english.count("{}"))}
        assert set(NAMES.findall(chinese)) <= places, english  # Chinese omits plural endings.


def sentences_of(*files: str) -> set[str]:
    """Return the sentences in these modules, without docstrings, log messages and SQL."""
    found: set[str] = set()
    for file in files:
        tree = ast.parse((ROOT / file).read_text())
        silent = [node for node in ast.walk(tree) if is_docstring(node) or is_log(node)]
        skipped = {id(inner) for node in silent for inner in ast.walk(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                skipped |= {id(part) for part in node.values}
            if id(node) not in skipped and isinstance(node, ast.Constant | ast.JoinedStr):
                found.add(place_holders(node).strip())
    return {text for text in found if re.search(r"[A-Za-z]{2} \w", text) and not text.startswith("SELECT")}


def hints_of(card: Preset) -> list[str]:
    """Return the hint as one text if the catalogue has it, else its sentences."""
    return [card.hint] if card.hint in entries_of(SENTENCE_CONTEXT) else re.split(r"(?<=\.) ", card.hint)


def test_results_of_checks_and_descriptions_in_the_panel_have_a_translation() -> None:
    said = sentences_of(*CHECKS) - NOT_SHOWN
    said |= {field.description or "" for field in ContextPolicy.model_fields.values()}
    said |= {tool.spec.description for tool in local_tools().values()}
    said |= {text for card in presets("") for text in (card.what, card.key, *hints_of(card)) if text}
    known = {text.rstrip(".") for text in entries_of(SENTENCE_CONTEXT)}
    assert sorted(text for text in said if text.rstrip(".") not in known) == []
