"""The first page of the panel: current runs, failures, costs, and the checks of all parts."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from chatapp.accounts.models import User
from chatapp.operations import clock
from chatapp.operations.admin.home import DAYS, read_overview
from chatapp.operations.database.ids import first_id_at, new_id
from chatapp.operations.monitoring.doctor import check_address
from chatapp.operations.translations import mark_code
from chatapp.providers.actions import sum_up_usage
from chatapp.providers.models import ModelConfig, Usage, UsageHour
from chatapp.runs.models import Run
from tests.memory_store.rows import new_conversation, say

pytestmark = [pytest.mark.django_db]


def new_run(user: User, status: str, category: str = "") -> Run:
    conversation = new_conversation(user, "Lisbon")
    question, answer = say(conversation, "Where is the ferry?", "At Cais do Sodré.")
    return Run.objects.create(
        conversation=conversation,
        user=user,
        question=question,
        answer=answer,
        status=status,
        error_category=category,
        created_at=clock.now() - timedelta(seconds=30),
    )


def test_complete_failed_and_queued_runs_are_counted(alice: User) -> None:
    for status, category in [("complete", ""), ("failed", "auth"), ("failed", "auth"), ("queued", "")]:
        new_run(alice, status, category)
    overview = read_overview(clock.now())
    assert dict(overview["runs"]) == {"Queued": 1, "Complete": 1, "Failed": 2}
    assert list(overview["failures"]) == [("auth", 2)]
    assert (overview["running"], overview["queued"], overview["users"]) == (0, 1, 1)
    assert 30 <= overview["waiting_s"] < 90


def test_tokens_are_summed_by_day(alice: User) -> None:
    now = clock.now()
    for tokens, age in [(100, 0), (200, 0), (50, 2), (9_000, DAYS + 1)]:
        row = Usage.objects.create(
            user=alice, model_name="m", purpose="chat", input_tokens=tokens, output_tokens=10, exact=True
        )
        at = now - timedelta(days=age)
        Usage.objects.filter(pk=row.pk).update(created_at=at)
    overview = read_overview(now)
    assert [bar.row["input_tokens"] for bar in overview["bars"]] == [0] * (DAYS - 3) + [50, 0, 300]
    assert (overview["input"], overview["output"], overview["cost"]) == (350, 30, None)
    today = overview["bars"][-1]
    assert float(today.input_percent) + float(today.output_percent) == pytest.approx(100)


def test_past_hours_are_summed_once_and_read_from_their_sums(alice: User) -> None:
    now = clock.now()
    costs = [Decimal("0.25"), None, Decimal("0.5"), Decimal(1)]
    for hours, cost in enumerate(costs):
        at = now - timedelta(hours=hours)
        row = Usage(
            user=alice,
            model_name="m",
            purpose="chat",
            input_tokens=100,
            output_tokens=10,
            exact=True,
            cost=cost,
        )
        row.pk = first_id_at(at)
        row.save()
        Usage.objects.filter(pk=row.pk).update(created_at=at)
    before = read_overview(now)
    assert (before["input"], before["output"], before["cost"]) == (400, 40, Decimal("1.75"))
    for _ in range(2):
        sum_up_usage(now=now)
        after = read_overview(now)
        assert [bar.row for bar in after["bars"]] == [bar.row for bar in before["bars"]]
    assert UsageHour.objects.count() >= 2
    Usage.objects.filter(pk__lt=first_id_at(now - timedelta(hours=2))).delete()
    assert read_overview(now)["input"] == 400, "an hour that is over is not read from its calls"


def test_a_call_is_counted_in_the_hour_in_which_it_was_stored(alice: User) -> None:
    now = clock.now()
    hour = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=3)
    row = Usage(user=alice, model_name="m", purpose="chat", input_tokens=100, output_tokens=10, exact=True)
    row.pk = first_id_at(hour - timedelta(minutes=1))
    row.save()
    Usage.objects.filter(pk=row.pk).update(created_at=hour + timedelta(minutes=1))
    sum_up_usage(now=hour)
    sum_up_usage(now=now)
    assert [(each.hour, each.input_tokens) for each in UsageHour.objects.all()] == [(hour, 100)]


def test_the_first_id_at_a_moment_is_less_than_later_ids() -> None:
    made = new_id()
    assert (
        first_id_at(clock.now() - timedelta(seconds=60))
        < made
        < first_id_at(clock.now() + timedelta(seconds=60))
    )


@pytest.mark.parametrize(
    ("address", "is_well"),
    [
        ("https://chat.example.com", True),
        ("http://chat.example.com", False),
        ("http://127.0.0.1:8000", True),
        ("", True),
    ],
)
def test_the_checks_warn_about_a_public_address_without_encryption(
    settings: Settings, address: str, is_well: bool
) -> None:
    settings.PUBLIC_URL = address
    assert check_address().is_well is is_well


def test_the_checks_ask_for_the_public_address_only_if_it_is_not_set(settings: Settings) -> None:
    settings.IS_BEHIND_PROXY = True
    settings.PUBLIC_URL = "http://localhost:8080"
    assert "set PUBLIC_URL" not in check_address().what
    settings.PUBLIC_URL = ""
    assert "set PUBLIC_URL" in check_address().what


@pytest.mark.sqlite  # SQLite means a single process; other databases have other findings.
def test_commands_in_a_finding_are_shown_as_code(admin_client: Client) -> None:
    shown = admin_client.get("/admin/checks/").content.decode()
    assert "<code>manage.py serve</code>" in shown
    assert "`" not in shown.partition('class="findings"')[2].partition("</ul>")[0]
    assert mark_code("a `<b>` and c") == "a <code>&lt;b&gt;</code> and c"


@pytest.mark.parametrize(("has_mail", "state"), [(False, "Unused"), (True, "Works")])
def test_mail_that_is_not_set_up_is_shown_as_unused(
    admin_client: Client, settings: Settings, has_mail: bool, state: str
) -> None:
    settings.HAS_MAIL = has_mail
    shown = admin_client.get("/admin/checks/").content.decode()
    [of_mail] = [item for item in shown.split("<li>") if "<strong>mail</strong>" in item]
    assert state in of_mail
    assert ("not set up" in of_mail) is not has_mail


def test_only_operators_can_open_the_page_with_the_checks_of_doctor(client: Client, alice: User) -> None:
    ModelConfig.objects.create(name="Demo", kind=ModelConfig.Kind.DEMO, model_id="demo")
    client.force_login(alice)
    assert client.get("/admin/checks/").status_code == 404
    alice.is_staff = alice.is_superuser = True
    alice.save()
    page = client.get("/admin/checks/").content.decode()
    assert "database" in page
    assert "nobody can reset a password by mail" in page
    assert "sign-up" in page
    assert "up to date" in page
    assert "model Demo" not in page, "a visit asks no model"
    assert ModelConfig.objects.get().tested_at is None
    assert "model Demo" in client.post("/admin/checks/").content.decode()
    home = client.get("/admin/").content.decode()
    assert 'data-address="/admin/checks/"' in home
    assert "Tokens by day" in home


def test_the_error_filter_of_runs_names_the_empty_category(admin_client: Client, alice: User) -> None:
    for category in ("", "auth"):
        new_run(alice, "complete" if not category else "failed", category)
    page = admin_client.get("/admin/chatapp/run/").content.decode()
    assert re.search(r'error_category="[^>]*>\s*none\s*</a>', page)
