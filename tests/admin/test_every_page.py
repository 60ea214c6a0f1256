"""No page returns a server error for odd addresses, queries or forms."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from itertools import count, cycle, product
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from tests.api import odd

pytestmark = pytest.mark.slow

# Each page gets GET and POST requests, and one of these methods in turn.
METHODS = ("head", "put", "patch", "delete", "options")
# Parameters of Django and its admin: paging, filters, ordering, popups, autocompletion.
QUERY_NAMES = (
    "p",
    "q",
    "o",
    "_to_field",
    "id__exact",
    "created_at__gte",
    "created_at__year",
    "app_label",
    "next",
)
QUERY_TEXTS = ("\0", "9" * 400, "-1")
FORM_TEXTS = ("", "\0", "x" * 5_000, "9" * 400, "-1", "1e308", "NaN", "9999-12-31", "[" * 1_000, '{"a": 1}')
FIELD_TEXTS = ("\0", "9" * 400, "-1")
LEAVES_ALONE = re.compile(r"^accounts/logout|^admin/logout")


def patterns(found: list[Any], prefix: str = "") -> Iterator[str]:
    for each in found:
        if isinstance(each, URLResolver):
            yield from patterns(each.url_patterns, prefix + str(each.pattern))
        elif isinstance(each, URLPattern):
            yield prefix + str(each.pattern)


def pages() -> list[str]:
    """Return the routes that are not operations of the API."""
    return [route for route in patterns(get_resolver().url_patterns) if not route.startswith("api/v1")]


def addresses(route: str) -> list[str]:
    """Return addresses of the route with odd values for its parameters."""
    named = re.compile(r"<[^>]+>|\(\?P<\w+>(?:[^()]|\([^()]*\))*\)|\(\?:.*\)|\.\*")
    plain = route.replace("^", "").replace("$", "")
    values = (odd.ROW_ID, "9" * 400, "%00", "_FF") if named.search(plain) else ("",)
    return [f"/{named.sub(value, plain)}" for value in values]


class Fields(HTMLParser):
    """Collects the fields of a form with their values."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        name = given.get("name")
        # `__prefix__` marks the template of an extra row, which the server never reads.
        is_read = name and "__prefix__" not in name and given.get("type") != "submit"
        if tag in ("input", "select", "textarea") and is_read:
            self.found.setdefault(name, given.get("value") or "")


def refused(answer: Any) -> set[str]:
    """Return the names of the fields that the form of a page rejects."""
    context = answer.context or {}
    admin_form = context.get("adminform")
    form = admin_form.form if admin_form else context.get("form")
    return {name for name, errors in form.errors.items() if errors} if form else set()


@pytest.fixture
def asked(admin_client: Client) -> Iterator[list[str]]:
    """Yield a list for requests that returned a server error; fail if it has any."""
    # Forms offer each of the hundreds of permissions, and each choice renders a template of its own.
    Permission.objects.exclude(content_type__app_label="auth").delete()
    admin_client.raise_request_exception = False
    failures: list[str] = []
    yield failures
    assert not failures, "\n".join(failures)


def note(failures: list[str], answer: HttpResponse, *request: object) -> None:
    if answer.status_code >= 500 and not request[1].startswith("/readyz"):
        failures.append(f"{answer.status_code} " + " ".join(str(part)[:200] for part in request))


def test_no_page_returns_a_server_error(admin_client: Client, client: Client, asked: list[str]) -> None:
    client.raise_request_exception = False
    for route, method in zip(pages(), cycle(METHODS), strict=False):
        if LEAVES_ALONE.match(route):
            continue
        for address in addresses(route):
            note(asked, admin_client.get(address), "admin", address)
        if connection.vendor != "sqlite":
            continue  # The requests below execute the same statements on every database.
        note(asked, client.get(address), "nobody", address)
        note(asked, admin_client.post(address), "post", address)
        note(asked, getattr(admin_client, method)(address), method, address)


def test_no_query_returns_a_server_error(admin_client: Client, asked: list[str]) -> None:
    lists = [route for route in pages() if re.search(r"^(admin/\w+/\w+/|admin/autocomplete/)?$", route)]
    # Request each list with each name, and each value of a name at a third of the lists.
    for (number, route), (place, name) in product(enumerate(lists), enumerate(QUERY_NAMES)):
        value = QUERY_TEXTS[(number + place) % len(QUERY_TEXTS)]
        note(asked, admin_client.get(f"/{route}", {name: value}), "get", f"/{route}", name, repr(value)[:50])


@pytest.mark.parametrize(
    "route", [route for route in pages() if re.search(r"^admin/.*(add|import|invite|connect)/$", route)]
)
def test_no_form_returns_a_server_error(admin_client: Client, asked: list[str], route: str) -> None:
    shown = admin_client.get(f"/{route}")
    reader = Fields()
    reader.feed(shown.content.decode())
    counts = {name: value for name, value in reader.found.items() if name.endswith("_FORMS")}
    names = [name for name in reader.found if name not in counts and name != "csrfmiddlewaretoken"]
    made = count(1)

    def send(some: Sequence[str], text: str) -> HttpResponse:
        """Send the values of the form, with the text in some of its fields."""
        form = {**reader.found, "name": f"Made {next(made)}", **dict.fromkeys(some, text)}
        answer = admin_client.post(f"/{route}", form)
        note(asked, answer, "post", f"/{route}", *some[:5], repr(text)[:50])
        return answer

    for text in FORM_TEXTS:
        form = {**counts, **dict.fromkeys(names, text)}
        answer = admin_client.post(f"/{route}", form)
        note(asked, answer, "post", f"/{route}", repr(text)[:50])
        left = [name for name in names if name not in refused(answer)] if text in FIELD_TEXTS else []
        while left:
            answer = send(left, text)
            rest = [name for name in left if name not in refused(answer)]
            if rest == left:
                break
            left = rest
        # An accepted form has read each field. A rejected one may have stopped at an error of another field.
        for name in left if len(left) > 1 and answer.status_code != 302 else ():
            send([name], text)
    # The number of rows of a form does not reach the database, so one database suffices.
    for name in counts if connection.vendor == "sqlite" else ():
        form = {**reader.found, name: "9" * 30}
        answer = admin_client.post(f"/{route}", form)
        note(asked, answer, "post", f"/{route}", name)
        assert len(answer.content) < 2 * len(shown.content), f"{name}: rows are shown that nobody sent"
