"""Files are streamed unchanged, in chunks; a stream that Django would read into memory fails the test run."""

from __future__ import annotations

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


@pytest.mark.parametrize("path", ["export", "memory/export"])
async def test_archives_are_returned_and_head_has_no_body(path: str, alice_program: Program) -> None:
    answer = await alice_program.get(path)
    assert answer.status_code == 200
    assert answer.content.startswith(b"PK")
    assert (await alice_program.call("HEAD", path)).content == b""
