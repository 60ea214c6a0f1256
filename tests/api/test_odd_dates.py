"""Impossible dates are refused in requests, and harmless if an older version stored them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from asgiref.sync import sync_to_async
from django.test import Client

from chatapp.accounts.models import User
from chatapp.conversations.actions.imports import ImportedMessage, import_conversation
from chatapp.operations import clock
from chatapp.providers.models import ModelConfig
from tests.api.program import Program
from tests.api.running import running_service

V1 = "/api/v1"


def imported(client: Client, created_at: str) -> int:
    body = {"messages": [{"role": "user", "content": "hello", "created_at": created_at}]}
    return client.post(f"{V1}/conversations/import", body, content_type="application/json").status_code


@pytest.mark.sqlite
@pytest.mark.parametrize("zone", ["", "Z", "-23:59", "+14:00"])
@pytest.mark.parametrize("day", ["9999-12-31T23:59:59", "0001-01-01T00:00:00", "1969-12-30T00:00:00"])
def test_an_import_refuses_impossible_dates(alice_client: Client, day: str, zone: str) -> None:
    assert imported(alice_client, day + zone) == 422


def test_an_import_accepts_dates_less_than_a_day_ahead(alice_client: Client) -> None:
    now = clock.now()
    assert imported(alice_client, (now + timedelta(hours=23)).isoformat()) == 201
    assert imported(alice_client, (now + timedelta(hours=25)).isoformat()) == 422
    assert imported(alice_client, "1970-01-01T00:00:00Z") == 201


@pytest.mark.parametrize(
    ("moment", "status"),
    [
        ("2916-12-15T18:36:16.892091+23:30", 201),  # PostgreSQL rejects this offset
        ("2916-12-15T18:36:16-23:59", 201),
        ("9999-12-31T23:59:59-23:59", 422),  # later than datetime.max
    ],
)
def test_a_link_may_expire_at_a_time_in_any_zone(alice_client: Client, moment: str, status: int) -> None:
    chat = alice_client.post(f"{V1}/conversations", {}, content_type="application/json").json()["id"]
    body = {"expires_at": moment}
    answer = alice_client.post(f"{V1}/conversations/{chat}/share", body, content_type="application/json")
    assert answer.status_code == status
    if status == 201:
        assert datetime.fromisoformat(answer.json()["expires_at"]) == datetime.fromisoformat(moment)


@pytest.mark.parametrize(
    ("moment", "zone"),
    [
        (datetime.max.replace(tzinfo=UTC), "Pacific/Kiritimati"),
        (datetime.min.replace(tzinfo=UTC), "Pacific/Pago_Pago"),
        (datetime(1969, 12, 31, tzinfo=UTC), "UTC"),
    ],
)
async def test_a_stored_odd_date_breaks_no_request(
    alice: User, alice_program: Program, model: ModelConfig, moment: datetime, zone: str
) -> None:
    old = await sync_to_async(store)(alice, moment, zone)
    async with running_service():
        new = (await alice_program.post("conversations")).json()["id"]
        for conversation in (old, new):
            await check_everything_answers(alice_program, f"conversations/{conversation}")
        found = await alice_program.get("memory/search", q="parrot yesterday")
        assert found.json()["items"]
        assert (await alice_program.delete(f"conversations/{old}")).status_code == 204


def store(user: User, moment: datetime, zone: str) -> str:
    """Store messages of this moment, as an older version without bounds did."""
    User.objects.filter(pk=user.pk).update(time_zone=zone)
    said = [
        ImportedMessage("user", "My parrot is called Coco.", moment),
        ImportedMessage("assistant", "What a lovely name, Coco the parrot.", moment),
    ]
    return str(import_conversation(user=user, messages=said, now=clock.now()).pk)


async def check_everything_answers(program: Program, path: str) -> None:
    sent = await program.post(f"{path}/messages", content="What is my parrot called?")
    assert sent.status_code == 200, sent.content
    for method, part in (("POST", "context"), ("GET", "messages"), ("GET", "export"), ("POST", "compact")):
        answer = await program.call(method, f"{path}/{part}", body={} if method == "POST" else None)
        assert answer.status_code < 400, (part, answer.content)
