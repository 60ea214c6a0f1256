"""The tables of all packages. Django looks for models here; each package declares its own."""

from importlib import import_module
from pathlib import Path

for found in sorted(Path(__file__).parent.glob("*/models.py")):
    import_module(f"chatapp.{found.parent.name}.models")
