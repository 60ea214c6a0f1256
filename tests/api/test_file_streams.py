"""Files are streamed unchanged, in chunks; a stream that Django would read into memory fails the test run."""

from __future__ import annotations

import io
from zipfile import ZipFile

import pytest

from tests.api.program import Program

LINES = b"".join(b"line %06d\n" % number for number in range(60_000))
UPLOAD = (
    b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\nContent-Type: text/plain\r\n\r\n'
    + LINES
    + b"\r\n--b--\r\n"
)


async def test_a_file_is_returned_unchanged_and_head_reports_its_length(alice_program: Program) -> None:
    form = {"content-type": "multipart/form-data; boundary=b"}
    made = await alice_program.call("POST", "files", body=UPLOAD, headers=form)
    assert made.status_code == 201, made.content
    shown = await alice_program.get(made.json()["url"])
    assert (shown.status_code, shown.content == LINES) == (200, True)
    head = await alice_program.call("HEAD", made.json()["url"])
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == shown.headers["content-length"] == str(len(LINES))


@pytest.mark.parametrize(("path", "name"), [("export", "memory/MEMORY.md"), ("memory/export", "MEMORY.md")])
async def test_archives_are_returned_whole_and_head_has_no_body(
    path: str, name: str, alice_program: Program
) -> None:
    await alice_program.call("PUT", "memory/profile", body={"markdown": "- Keeps bees."})
    answer = await alice_program.get(path)
    assert answer.status_code == 200
    with ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.testzip() is None
        assert archive.read(name) == b"- Keeps bees.\n"
    head = await alice_program.call("HEAD", path)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"] == "application/zip"
