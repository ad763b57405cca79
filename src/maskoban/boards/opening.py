"""Opening a level file, which may be a pipe, and telling by how it begins of which format it is."""

from __future__ import annotations

import io
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, BinaryIO, cast

from .errors import LevelFileError
from .formats.npy import MAGIC
from .writing import said

TO_LEVELS = "maskoban bulk export"

_HEAD = 4096


def detect(head: bytes) -> str:
    """The format of a file that begins with ``head``: ``npz``, ``npy``, ``slc``, or ``xsb`` for all text.

    >>> detect(b"PK\\x03\\x04"), detect(b"<?xml "), detect(b"; 0\\n#####\\n")
    ('npz', 'slc', 'xsb')
    """
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "npz"
    if head.startswith(MAGIC[:6]):
        return "npy"
    # XML may be UTF-16, in which every other byte is zero.
    if re.match(rb"(?:\xef\xbb\xbf|\xff\xfe|\xfe\xff)?[\s\0]*<", head):
        return "slc"
    return "xsb"


@contextmanager
def opened(name: str) -> Iterator[tuple[BinaryIO, bytes]]:
    """A file, and how it begins. A pipe is read as it comes, or where the format seeks, kept in a file first."""
    if name == "-" and sys.stdin is None:
        raise LevelFileError("-", "standard input is closed")
    with said(name, "read"), ExitStack() as stack:
        source: BinaryIO = sys.stdin.buffer if name == "-" else stack.enter_context(open(name, "rb"))
        if source.seekable():
            start = source.tell()
            head = source.read(_HEAD)
            source.seek(start)
        else:
            pipe = cast(io.BufferedReader, source)
            head = _first_bytes(pipe)
            source = io.BufferedReader(_Pipe(head, pipe))
            if detect(head) != "xsb":
                copy = stack.enter_context(tempfile.TemporaryFile())
                shutil.copyfileobj(source, copy)
                copy.seek(0)
                source = copy
        if head.startswith(b"PAR1") and b"\0" in head:
            raise LevelFileError(name, f"a Parquet file; {TO_LEVELS} makes level files of a dataset")
        yield source, head


def _first_bytes(pipe: io.BufferedReader) -> bytes:
    """As much of a pipe as is there, and at least as much as tells the formats apart."""
    head = b""
    while len(head.lstrip(b"\xef\xbb\xbf\xff\xfe\0 \t\r\n\v\f")) < 4 and len(head) < _HEAD:
        part = pipe.read1(_HEAD)
        if not part:
            break
        head += part
    return head


class _Pipe(io.RawIOBase):
    """A pipe from its beginning, though its head was read already."""

    def __init__(self, head: bytes, pipe: io.BufferedReader) -> None:
        self._head, self._pipe = head, pipe

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        if not self._head:
            self._head = self._pipe.read1(len(into))
        data, self._head = self._head[: len(into)], self._head[len(into) :]
        into[: len(data)] = data
        return len(data)
