"""Opens zips that people send, which may be small and take any amount of memory.

The list of files in one may be as large as the zip, and takes ten times that in memory.
"""

from __future__ import annotations

import sys
from typing import IO
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

READABLE = (ZIP_STORED, ZIP_DEFLATED)
"""Of other packings the library unpacks all that it has read, however few bytes were asked for."""


class _BoundedReads:
    """A file that reads no more than `most_bytes` at once: the list of a zip is read at once, whole."""

    def __init__(self, file: IO[bytes], most_bytes: int) -> None:
        self._file, self.most_bytes = file, most_bytes
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        if size > self.most_bytes:
            raise BadZipFile("It holds too many files.")
        return self._file.read(size)


def open_zip_file(file: IO[bytes], most_list_bytes: int) -> ZipFile:
    """Return the zip in this file, which stays open when the zip is closed. Raise BadZipFile."""
    reads = _BoundedReads(file, most_list_bytes)
    archive = ZipFile(reads)
    reads.most_bytes = sys.maxsize
    if any(each.compress_type not in READABLE for each in archive.infolist()):
        raise BadZipFile("Only files that are stored or deflated are read.")
    return archive
