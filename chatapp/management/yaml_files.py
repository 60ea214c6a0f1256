"""Reads YAML files that are passed to commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from django.core.management.base import CommandError


def read_yaml_file(file: Path, outcome: str) -> Any:
    """Return the parsed document. Raise CommandError, which ends with `outcome` if the YAML is not valid."""
    try:
        return yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise CommandError(f"{file} is not a UTF-8 text.") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise CommandError(f"{file}{where}: {error.problem}. {outcome}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # an impossible date, or lists too deep
        raise CommandError(f"{file} is not valid YAML: {error}. {outcome}") from None
