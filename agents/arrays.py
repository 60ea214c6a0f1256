"""numpy, imported on first use: it takes 16 MB and 0.1 s, which an idle process does not need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents.libraries import Library

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
else:
    np, npt = Library("numpy"), Library("numpy.typing")

__all__ = ["np", "npt"]
