"""Import large libraries when they are used, not when the service starts."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Library:
    """A lazily imported library: reading one of its names imports it.

    Next to it, under TYPE_CHECKING, is the import statement for type checkers.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    # Python calls this only for attributes that are not set yet.
    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self._name), name)
        setattr(self, name, value)  # so that the next access skips this method
        return value
