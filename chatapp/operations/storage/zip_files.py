"""Opens uploaded zips, which may be small and need any amount of memory.

The list of files in a zip may be as large as the zip, and takes ten times that in memory.
"""

from __future__ import annotations

import sys
from typing import IO
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

READABLE = (ZIP_STORED, ZIP_DEFLATED)
"""With other compression methods, the library unpacks all that it has read, however few bytes were requested."""


class _BoundedReads:
    """A file that raises BadZipFile on a read of more than `most_bytes`, because the library reads a zip's list at
    once."""

    def __init__(self, file: IO[bytes], most_bytes: int) -> None:
        self._file, self.most_bytes = file, most_bytes
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        if size > self.most_bytes:
            raise BadZipFile("It holds too many files.")
        return self._file.read(size)


def open_zip_file(file: IO[bytes], most_list_bytes: int) -> ZipFile:
    """Open the zip in this file. Closing the zip leaves the file open. Raise BadZipFile."""
    reads = _BoundedReads(file, most_list_bytes)
    archive = ZipFile(reads)
    reads.most_bytes = sys.maxsize
    if any(each.compress_type not in READABLE for each in archive.infolist()):
        raise BadZipFile("Only files that are stored or deflated are read.")
    return archive
