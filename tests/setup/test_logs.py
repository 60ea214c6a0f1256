"""Log lines as an operator reads them: which request they belong to, and nothing that users wrote."""

from __future__ import annotations

import json
import logging
import sys

import pytest

from chatapp.operations.logs import build_formatter


def test_each_request_is_logged_as_json_under_an_id_of_its_own(start_service):
    service = start_service(LOG_FORMAT="json")
    for _ in range(2):
        service.client().get("/nowhere")
    service.wait_for_output(r"(?s)Not Found: /nowhere.*Not Found: /nowhere")
    lines = [json.loads(line) for line in service.output().splitlines() if "/nowhere" in line]
    assert [line["level"] for line in lines] == ["warning", "warning"]
    assert all(line["logger"] == "django.request" and line["timestamp"].endswith("Z") for line in lines)
    assert len({line["request_id"] for line in lines}) == 2


def test_plain_lines_name_their_request(service):
    service.client().get("/nowhere")
    line = service.wait_for_output(r".*Not Found: /nowhere").group(0)
    assert " WARNING django.request [" in line


@pytest.mark.parametrize("is_json", [True, False])
def test_a_traceback_does_not_show_what_the_variables_held(is_json):
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
