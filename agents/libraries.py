"""Import large libraries when they are used, not when the service starts."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Library:
    """Stands for a library, and imports it when one of its names is read.

    The import statement that type checkers read stands beside it, under TYPE_CHECKING.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    # Python asks here only for names that the object does not have yet.
    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self._name), name)
        setattr(self, name, value)  # so that the next look finds it here
        return value
