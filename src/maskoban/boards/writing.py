"""Files that appear whole or not at all, and what the system says against them in a sentence of ours."""

from __future__ import annotations

import errno
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, Literal

from .errors import LevelFileError


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write that takes its name once it is whole: no half-written file stays, no old one is lost.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with whole_file(folder + "/a") as file:
    ...         _ = file.write(b"board")
    ...     os.listdir(folder)
    ['a']
    """
    name = os.fspath(path)
    target = os.path.realpath(name)
    if os.path.exists(target) and not os.path.isfile(target):  # a device or a pipe cannot be replaced
        with said(name, "written"), open(target, "wb") as out:
            yield out
        return
    folder, base = os.path.split(target)
    part = os.path.join(folder, f".{base}.{secrets.token_hex(4)}.part")
    try:
        with said(name, "written"), open(part, "xb") as out:
            yield out
        with said(name, "written"):
            os.replace(part, target)
    except BaseException:
        if os.path.exists(part):
            os.unlink(part)
        raise


def check_place(path: str | os.PathLike[str]) -> None:
    """Raise now what opening a file there would raise after the long work whose result it is to hold.

    >>> check_place("nowhere/sheet.png")
    Traceback (most recent call last):
        ...
    maskoban.boards.errors.LevelFileError: nowhere/sheet.png: cannot be written: No such file or directory
    """
    name = os.fspath(path)
    target = os.path.realpath(name)
    if os.path.isfile(target) or not os.path.exists(target):
        with said(name, "written"), tempfile.TemporaryFile(dir=os.path.dirname(target)):
            pass


@contextmanager
def said(name: str | os.PathLike[str], done: Literal["read", "written"]) -> Iterator[None]:
    """What the system says against reading or writing ``name``, as a sentence of ours.

    >>> with said("levels", "read"):
    ...     open("nowhere/levels")
    Traceback (most recent call last):
        ...
    maskoban.boards.errors.LevelFileError: levels: no such file or folder
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.errno == errno.ENOENT and done == "read":
            raise LevelFileError(os.fspath(name), "no such file or folder") from None
        raise LevelFileError(os.fspath(name), f"cannot be {done}: {error.strerror or error}") from None
