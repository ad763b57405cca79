"""A format is one registration: then every function and command reads and writes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import pytest
from typer.testing import CliRunner

from maskoban.boards import (
    FORMATS,
    Format,
    Level,
    Source,
    check_writable,
    has_metadata,
    read,
    read_boards,
    register,
    write,
)
from maskoban.cli.app import app
from maskoban.errors import MaskobanError

MAGIC = b"rows 1\n"


def read_rows(source: Source) -> Iterator[Level]:
    """One board a line, rows separated by slashes."""
    if source.file.readline() != MAGIC:
        raise source.error("expected the line rows 1", line=1)
    for line in source.file:
        yield Level.parse(line.decode().rstrip("\n").replace("/", "\n"))


def write_rows(out: BinaryIO, levels: Iterable[Level]) -> None:
    out.write(MAGIC)
    for level in levels:
        out.write(str(level).replace("\n", "/").encode() + b"\n")


@pytest.fixture(params=["with sniff", "by suffix"])
def rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FORMATS, "_values", dict(FORMATS._values))
    sniff = (lambda head: head.startswith(MAGIC)) if request.param == "with sniff" else None
    register(Format("rows", suffixes=[".rows"], sniff=sniff, read=read_rows, write=write_rows))


LEVELS = [Level.parse("#####\n#@$.#\n#####"), Level.parse("#####\n#.$@#\n#####")]


@pytest.mark.usefixtures("rows")
def test_a_new_format_is_read_and_written(tmp_path: Path) -> None:
    path = tmp_path / "two.rows"
    check_writable(path)
    write(path, LEVELS)
    assert path.read_bytes() == b"rows 1\n#####/#@$.#/#####\n#####/#.$@#/#####\n"
    assert read(path) == LEVELS
    assert read(tmp_path) == LEVELS
    assert read_boards(path).shape == (2, 3, 5)
    assert has_metadata(path)  # nobody knows


@pytest.mark.usefixtures("rows")
def test_a_new_format_is_converted_by_the_command_line(tmp_path: Path) -> None:
    write(tmp_path / "two.sok", LEVELS)
    for source, target in (("two.sok", "two.rows"), ("two.rows", "two.npz"), ("two.npz", "again.rows")):
        assert (
            CliRunner().invoke(app, ["convert", f"{tmp_path}/{source}", f"{tmp_path}/{target}"]).exit_code
            == 0
        )
    assert (tmp_path / "again.rows").read_bytes() == (tmp_path / "two.rows").read_bytes()


@pytest.mark.usefixtures("rows")
def test_a_name_is_registered_once() -> None:
    with pytest.raises(MaskobanError, match="a format is already called 'rows'"):
        register(Format("rows", read=read_rows, write=write_rows))
