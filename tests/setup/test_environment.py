"""Settings are validated when a process starts. Each invalid one is reported on a line, and nothing starts."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dj_database_url
import pytest
from kombu import Connection

from chatapp.operations.configuration import environment
from tests.environment import ROOT, documented_names
from tests.servers.service import run_manage

WRONG = {
    "HOST": "two words",
    "PORT": "99999",
    "PUBLIC_URL": "chat.example.com",
    "ALLOWED_HOSTS": "https://chat.example.com",
    "TRUSTED_PROXIES": "10.0.0.0/99",
    "CONNECTIONS_PER_ADDRESS": "-1",
    "DRAIN_TIMEOUT_S": "soon",
    "LEASE_S": "0",
    "SSE_HEARTBEAT_S": "-1",
    "SOCKET_CHECK_S": "1e3",
    "DEBUG": "perhaps",
    "LOG_LEVEL": "loud",
    "LOG_FORMAT": "xml",
    "DATABASE_URL": "mysql://root:geheim@host/database",
    "REDIS_URL": "http://:geheim@host",
    "TRANSACTION_POOLER": "perhaps",
    "OPENAI_API_KEY": "two geheim words",
    "OPENAI_BASE_URL": "https://me:geheim@host:99999/v1",
    "LLM_CONTEXT_SIZE": "-1",
    "LLM_MAX_OUTPUT_TOKENS": "9" * 30,
    "OLLAMA_URL": "ftp://host",
    "MODEL_CONNECT_TIMEOUT_S": "0",
    "MODEL_FIRST_TOKEN_TIMEOUT_S": "nan",
    "MODEL_STALL_TIMEOUT_S": "-5",
    "DEFAULT_TOOLS": "look.up",
    "EXTRA_TOOLS": "undotted",
    "OFFLOADER": "undotted",
    "CONSENT_TIMEOUT_S": "0",
    "MAX_OWN_AGENTS": "-1",
    "HTTP_FETCH_HOSTS": "https://docs.python.org",
    "HTTP_FETCH_OWN_HOSTS": "wiki.example:port",
    "S3_ENDPOINT_URL": "host",
    "S3_SECRET_ACCESS_KEY": "two geheim words",
    "EMBEDDINGS_BASE_URL": "host",
    "EMBEDDINGS_API_KEY": "two geheim words",
    "SIGNUP": "maybe",
    "EMAIL_URL": "smtp://me:geheim@mail.example.com",
    "RETENTION_DAYS": "-1",
    "ENABLE_COMPACTION": "perhaps",
    "CONTEXT_POLICY": '{"trigger": 7}',
    "HOOKS": "[",
    "MAX_REQUEST_BYTES": "0",
    "MAX_FRAME_BYTES": "-1",
    "MAX_UPLOAD_BYTES": "1.5",
    "MAX_STORED_BYTES": "-1",
    "CONNECTIONS_PER_USER": "0",
    "FRAMES_PER_MINUTE": "-1",
    "MAX_MESSAGE_CHARS": "0",
    "MAX_IMAGE_PIXELS": "0",
    "MESSAGES_PER_MINUTE": "-1",
    "SECRET_KEY": "a short geheim key",
    "LLM_MODEL": "a\x01b",
    "FAST_LLM_MODEL": "a\x01b",
    "FAST_LLM_CONTEXT_SIZE": "-1",
    "EMBEDDINGS_MODEL": "a\x01b",
    "ANSWER_TIME_LIMIT_S": "0",
    "MAX_ANSWER_BYTES": "1e9",
    "TRASH_DAYS": "-1",
    "WEBHOOK_HOSTS": "https://hooks.example.com",
    "WEBHOOK_OWN_HOSTS": "hooks.example:port",
    "S3_BUCKET": "a\x01b",
    "S3_REGION": "a\x01b",
    "S3_ACCESS_KEY_ID": "two geheim words",
    "OIDC_ISSUER": "host",
    "OIDC_CLIENT_ID": "a\x01b",
    "OIDC_CLIENT_SECRET": "two geheim words",
    "OIDC_NAME": "a\x01b",
    "OIDC_SCOPES": "a\x01b",
    "OIDC_GROUPS_CLAIM": "a\x01b",
    "OIDC_MAKES_ACCOUNTS": "perhaps",
    "OIDC_TRUSTS_ADDRESSES": "perhaps",
    "OPERATORS_READ_CHATS": "perhaps",
}
PATHS = {"DATA_DIR", "STATIC_ROOT"}
"""Only the machine can tell whether a path is valid."""


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of messages that prevent a start. The list and the addresses are restored after the test."""
    for name in ("PUBLIC_URL", "REDIS_URL", "DATABASE_URL"):
        monkeypatch.setenv(name, "")
    monkeypatch.setattr(environment, "problems", problems := [])
    return problems


def test_each_documented_setting_has_an_invalid_example() -> None:
    names = {name for name in documented_names() if name.isupper()}
    assert names - set(WRONG) == PATHS


def test_all_invalid_settings_are_reported_at_once_on_a_line_each(tmp_path: Path) -> None:
    done = run_manage({"DATA_DIR": str(tmp_path), **WRONG}, "check")
    assert done.returncode == 1
    told = [line.split()[0].rstrip(":") for line in done.stderr.splitlines()]
    assert sorted(told) == sorted(WRONG)
    assert "geheim" not in done.stderr
    assert "RETENTION_DAYS must be a whole number from 0 to 36,500, not '-1'." in done.stderr


@pytest.mark.parametrize("arguments", [["manage.py", "serve"], ["-m", "celery", "-A", "chatapp", "worker"]])
def test_no_process_starts_with_an_invalid_setting(tmp_path: Path, arguments: list[str]) -> None:
    env = {"DATA_DIR": str(tmp_path), "ENV_FILE": "/dev/null", "RETENTION_DAYS": "-1"}
    done = subprocess.run(
        [sys.executable, *arguments],
        check=False,
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines() == ["RETENTION_DAYS must be a whole number from 0 to 36,500, not '-1'."]
    assert not (tmp_path / "palimpsest.sqlite3").exists()


@pytest.mark.parametrize(
    ("named", "told"),
    [
        ("nowhere.to_be.Found", "OFFLOADER cannot be imported: No module named 'nowhere'"),
        ("pathlib.Path", "OFFLOADER names pathlib.Path, which has no offload_context, offload_tool_result"),
    ],
)
def test_no_process_starts_with_an_invalid_offloader(tmp_path: Path, named: str, told: str) -> None:
    done = run_manage({"DATA_DIR": str(tmp_path), "OFFLOADER": named}, "check")
    assert done.returncode == 1
    assert done.stderr.startswith(told)
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(("name", "reason"), [("none", "No such file"), ("folder", "Is a directory")])
def test_an_unreadable_environment_file_is_reported(tmp_path: Path, name: str, reason: str) -> None:
    """Docker creates a folder if the file to mount is missing."""
    (tmp_path / "folder").mkdir()
    done = run_manage({"DATA_DIR": str(tmp_path), "ENV_FILE": str(tmp_path / name)}, "check")
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert done.stderr.startswith(f"ENV_FILE names {tmp_path / name}, which cannot be read: ")
    assert reason in done.stderr


def test_a_folder_in_place_of_the_environment_file_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some people keep a virtual environment in `.env`."""
    monkeypatch.delenv("ENV_FILE", raising=False)
    monkeypatch.setattr(environment, "DOTENV", tmp_path)
    environment.load_dotenv()
    assert not environment.problems


def test_an_environment_file_with_shell_syntax_and_windows_line_ends_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("COLOUR", "SIZE", "export"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setenv("ENV_FILE", str(tmp_path / "env"))
    (tmp_path / "env").write_bytes(b"\xef\xbb\xbfCOLOUR=red\r\nexport  SIZE = 'ten'\r\nexport=all\r\n")
    environment.load_dotenv()
    assert [os.environ.get(name) for name in ("COLOUR", "SIZE", "export")] == ["red", "ten", "all"]


def test_the_environment_file_of_the_checkout_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ENV_FILE", raising=False)
    monkeypatch.setenv("COLOUR", "")
    monkeypatch.delenv("COLOUR")
    assert environment.DOTENV == ROOT / ".env"
    monkeypatch.setattr(environment, "DOTENV", tmp_path / ".env")
    environment.DOTENV.write_text("# a comment\nCOLOUR='red'\n")
    environment.load_dotenv()
    assert os.environ["COLOUR"] == "red"


def test_settings_as_operators_write_them_are_accepted(tmp_path: Path) -> None:
    right = {
        "HOST": "::",
        "PORT": "0",
        "PUBLIC_URL": "https://chat.example.com:8443/",
        "ALLOWED_HOSTS": ".example.com,[::1] 127.0.0.1,*",
        "TRUSTED_PROXIES": "10.0.0.1,192.168.0.0/16 ::1",
        "LOG_LEVEL": "warning",
        "LOG_FORMAT": "json",
        "ENABLE_COMPACTION": "OFF",
        "RETENTION_DAYS": "0",
        "MAX_REQUEST_BYTES": "67_108_864",
        "DATABASE_URL": "postgresql://user:p%40ss@host/database",
        "REDIS_URL": "redis://:p%40ss@redis:6379/0",
        "HTTP_FETCH_HOSTS": "docs.python.org *.wikipedia.org * wiki:8080 [::1]:8080",
        "DEFAULT_TOOLS": "none",
        "EMAIL_URL": "smtps://me:p%40ss@mail.example.com:465?from=chat@example.com",
    }
    done = run_manage({"DATA_DIR": str(tmp_path), **right}, "check")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("written", "origin"),
    [
        ("HTTPS://Chat.Example.com", "https://chat.example.com"),
        ("https://chat.example.com:443/", "https://chat.example.com"),
        ("http://chat.example.com:80", "http://chat.example.com"),
        ("http://chat.example.com:443", "http://chat.example.com:443"),
        ("http://[2001:DB8::1]:8080", "http://[2001:db8::1]:8080"),
    ],
)
def test_the_public_url_is_normalised_as_browsers_do(
    monkeypatch: pytest.MonkeyPatch, written: str, origin: str
) -> None:
    monkeypatch.setenv("PUBLIC_URL", written)
    assert environment.origin("PUBLIC_URL") == origin
    assert not environment.problems


@pytest.mark.parametrize(
    "written", ["https://chat.example.com/chat", "https://chat.example.com?x=1", "https://me:geheim@host"]
)
def test_a_public_url_with_more_than_a_host_is_refused(refused: list[str], written: str) -> None:
    os.environ["PUBLIC_URL"] = written
    assert environment.origin("PUBLIC_URL") == ""
    [told] = refused
    assert told.startswith("PUBLIC_URL must be an address such as https://host.example, without a path")
    assert "geheim" not in told


@pytest.mark.parametrize(
    "written",
    [
        "unix:///run/redis.sock",
        "redis://:geheim@host/cache",
        "redis://:geheim@host?db=2",
        "redis://:geheim@host/0?socket_timeout=5",
    ],
)
def test_a_redis_url_that_celery_cannot_parse_is_refused(refused: list[str], written: str) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        Connection(written).default_channel.client.close()
    os.environ["REDIS_URL"] = written
    assert environment.redis_url("REDIS_URL") == ""
    [told] = refused
    assert told.startswith("REDIS_URL must be an address such as redis://host:6379/0, not ")
    assert "geheim" not in told


@pytest.mark.parametrize(
    "written", ["redis://host", "redis://:p%2Fw@host:6379/", "rediss://u:p@host/3?ssl_cert_reqs=required"]
)
def test_a_valid_redis_url_is_accepted(monkeypatch: pytest.MonkeyPatch, written: str) -> None:
    monkeypatch.setenv("REDIS_URL", written)
    assert environment.redis_url("REDIS_URL") == written


@pytest.mark.parametrize(
    "written",
    [
        "sqlite://",
        "sqlite:///",
        "sqlite://:memory:",
        "sqlite:///file::memory:?cache=shared",
        "postgresql://host",
        "postgresql://user:secret@host:5432/",
    ],
)
def test_a_database_in_memory_or_without_a_name_is_refused(refused: list[str], written: str) -> None:
    """Each connection to a database in memory would get its own empty one."""
    os.environ["DATABASE_URL"] = written
    found = environment.database("DATABASE_URL", "sqlite:////folder/file", dj_database_url.parse)
    assert found["NAME"] == "/folder/file"
    [told] = refused
    assert told.startswith("DATABASE_URL must be an address such as postgresql://")
    assert len(told.splitlines()) == 1


def test_processes_that_start_at_once_in_containers_can_share_a_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In containers each process has id 1. The threads here share an id, too."""
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    monkeypatch.delenv("SECRET_KEY", raising=False)
    monkeypatch.setattr(environment, "problems", [])

    def start(number: int) -> str:
        environment.writable_folder("DATA_DIR", tmp_path)
        return environment.secret_key(tmp_path / f"key-{number // 8}")

    with ThreadPoolExecutor(8) as containers:
        keys = list(containers.map(start, range(800)))
    assert environment.problems == []
    assert [len(set(keys[first : first + 8])) for first in range(0, 800, 8)] == [1] * 100
    assert not list(tmp_path.glob(".*"))


def test_a_start_after_a_killed_first_start_makes_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SECRET_KEY", raising=False)
    monkeypatch.setattr(environment, "problems", [])
    (tmp_path / f".secret_key-{os.getpid()}").touch()
    assert len(environment.secret_key(tmp_path / "secret_key")) >= environment.LEAST_KEY_CHARS
