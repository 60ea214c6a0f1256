"""A real S3-compatible server (moto) in its own process, on a free loopback port."""

from __future__ import annotations

import tempfile
import urllib.request
from pathlib import Path
from xml.etree import ElementTree

import obstore
from obstore.store import S3Store

from tests.servers.service import ADDRESS, OwnProcess
from tests.servers.waiting import PATIENCE_S


class S3Server:
    """The server process. The system chooses its port."""

    port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> S3Server:
        self._folder = tempfile.TemporaryDirectory(prefix="palimpsest-s3-")
        self._process = OwnProcess(
            ["-m", "moto.server", "-H", "127.0.0.1", "-p", "0"],
            Path(self._folder.name) / "log",
            {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"},
        )
        self._process.launch()
        self.port = int(self._process.wait_for_output(ADDRESS).group(1))
        return self

    def new_bucket(self, name: str) -> str:
        request = urllib.request.Request(f"{self.url}/{name}", method="PUT")
        urllib.request.urlopen(request, timeout=PATIENCE_S).close()
        return name

    def put(self, bucket: str, key: str, content: bytes) -> None:
        # Without a content type urllib declares a form, and moto waits for the form's end.
        kind = {"Content-Type": "application/octet-stream"}
        request = urllib.request.Request(f"{self.url}/{bucket}/{key}", content, kind, method="PUT")
        urllib.request.urlopen(request, timeout=PATIENCE_S).close()

    def get(self, bucket: str, key: str) -> bytes:
        """Read an object with the service's access key, because objects that the service stores are private."""
        store = S3Store(
            bucket,
            endpoint=self.url,
            region="us-east-1",
            access_key_id="test",
            secret_access_key="test",
            client_options={"allow_http": True},
        )
        return bytes(obstore.get(store, key).bytes())

    def keys(self, bucket: str) -> list[str]:
        """Return the keys of all objects in the bucket."""
        with urllib.request.urlopen(f"{self.url}/{bucket}?list-type=2", timeout=PATIENCE_S) as response:
            found = ElementTree.fromstring(response.read())
        return [element.text or "" for element in found.iter() if element.tag.endswith("Key")]

    def stop(self) -> None:
        self._process.stop()
        self._folder.cleanup()
