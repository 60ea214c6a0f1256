"""`manage.py serve` from the operator's point of view."""

from __future__ import annotations

import os
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection

from tests.environment import ROOT
from tests.fixtures.processes import ServiceStarter
from tests.servers.made_once import SQLITE_NAME, copy_migrated_sqlite
from tests.servers.people import ALICE
from tests.servers.service import SETUP_LINK, Service, run_manage
from tests.servers.waiting import PATIENCE_S
from tests.servers.websocket import connect


def serve(*arguments: str, is_forked: bool = True, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a start that is refused. A forked process fails with the same message in a tenth of the time."""
    return run_manage(env, "serve", *arguments, is_forked=is_forked)


@pytest.fixture(scope="module")
def service(start_shared: ServiceStarter) -> Service:
    return start_shared(is_new=True)


def test_a_set_up_link_is_printed_until_there_is_an_admin(service):
    link = service.wait_for_output(SETUP_LINK).group(0)
    assert link.startswith(service.url)
    assert service.client().get("/healthz").status_code == 200
    assert service.client().get(link).status_code == 200
    service.create_user("root@example.com", admin=True)
    printed = len(service.output())
    service.restart()
    assert "/setup/" not in service.output()[printed:]


def test_a_second_process_on_the_same_data_folder_is_refused(service):
    second = serve("--port", "0", is_forked=False, DATA_DIR=str(service.data_dir))
    assert second.returncode == 1
    assert second.stderr.startswith(f"The data folder {service.data_dir} is already served by process")
    assert len(second.stderr.splitlines()) == 1


def test_a_port_in_use_is_reported_in_one_sentence(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        refused = serve("--port", str(taken.getsockname()[1]), DATA_DIR=str(tmp_path))
    assert refused.returncode == 1
    assert "cannot be used (Address already in use)" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


@pytest.mark.parametrize("host", ["a..b", "a" * 64 + ".example"])
def test_an_invalid_host_name_is_reported_in_one_sentence(tmp_path, host):
    refused = serve("--port", "0", "--host", host, DATA_DIR=str(tmp_path))
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"{host} is not an address of this machine (")
    assert refused.stderr.endswith("): set HOST or --host.\n")
    assert len(refused.stderr.splitlines()) == 1


def test_an_old_schema_is_reported_in_one_sentence(tmp_path):
    refused = serve("--port", "0", DATA_DIR=str(tmp_path))
    assert refused.returncode == 1
    assert refused.stderr.strip().endswith("run `manage.py migrate` first.")


@pytest.mark.parametrize("arguments", [(), ("--migrate",)])
def test_a_newer_schema_is_reported_in_one_sentence(tmp_path, arguments):
    copy_migrated_sqlite(tmp_path / SQLITE_NAME)
    with sqlite3.connect(tmp_path / SQLITE_NAME) as database:
        database.execute(
            "INSERT INTO django_migrations (app, name, applied) VALUES ('chatapp', '9999_later', '2030-01-01')"
        )
    database.close()
    refused = serve("--port", "0", *arguments, DATA_DIR=str(tmp_path))
    assert (refused.returncode, refused.stderr) == (
        1,
        "The database has a newer schema than this program: install the newer version again.\n",
    )


PREPARE = """
import django
django.setup()
from chatapp.operations.serving.launcher import prepare_schema
prepare_schema(migrates=True)
"""


def test_a_start_without_pending_migrations_restores_triggers_and_permissions(tmp_path):
    copy_migrated_sqlite(tmp_path / SQLITE_NAME)
    with sqlite3.connect(tmp_path / SQLITE_NAME) as database:
        database.execute("DROP TRIGGER no_user_edition")
        database.execute("DELETE FROM auth_permission")
    env = {**os.environ, "DATA_DIR": str(tmp_path), "DJANGO_SETTINGS_MODULE": "chatapp.settings"}
    subprocess.run([sys.executable, "-c", PREPARE], cwd=ROOT, env=env, check=True)
    triggers = database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
    assert ("no_user_edition",) in triggers
    assert database.execute("SELECT count(*) FROM auth_permission").fetchone()[0] > 0
    database.close()


MIGRATE = ["manage.py", "migrate", "--verbosity=0"]


def test_a_start_and_a_concurrent_migrate_of_an_empty_database_wait_for_each_other(postgres, tmp_path):
    url = postgres.new_database()
    env = {**os.environ, "DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "chatapp.settings"}
    starting = [
        subprocess.Popen(
            [sys.executable, *command],
            cwd=ROOT,
            env={**env, "DATA_DIR": str(tmp_path / str(number))},
            stderr=subprocess.PIPE,
            text=True,
        )
        for number, command in enumerate((["-c", PREPARE], MIGRATE))
    ]
    told = [process.communicate(timeout=PATIENCE_S)[1] for process in starting]
    assert [(process.returncode, errors) for process, errors in zip(starting, told, strict=True)] == [
        (0, ""),
        (0, ""),
    ]


def test_an_unreachable_database_is_reported_in_one_sentence(tmp_path):
    refused = serve(
        "--port", "0", DATA_DIR=str(tmp_path), DATABASE_URL="postgresql://nobody@127.0.0.1:9/none"
    )
    assert refused.returncode == 1
    assert "check DATABASE_URL" in refused.stderr


def test_an_unwritable_data_folder_is_reported_in_one_sentence(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    refused = serve("--port", "0", DATA_DIR=str(tmp_path / "file" / "data"))
    assert refused.returncode == 1
    assert "must be a folder that can be written" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def read_to_the_end(socket: ClientConnection) -> None:
    while True:
        socket.recv(timeout=PATIENCE_S)


@pytest.mark.parametrize(("drain_s", "status"), [("20", "complete"), ("0", "interrupted")])
def test_sigterm_completes_or_interrupts_answers_and_closes_sockets(start_service, drain_s, status):
    service = start_service(DRAIN_TIMEOUT_S=drain_s)
    headers = {"Authorization": f"Bearer {service.tokens[ALICE]}"}
    with service.client_of(ALICE) as client, connect(service.ws_url, additional_headers=headers) as socket:
        messages = (
            f"/api/v1/conversations/{client.post('/api/v1/conversations', json={}).json()['id']}/messages"
        )
        question = {"content": "Tell me about yourself, at length.", "stream": True}
        with client.stream("POST", messages, json=question) as answer:
            next(line for line in answer.iter_lines() if line == "event: text.delta")
            assert service.stop() == 0
        with pytest.raises(ConnectionClosed) as closed:
            read_to_the_end(socket)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1012
    assert "Traceback" not in service.output()
    service.start()
    stored = service.client_of(ALICE).get(messages).json()["items"][-1]
    assert (stored["role"], stored["status"]) == ("assistant", status)
    assert stored["content"]


def test_the_service_starts_again_after_kill_9(service):
    service.kill()
    assert service.start().client().get("/readyz").status_code == 200


def test_an_old_python_is_reported_before_anything_else(tmp_path):
    """The PATH has only make, sh and a python3 that is too old."""
    old = tmp_path / "python3"
    old.write_text(
        f"#!{sys.executable}\nimport runpy, sys\nsys.version_info = (3, 9, 1)\nsys.argv.pop(0)\nrunpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    old.chmod(0o755)
    for tool in ("make", "sh"):
        (tmp_path / tool).symlink_to(
            next(path for folder in os.get_exec_path() if (path := Path(folder) / tool).exists())
        )
    done = subprocess.run(
        ["make", "run"], cwd=ROOT, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert done.stderr.startswith("Palimpsest needs Python 3.11 or newer; ")
