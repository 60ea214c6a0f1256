"""A real S3-compatible server (moto's) on a free port of loopback, in a process of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from tests.servers.waiting import free_port, wait_for


@dataclass
class S3Server:
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="palimpsest-s3-")))
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> S3Server:
        self.port = free_port()
        with open(self.folder / "log", "wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)],
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"},
            )
        wait_for(self._answers, timeout_s=60, what="the S3 server", explain=self.read_log)
        return self

    def new_bucket(self, name: str) -> str:
        request = urllib.request.Request(f"{self.url}/{name}", method="PUT")
        urllib.request.urlopen(request, timeout=30).close()
        return name

    def keys(self, bucket: str) -> list[str]:
        """Of all objects in the bucket."""
        with urllib.request.urlopen(f"{self.url}/{bucket}?list-type=2", timeout=30) as response:
            found = ElementTree.fromstring(response.read())
        return [element.text or "" for element in found.iter() if element.tag.endswith("Key")]

    def stop(self) -> None:
        if self.process:
            self.process.terminate()
            self.process.wait(30)
        shutil.rmtree(self.folder, ignore_errors=True)

    def read_log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def _answers(self) -> bool:
        try:
            urllib.request.urlopen(f"{self.url}/moto-api/", timeout=2).close()
        except OSError:
            return False
        return True
