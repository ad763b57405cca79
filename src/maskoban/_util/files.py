"""Files that appear whole or not at all, and errors of the system as one sentence."""

from __future__ import annotations

import errno
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, Literal

from maskoban._util.signals import terminate_as_interrupt
from maskoban.errors import FileError


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write that gets its name when the block ends; after an error the old file, if any, stays.

    SIGTERM in the block is treated like Ctrl-C, so that it leaves nothing behind either.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_file(folder + "/a") as file:
    ...         _ = file.write(b"board")
    ...     os.listdir(folder)
    ['a']
    """
    name = os.fspath(path)
    target = os.path.realpath(name)
    if os.path.exists(target) and not os.path.isfile(target):  # a device or a pipe cannot be replaced
        with file_errors(name, "written"), open(target, "wb") as out:
            yield out
        return
    # The target's name is not part of it: the whole could be longer than a file system allows.
    part = os.path.join(os.path.dirname(target), f".maskoban-{secrets.token_hex(4)}.part")
    with terminate_as_interrupt():
        try:
            with file_errors(name, "written"):
                with open(part, "xb") as out:
                    yield out
                os.replace(part, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(part)
            raise


def check_can_write(path: str | os.PathLike[str]) -> None:
    """Raise before long work what opening its output file would raise after it.

    >>> check_can_write("nowhere/sheet.png")
    Traceback (most recent call last):
        ...
    maskoban.errors.FileError: nowhere/sheet.png: cannot be written: No such file or directory
    """
    name = os.fspath(path)
    target = os.path.realpath(name)
    if os.path.isfile(target) or not os.path.exists(target):
        with file_errors(name, "written"), tempfile.TemporaryFile(dir=os.path.dirname(target)):
            pass


@contextmanager
def file_errors(name: str | os.PathLike[str], action: Literal["read", "written"]) -> Iterator[None]:
    """Turn an ``OSError`` while ``name`` is read or written into a ``FileError``.

    >>> with file_errors("levels", "read"):
    ...     open("nowhere/levels")
    Traceback (most recent call last):
        ...
    maskoban.errors.FileError: levels: no such file or folder
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.errno == errno.ENOENT and action == "read":
            raise FileError(os.fspath(name), "no such file or folder") from None
        raise FileError(os.fspath(name), f"cannot be {action}: {error.strerror or error}") from None
