"""Exports that an editor or PowerShell saved with a byte order mark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chatapp.features.importing.stream import Progress, entries


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_byte_order_mark_is_ignored(tmp_path: Path, mark: bytes) -> None:
    path = tmp_path / "conversations.json"
    path.write_bytes(mark + json.dumps([{"mapping": {}}]).encode())
    assert [entry.problem for entry in entries(path, Progress())] == [""]
