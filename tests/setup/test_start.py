"""What a process imports at its start: as little as possible, to start within two seconds and use little memory."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.environment import ROOT

STARTED = """
import sys
import django
django.setup()
import chatapp.operations.serving.launcher
from chatapp.operations.workers.celery_app import app
app.loader.import_default_modules()
print(*sys.modules)
from ninja import Schema
from ninja.params.models import ParamModel
answers = [each for each in Schema.__subclasses__() if each.__name__ == "NinjaResponseSchema"]
types = {repr(each.model_fields["response"].annotation) for each in answers}
parameters = [each for kind in ParamModel.__subclasses__() for each in kind.__subclasses__() if not each.__subclasses__()]
built = [each for each in answers + parameters if each.__pydantic_complete__ and not each.__name__.startswith("_")]
print(len(answers), len(types), len(parameters), len(built))
"""
WHEN_USED = {
    "OpenSSL", "PIL.Image", "aiohttp", "chatapp.accounts.addresses", "chatapp.operations.admin.site", "docx", "fido2",
    "inscriptis", "jsonschema", "lxml", "mcp", "numpy", "obstore", "openai", "openpyxl", "pptx", "pypdf", "redis",
}  # fmt: skip


@pytest.fixture(scope="module")
def started() -> list[str]:
    """Return the output of a process that has just started: a line of modules, and a line of class counts."""
    done = subprocess.run(
        [sys.executable, "-c", STARTED], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def test_a_start_imports_nothing_that_a_chat_does_not_need(started):
    imported = set(started[0].split())
    assert {"chatapp.urls", "chatapp.compaction.tasks", "ninja", "twisted"} <= imported
    assert WHEN_USED & imported == set()
    assert not {name for name in imported if name.startswith("chatapp.") and ".admin" in name}


def test_responses_of_one_type_share_a_class_and_validators_are_built_on_first_use(started):
    answers, types, parameters, built = map(int, started[1].split())
    assert answers == types > 10
    assert parameters > 100
    assert built == 0


SLOW_IMPORT = """
import asyncio, sys, time
from dataclasses import replace
import agents.chat_models.openai_client as model
from agents.types import ModelEndpoint
from tests.servers.openai_server import ModelServer

class Slow:
    def find_spec(self, name, *_):
        if name == "openai":
            time.sleep(0.6)

sys.meta_path.insert(0, Slow())
with ModelServer() as server:
    endpoint = replace(ModelEndpoint("test-model", server.base_url), connect_timeout_s=0.5)
    print(asyncio.run(model.fetch_models(endpoint)))
"""


def test_a_slow_first_import_does_not_count_towards_the_timeout_of_the_server():
    done = subprocess.run(
        [sys.executable, "-c", SLOW_IMPORT], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert "test-model" in done.stdout, done.stderr
