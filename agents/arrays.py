"""numpy, imported when a name of it is first read: 16 MB and 0.1 s that a process at rest does not need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents.libraries import Library

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
else:
    np, npt = Library("numpy"), Library("numpy.typing")

__all__ = ["np", "npt"]
