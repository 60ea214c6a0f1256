"""Management commands for operators."""

from __future__ import annotations

import io
import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from chatapp.accounts.models import ApiToken, User
from chatapp.accounts.selectors import find_token, scopes_of
from chatapp.operations.monitoring.doctor import check_data_folder, check_schema, examine_part
from chatapp.providers.actions import ensure_first_model
from tests.servers.service import run_manage

PASSWORD = "correct horse battery"


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


@pytest.fixture
def typed(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(PASSWORD + "\n"))


def test_create_user_reads_the_password_from_standard_input(db, typed):
    assert run("create_user", "Alice@Example.com", "--password-stdin") == "Created alice@example.com.\n"
    user = User.objects.get()
    assert user.check_password(PASSWORD)
    assert not user.is_staff


def test_create_user_makes_an_admin(db, typed):
    run("create_user", "root@example.com", "--password-stdin", "--admin")
    assert User.objects.get().is_superuser


def test_create_user_refuses_an_email_address_that_is_taken(alice, typed):
    with pytest.raises(CommandError, match="account with this email address"):
        run("create_user", alice.email, "--password-stdin")


def test_create_token_prints_a_working_token_and_stores_only_its_hash(alice):
    secret = run("create_token", alice.email, "--scopes", "chat,read", "--name", "script").strip()
    token = find_token(secret)
    assert token
    assert (token.user, scopes_of(token)) == (alice, {"chat", "read"})
    assert secret not in str(ApiToken.objects.values().get())


def test_create_token_lists_the_valid_scopes_in_its_error(alice):
    with pytest.raises(CommandError, match="chat, read, memory, admin"):
        run("create_token", alice.email, "--scopes", "everything")


def test_create_token_reports_an_unknown_user(db):
    with pytest.raises(CommandError, match="There is no user"):
        run("create_token", "nobody@example.com")


def test_the_doctor_reports_a_healthy_installation(transactional_db, settings):
    settings.EMBEDDED = True
    ensure_first_model()
    told = run("doctor")
    for part in ("database", "schema", "clock", "channel layer", "broker", "data folder", "model Demo"):
        assert f"ok     {part}: " in told


def test_the_doctor_reports_missing_default_tools(transactional_db, settings, capsys):
    settings.DEFAULT_TOOLS = ["clock", "clokc"]
    with pytest.raises(SystemExit):
        call_command("doctor")
    assert "DEFAULT_TOOLS contains unknown tools: clokc" in capsys.readouterr().out


def test_the_doctor_reports_a_newer_schema_but_ignores_removed_packages(transactional_db, capsys):
    applied = MigrationRecorder(connection)
    applied.record_applied("gone", "0001_initial")
    assert check_schema().is_well
    applied.record_applied("chatapp", "9999_later")
    try:
        with pytest.raises(SystemExit):
            call_command("doctor")
    finally:
        applied.record_unapplied("gone", "0001_initial")
        applied.record_unapplied("chatapp", "9999_later")
    assert (
        "FAILED schema: newer than this program\n       Install the newer version" in capsys.readouterr().out
    )


def test_the_doctor_reports_a_missing_data_folder(transactional_db, settings, capsys):
    settings.DATA_DIR = settings.DATA_DIR / "gone"
    with pytest.raises(SystemExit) as ended:
        call_command("doctor")
    assert ended.value.code == 1
    assert "FAILED data folder" in capsys.readouterr().out


def test_doctors_in_containers_can_share_a_data_folder(settings):
    """In containers their processes have the same id, like the threads here."""
    with ThreadPoolExecutor(8) as containers:
        found = list(containers.map(lambda _: examine_part(check_data_folder, "data folder", ""), range(800)))
    assert {finding.is_well for finding in found} == {True}


@pytest.mark.parametrize(
    ("env", "broken"),
    [
        ({}, "FAILED schema: older than this program"),
        ({"DATABASE_URL": "postgresql://nobody@127.0.0.1:9/none"}, "FAILED database: "),
    ],
)
def test_the_doctor_continues_if_the_database_is_down_or_has_no_tables(tmp_path, env, broken):
    done = run_manage({"DATA_DIR": str(tmp_path), **env}, "doctor")
    assert (done.returncode, done.stderr) == (1, "")
    told = [line for line in done.stdout.splitlines() if not line.startswith(" ")]
    # Checks that need the database do not report further problems.
    assert [line.startswith(broken) for line in told if line.startswith("FAILED")] == [True]
    assert told[-1].startswith("ok     data folder: ")


def test_an_argument_that_is_not_utf_8_is_refused_in_one_sentence(tmp_path):
    typed = os.fsdecode(b"al\xffice@example.com")
    done = run_manage({"DATA_DIR": str(tmp_path)}, "create_token", typed, is_forked=False)
    told = "Arguments must be UTF-8; these are not: al\\xffice@example.com\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", told)
