"""The environment of the tests, without settings from the developer's shell or `.env`."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def documented_names() -> list[str]:
    """Return the variables that `.env.example` lists, commented or not."""
    lines = (ROOT / ".env.example").read_text().splitlines()
    return [line.lstrip("# ").partition("=")[0] for line in lines if "=" in line]


def clean_environment() -> None:
    for name in documented_names():
        os.environ.pop(name, None)
    os.environ["ENV_FILE"] = os.devnull
    # Otherwise each process that the tests start would compile every module again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # No server listens there, so a model server on the developer's machine is not offered.
    os.environ["OLLAMA_URL"] = "http://127.0.0.1:9/v1"
