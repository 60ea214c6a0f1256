"""Liveness, readiness and metrics."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from celery import current_app
from django.test import Client

from chatapp.accounts.models import User
from chatapp.operations.monitoring.doctor import check_beat, check_broker
from chatapp.operations.workers.process_reports import (
    LIVING,
    connect,
    process_name,
    report_alive,
    report_metrics,
    threads,
    withdraw,
)
from chatapp.providers.models import ModelConfig
from tests.api.program import Program
from tests.api.running import new_conversation, running_service, send
from tests.fixtures.processes import ServiceStarter
from tests.servers.redis import Redis
from tests.servers.service import run_manage


def test_liveness_needs_no_database_query(client: Client, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        answer = client.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def test_readiness_needs_database_storage_channel_layer_and_broker(client: Client) -> None:
    answer = client.get("/readyz")
    assert answer.status_code == 200
    needed = {"database": "ok", "storage": "ok", "layer": "ok", "broker": "ok"}
    assert answer.json()["checks"] == needed | {"worker": "missing", "beat": "missing"}


def test_a_missing_worker_or_beat_is_reported_but_the_process_stays_ready(
    client: Client, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.EMBEDDED = True
    monkeypatch.setitem(threads, "worker", lambda: True)
    monkeypatch.setitem(threads, "beat", lambda: False)
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (200, "degraded")
    assert (answer.json()["checks"]["worker"], answer.json()["checks"]["beat"]) == ("ok", "missing")
    assert check_broker().is_well
    assert "ended" in check_beat().what
    monkeypatch.setitem(threads, "beat", lambda: True)
    assert client.get("/readyz").json()["status"] == "ok"
    assert check_beat().is_well


def test_processes_of_other_machines_report_through_redis(
    client: Client, settings: Any, redis: Redis
) -> None:
    settings.EMBEDDED, settings.REDIS_URL = False, redis.new_database()
    assert client.get("/readyz").json()["checks"]["worker"] == "missing"
    assert "Start one" in check_beat().remedy
    report_alive("worker")
    report_metrics()
    with connect() as queue:
        sent = {"headers": {"sent_at": time.time() - 60}}
        queue.lpush(settings.CELERY_TASK_DEFAULT_QUEUE, json.dumps(sent))
    checks = client.get("/readyz").json()["checks"]
    assert (checks["worker"], checks["beat"]) == ("ok", "missing")
    text = client.get("/metrics", REMOTE_ADDR="127.0.0.1", HTTP_HOST="127.0.0.1:8000").content.decode()
    assert f'palimpsest_messages_total{{process="{process_name()}"}}' in text
    assert text.count("# TYPE palimpsest_messages_total ") == 1
    assert sample(text, 'palimpsest_processes{kind="worker"}') == 1
    assert sample(text, 'palimpsest_queue_length{queue="tasks"}') == 1
    assert sample(text, 'palimpsest_queue_age_seconds{queue="tasks"}') >= 60
    assert sample(text, 'palimpsest_queue_length{queue="runs"}') == 0
    withdraw()
    report_alive("beat")
    checks = client.get("/readyz").json()["checks"]
    assert (checks["worker"], checks["beat"]) == ("missing", "ok")


def test_a_report_from_a_clock_that_was_ahead_does_not_count(
    client: Client, settings: Any, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process is gone, and the clock was set back since then."""
    settings.EMBEDDED, settings.REDIS_URL = False, redis.new_database()
    with monkeypatch.context() as ahead:
        now = time.time()
        ahead.setattr(time, "time", lambda: now + 3600)
        report_alive("worker")
    assert client.get("/readyz").json()["checks"]["worker"] == "missing"


def test_a_process_that_reports_rarely_counts_as_alive_until_its_next_report(
    client: Client, settings: Any, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.EMBEDDED, settings.REDIS_URL, settings.LEASE_S = False, redis.new_database(), 14_400
    with monkeypatch.context() as earlier:
        now = time.time()
        earlier.setattr(time, "time", lambda: now - 4_800)
        report_alive("worker")
    with connect() as reports:
        assert reports.ttl(LIVING) > 4_800
    assert client.get("/readyz").json()["checks"]["worker"] == "ok"


def test_metrics_are_available_while_redis_is_down(client: Client, settings: Any) -> None:
    settings.EMBEDDED, settings.REDIS_URL = False, "redis://127.0.0.1:9/0"
    answer = client.get("/metrics", REMOTE_ADDR="127.0.0.1", HTTP_HOST="127.0.0.1:8000")
    assert answer.status_code == 200
    assert b"palimpsest_messages_total" in answer.content
    checks = client.get("/readyz").json()["checks"]
    assert checks["worker"] == checks["beat"] == "failed (ConnectionError)"


@pytest.fixture
def broker_away() -> Iterator[None]:
    before = current_app.conf.broker_url
    current_app.conf.broker_url = "redis://:password@127.0.0.1:9/0"
    yield
    current_app.conf.broker_url = before


def test_readiness_names_the_failed_check_and_reveals_no_secrets(client: Client, broker_away: None) -> None:
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["checks"]["broker"] != "ok"
    assert answer.json()["checks"]["database"] == "ok"
    assert b"password" not in answer.content


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_health_endpoints_are_read_only(client: Client, path: str) -> None:
    assert client.post(path).status_code == 405


@pytest.mark.parametrize(
    ("host", "address", "status"),
    [
        ("localhost:8000", "127.0.0.1", 200),
        ("[::1]:8000", "::1", 200),
        ("localhost", "192.0.2.1", 403),
        ("chat.example.com", "127.0.0.1", 403),
    ],
)
def test_metrics_are_open_to_requests_from_this_machine(
    client: Client, settings: Any, host: str, address: str, status: int
) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    assert client.get("/metrics", REMOTE_ADDR=address, HTTP_HOST=host).status_code == status


def test_a_local_address_gives_no_access_to_metrics_behind_a_proxy(client: Client, settings: Any) -> None:
    """The proxy may forward a request with its own address and with any host name."""
    local = {"REMOTE_ADDR": "127.0.0.1", "HTTP_HOST": "127.0.0.1:8000"}
    assert client.get("/metrics", **local).status_code == 200
    settings.IS_BEHIND_PROXY = True
    assert client.get("/metrics", **local).status_code == 403


def test_metrics_detect_a_proxy_by_the_settings_or_by_its_headers(start_service: ServiceStarter) -> None:
    alone = start_service(is_new=True)
    with alone.client() as scraper:
        assert scraper.get("/metrics").status_code == 200
        assert scraper.get("/readyz").json()["status"] == "ok"  # worker and beat run in its own threads
        counted = scraper.get("/metrics").text
        assert sample(counted, 'palimpsest_http_requests_total{kind="health",method="GET",status="200"}') >= 2
        assert sample(counted, 'palimpsest_http_seconds_count{kind="health"}') >= 2
        for name in ("X-Forwarded-For", "Via", "True-Client-IP"):
            assert scraper.get("/metrics", headers={name: "192.0.2.1"}).status_code == 403
    for settings in (
        {"PUBLIC_URL": "https://chat.example.com"},
        {"ALLOWED_HOSTS": "localhost,127.0.0.1,chat.example"},
    ):
        done = run_manage(
            {**alone.env, **settings}, "shell", "-v", "0", "-c",
            "from django.conf import settings; print(settings.IS_BEHIND_PROXY)",
        )  # fmt: skip
        assert done.stdout.strip() == "True"


def test_remote_metrics_are_for_operators_only(
    client: Client,
    alice_client: Client,
    admin_client: Client,
    api_client: Callable[..., Client],
    admin_user: User,
) -> None:
    far = {"REMOTE_ADDR": "192.0.2.1"}
    assert client.get("/metrics", **far).status_code == 403
    assert alice_client.get("/metrics", **far).status_code == 403
    assert admin_client.get("/metrics", **far).status_code == 200
    assert api_client(admin_user, ["admin"]).get("/metrics", **far).status_code == 200
    assert api_client(admin_user, ["read"]).get("/metrics", **far).status_code == 403


def sample(text: str, name: str) -> float:
    return next((float(line.split()[-1]) for line in text.splitlines() if line.startswith(name)), 0.0)


async def test_metrics_count_runs_messages_and_tokens(alice_program: Program, model: ModelConfig) -> None:
    async def scrape() -> str:
        return (await alice_program.get("/metrics")).content.decode()

    async with running_service():
        before = await scrape()
        await send(alice_program, await new_conversation(alice_program))
        after = await scrape()
    for name in (
        'palimpsest_runs_total{status="complete"}',
        "palimpsest_messages_total",
        "palimpsest_run_seconds_count",
        "palimpsest_first_token_seconds_count",
        'palimpsest_tokens_total{kind="output",purpose="chat"}',
    ):
        assert sample(after, name) > sample(before, name), name
