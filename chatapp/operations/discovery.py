"""Imports the modules that packages declare under an agreed name: `models`, `admin`, `receivers`, `tasks`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

CHATAPP = Path(__file__).resolve().parents[1]


def import_every(name: str) -> None:
    """Import the module or package of this name from each package below `chatapp`, in alphabetical order."""
    files = [*CHATAPP.glob(f"*/**/{name}.py"), *CHATAPP.glob(f"*/**/{name}/__init__.py")]
    paths = {path.parent if path.name == "__init__.py" else path.with_suffix("") for path in files}
    for path in sorted(paths):
        import_module(".".join(("chatapp", *path.relative_to(CHATAPP).parts)))
