"""Web, worker and beat as separate processes, on PostgreSQL and Redis."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import psycopg
import pytest
import yaml

from tests.environment import ROOT
from tests.servers.people import ALICE, make_people
from tests.servers.service import run_manage
from tests.servers.waiting import PATIENCE_S, wait_for


def test_two_web_processes_share_a_database(start_service):
    first = start_service(production=True)
    second = start_service(data=first)
    token = make_people(first.env, [ALICE]).tokens[ALICE]
    made = first.client(token).post("/api/v1/conversations", json={"title": "shared"}).json()
    assert second.client(token).get(f"/api/v1/conversations/{made['id']}").json()["title"] == "shared"


def test_a_missing_worker_is_reported_until_one_starts_and_works(start_service, start_worker, start_beat):
    service = start_service(production=True, LEASE_S="3")
    alone = run_manage(service.env, "doctor")
    assert alone.returncode == 1
    assert "Redis answers, but no worker does" in alone.stdout
    assert "FAILED beat: none has reported within" in alone.stdout
    client = service.client()
    checks = client.get("/readyz").json()
    assert (checks["status"], checks["checks"]["worker"]) == ("degraded", "missing")
    assert not ask_as_compose_does(service.env)
    worker = start_worker(service)
    assert ask_as_compose_does(service.env)
    assert "ok     broker: Redis, 1 worker" in run_manage(service.env, "doctor").stdout
    start_beat(service)
    worker.wait_for_output(r"Task chatapp\.operations\.tasks\.sweep\[.*\] succeeded")
    wait_for(lambda: client.get("/readyz").json()["status"] == "ok", what="a worker and a beat are known")
    swept = re.compile(r'palimpsest_tasks_total{process="\S+",state="success",task="operations.tasks.sweep"}')
    wait_for(lambda: swept.search(client.get("/metrics").text), what="what the worker counted is shown")
    assert worker.stop() == 0


@pytest.mark.parametrize(
    ("kind", "begun"), [("worker --concurrency=1", r"ready\."), ("beat", "Sending due task sweep")]
)
def test_workers_and_beat_wait_for_their_schema_and_refuse_a_newer_one(start_service, processes, kind, begun):
    service = start_service(production=True, LEASE_S="3", LOG_LEVEL="INFO")
    celery = ("-m", "celery", "-A", "chatapp", *kind.split())
    waiting, refused = service.companion("waiting", *celery), service.companion("refused", *celery)
    processes += [waiting, refused]
    with psycopg.connect(service.env["DATABASE_URL"], autocommit=True) as database:
        of_ours = "FROM django_migrations WHERE app = 'chatapp'"
        [last] = database.execute(f"SELECT max(name) {of_ours}").fetchone()
        database.execute(f"DELETE {of_ours} AND name = %s", [last])
        waiting.launch()
        waiting.wait_for_output("older schema than this program: .* This process waits for it")
        note = "INSERT INTO django_migrations (app, name, applied) VALUES ('chatapp', %s, now())"
        database.execute(note, [last])
        waiting.wait_for_output(begun)
        database.execute(note, ["9999_later"])
        refused.launch()
        refused.wait_for_output("newer schema than this program: install the newer version again")
        assert refused.process is not None
        assert refused.process.wait(PATIENCE_S) == 1


def test_a_worker_waits_for_a_database_that_is_down(start_service, processes):
    service = start_service(production=True)
    away = {**service.env, "DATABASE_URL": "postgresql://nobody@127.0.0.1:9/none"}
    worker = service.companion("away", "-m", "celery", "-A", "chatapp", "worker", "--concurrency=1")
    worker.env = away
    processes.append(worker)
    worker.launch()
    worker.wait_for_output(r"schema of the database cannot be compared \(.*\)\. This process waits for it")
    assert "ready." not in worker.output()


def ask_as_compose_does(env: dict[str, str]) -> bool:
    """Run the worker's health check from docker-compose.yml. Return whether it passes."""
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    _, _, *arguments = compose["services"]["worker"]["healthcheck"]["test"]
    return (
        subprocess.run([sys.executable, *arguments], env={**os.environ, **env}, check=False).returncode == 0
    )
