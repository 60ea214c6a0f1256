"""Log lines identify their request and contain nothing that users wrote."""

from __future__ import annotations

import json
import logging
import re
import sys

import pytest

from chatapp.operations.monitoring.logs import ResponseLevelFilter, build_formatter
from tests.fixtures.processes import ServiceStarter
from tests.servers.service import Service, run_manage


@pytest.fixture(scope="module")
def service(start_shared: ServiceStarter) -> Service:
    return start_shared(is_new=True)


def test_each_request_is_logged_as_json_with_its_own_id(start_service):
    service = start_service(LOG_FORMAT="json")
    for _ in range(2):
        service.client().get("/nowhere")
    service.wait_for_output(r"(?s)Not Found: /nowhere.*Not Found: /nowhere")
    lines = [json.loads(line) for line in service.output().splitlines() if "/nowhere" in line]
    assert [line["level"] for line in lines] == ["info", "info"]  # Anybody can request any address.
    assert all(line["logger"] == "django.request" and line["timestamp"].endswith("Z") for line in lines)
    assert len({line["request_id"] for line in lines}) == 2


def test_plain_log_lines_contain_the_request_id(service):
    service.client().get("/nowhere")
    line = service.wait_for_output(r".*Not Found: /nowhere").group(0)
    assert " INFO django.request [" in line


def test_a_valid_request_id_is_kept_in_the_response_and_the_log(service):
    with service.client() as client:
        answer = client.get("/nowhere", headers={"X-Request-Id": "gateway-17.a"})
        assert answer.headers["x-request-id"] == "gateway-17.a"
        service.wait_for_output(r"INFO django\.request \[gateway-17\.a\]: Not Found: /nowhere")
        made = {client.get("/healthz").headers["x-request-id"] for _ in range(2)}
        assert len(made) == 2
        for odd in ("", "a" * 65, "two words", "a]: forged"):
            named = client.get("/healthz", headers={"X-Request-Id": odd}).headers["x-request-id"]
            assert re.fullmatch("[0-9a-f]{12}", named)


def test_a_404_is_not_logged_at_level_warning(start_service):
    service = start_service(is_new=True, LOG_LEVEL="WARNING")
    service.client().get("/nowhere")
    assert service.client().post("/accounts/login/").status_code == 403
    service.wait_for_output("WARNING django.security.csrf")
    assert "/nowhere" not in service.output()


@pytest.mark.parametrize("is_json", [True, False])
@pytest.mark.parametrize(
    "address",
    [
        "/setup/{}",
        "/accounts/password/reset/key/{}/",
        "/accounts/confirm-email/{}/",
        "/accounts/signup/?invitation={}",
        "/accounts/oidc/sso/login/callback/?code={}&state={}",
        "/s/{}",
        "/api/v1/shared/{}",
        "/api/v1/shared/{}/images/1",
    ],
)
def test_links_that_grant_access_are_not_logged(address, is_json):
    """Anybody who reads a link like these can use it."""
    secret = "7f3a-secret.value_1"
    words = ("Internal Server Error: %s", address.replace("{}", secret))
    record = logging.LogRecord("django.request", logging.ERROR, __file__, 1, words[0], (words[1],), None)
    written = build_formatter(is_json).format(record)
    assert "Internal Server Error" in written
    assert secret not in written


@pytest.mark.parametrize("is_json", [True, False])
def test_a_traceback_does_not_show_the_values_of_variables(is_json):
    try:
        content = "my diary"
        raise ValueError(len(content))
    except ValueError:
        record = logging.LogRecord("app", logging.ERROR, __file__, 1, "Failed: %s", ("x",), sys.exc_info())
    written = build_formatter(is_json).format(record)
    assert "Failed: x" in written
    assert "Traceback" in written
    assert "ValueError: 8" in written
    assert "my diary" not in written.replace('content = "my diary"', "").replace(
        r"content = \"my diary\"", ""
    )
    assert is_json is False or json.loads(written)["level"] == "error"


@pytest.mark.parametrize(
    ("status", "before", "after"),
    [
        (404, "WARNING", "INFO"),
        (403, "WARNING", "WARNING"),
        (500, "ERROR", "ERROR"),
        (502, "ERROR", "WARNING"),  # a provider's fault
        (503, "ERROR", "WARNING"),  # e.g. an answer that a forgetting of its user has ended
    ],
)
def test_a_response_is_logged_as_an_error_only_if_the_service_is_at_fault(status, before, after):
    told = {"msg": "Told.", "status_code": status, "levelno": getattr(logging, before), "levelname": before}
    record = logging.makeLogRecord(told)
    ResponseLevelFilter().filter(record)
    assert record.levelname == after


WORKER = """
import logging
from chatapp.operations.workers.celery_app import app
app.log.setup(loglevel="DEBUG")
print(*(logging.getLevelName(logging.getLogger(name).getEffectiveLevel()) for name in ("", "celery", "chatapp")))
"""


def test_a_worker_uses_the_configured_log_level(tmp_path):
    env = {
        "DATA_DIR": str(tmp_path),
        "LOG_LEVEL": "ERROR",
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:9/nothing",
    }
    env |= {"REDIS_URL": "redis://127.0.0.1:9/0"}
    assert run_manage(env, "shell", "-v", "0", "-c", WORKER).stdout.split() == ["ERROR"] * 3
