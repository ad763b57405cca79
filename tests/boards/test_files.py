"""Reading and writing by name: found by content, whole or not at all, through pipes too."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest

from maskoban.boards import FORMATS, Level, check_writable, detect, read, read_boards, stream, write
from maskoban.errors import FileError, MaskobanError

LEVELS = [Level.parse("#####\n#@$.#\n#####"), Level.parse("######\n#@ $.#\n######")]


def for_format(name):
    """Levels that the format can hold: .npy has one size only."""
    return [LEVELS[0], LEVELS[0]] if name == "npy" else LEVELS


class Pipe:
    """Standard input or output as a program sees it."""

    def __init__(self, data=b""):
        self.buffer = io.BytesIO(data)


@pytest.mark.parametrize("name", list(FORMATS))
@pytest.mark.parametrize("ending", ["xsb", "sok", "slc", "npz", "npy", "dat", ""])
def test_the_content_decides_not_the_ending(tmp_path, name, ending):
    path = tmp_path / f"levels.{ending}"
    levels = for_format(name)
    write(path, levels, format=name)
    assert [str(level) for level in read(path)] == [str(level) for level in levels]


@pytest.mark.parametrize(
    ("ending", "head"),
    [
        (".xsb", b"###"),
        (".txt", b"###"),
        (".sok", b"###"),
        (".SLC", b"<?xml"),
        (".npz", b"PK"),
        (".npy", b"\x93NUMPY"),
    ],
)
def test_the_ending_decides_what_is_written(tmp_path, ending, head):
    path = tmp_path / f"levels{ending}"
    write(path, for_format(ending[1:]))
    assert path.read_bytes().startswith(head)


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (b"\xef\xbb\xbf  <SokobanLevels>", "slc"),
        ("\ufeff<?xml".encode("utf-16-le"), "slc"),
        ("<?xml".encode("utf-16-be"), "slc"),
        (b"\n\n#####", "xsb"),
        (b"Author: <me>", "xsb"),
        (b"PK\x05\x06", "npz"),
        (b"\x93NUMPY", "npy"),
        (b"", "xsb"),
    ],
)
def test_detection(head, name):
    assert detect(head).name == name


def test_a_batch_of_boards_is_written_like_levels(tmp_path):
    import numpy as np

    write(tmp_path / "a.xsb", np.stack([LEVELS[0].tokens] * 2))
    assert read(tmp_path / "a.xsb") == [LEVELS[0]] * 2


def test_one_level_is_written_like_a_list_of_one(tmp_path):
    write(tmp_path / "a.xsb", LEVELS[0])
    assert read(tmp_path / "a.xsb") == LEVELS[:1]


def test_a_stream_reads_no_more_than_it_must(tmp_path):
    path = tmp_path / "half.xsb"
    path.write_text(f"{LEVELS[0]}\n\n{LEVELS[1]}\n\n#  x #\n")
    levels = stream(path, strict=True)
    assert next(levels) == LEVELS[0]
    with pytest.raises(FileError, match="line 9, column 4: 'x' is no tile"):
        list(levels)


@pytest.mark.parametrize("name", list(FORMATS))
def test_standard_input_and_output(monkeypatch, name):
    levels = for_format(name)
    monkeypatch.setattr(sys, "stdout", Pipe())
    write("-", levels, format=name)
    data = sys.stdout.buffer.getvalue()
    monkeypatch.undo()
    monkeypatch.setattr(sys, "stdin", Pipe(data))
    assert [str(level) for level in read("-")] == [str(level) for level in levels]
    assert not sys.stdin.buffer.closed


def test_a_real_pipe(tmp_path):
    write(tmp_path / "a.npz", LEVELS)
    program = "import maskoban.boards as b; b.write('-', b.stream('-'))"
    source = os.path.join(os.path.dirname(__file__), "..", "..", "src")
    environment = {**os.environ, "PYTHONPATH": source}
    command = f'cat {tmp_path}/a.npz | {sys.executable} -c "{program}" | cat'
    text = subprocess.run(command, shell=True, capture_output=True, check=True, env=environment).stdout
    assert text.decode() == f"{LEVELS[0]}\n\n{LEVELS[1]}\n"


def test_a_pipe_is_read_as_it_comes(monkeypatch):
    reading, writing = os.pipe()
    with os.fdopen(reading) as piped, os.fdopen(writing, "w") as pipe:
        monkeypatch.setattr(sys, "stdin", piped)
        print(f"{LEVELS[0]}\n\n{LEVELS[1]}\n\n{LEVELS[0]}\n", file=pipe, flush=True)
        levels = stream("-")
        assert [next(levels), next(levels)] == LEVELS  # though more may follow


def test_a_pipe_that_begins_with_nothing_but_a_mark_is_waited_for():
    text = "\n<SokobanLevels><LevelCollection><Level><L>#@#</L></Level></LevelCollection></SokobanLevels>"
    for encoding, mark in (("utf-8", b"\xef\xbb\xbf"), ("utf-16-le", b"\xff\xfe")):
        first = mark + "\n ".encode(encoding)
        program = (
            "import sys, time; out = sys.stdout.buffer; "
            f"out.write({first!r}); out.flush(); time.sleep(0.3); out.write({text.encode(encoding)!r})"
        )
        with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as writer:
            assert [str(level) for level in read(f"/dev/fd/{writer.stdout.fileno()}")] == ["#@#"]


def test_a_failed_write_leaves_what_was_there(tmp_path):
    def levels():
        yield LEVELS[0]
        raise MaskobanError("no more")

    path = tmp_path / "a.xsb"
    path.write_text("as before")
    with pytest.raises(MaskobanError, match="no more"):
        write(path, levels())
    assert path.read_text() == "as before"
    assert os.listdir(tmp_path) == ["a.xsb"]


def test_a_folder_is_never_written_over_the_levels_in_it(tmp_path):
    levels = [Level(LEVELS[0].tokens, title=str(i % 1000)) for i in range(2500)]
    write(tmp_path, levels)
    for mine in (stream(tmp_path), LEVELS):
        with pytest.raises(FileError, match=r"there are levels in this folder already \(000.txt\)"):
            write(tmp_path, mine)
    with pytest.raises(FileError, match="already"):
        check_writable(tmp_path)
    assert read(tmp_path) == levels


def test_a_folder_is_filled_when_all_is_written_or_not_at_all(tmp_path):
    def levels():
        yield from [LEVELS[0]] * 1500
        assert not list(tmp_path.glob("*.txt"))
        raise MaskobanError("no more")

    with pytest.raises(MaskobanError, match="no more"):
        write(tmp_path, levels())
    assert list(tmp_path.iterdir()) == []


def test_a_slash_names_a_folder_on_every_system(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sep", "\\")
    write(f"{tmp_path}/new/", LEVELS)
    assert (tmp_path / "new" / "000.txt").is_file()


def test_a_folder_that_cannot_be_made_is_said_before_the_work(tmp_path):
    (tmp_path / "a").write_text("a file")
    check_writable(f"{tmp_path}/new/folder/")
    with pytest.raises(FileError, match="a/folder/: cannot be written: Not a directory"):
        check_writable(f"{tmp_path}/a/folder/")
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("end", ["\x1a", "\n\x1a", "\r\n\x1a\x1a", "\f", "\n\f\n"])
def test_old_ends_of_files_and_pages_are_no_control_characters(tmp_path, end):
    (tmp_path / "dos.xsb").write_bytes((str(LEVELS[0]) + end).encode())
    assert read(tmp_path / "dos.xsb") == LEVELS[:1]
    assert read_boards(tmp_path / "dos.xsb").shape == (1, 3, 5)


@pytest.mark.parametrize(
    ("stream_name", "act", "sentence"),
    [
        ("stdin", lambda: read("-"), "-: standard input is closed"),
        ("stdout", lambda: write("-", LEVELS), "-: standard output is closed"),
    ],
)
def test_a_closed_stream_is_said(monkeypatch, stream_name, act, sentence):
    monkeypatch.setattr(sys, stream_name, None)
    with pytest.raises(FileError) as caught:
        act()
    assert str(caught.value) == sentence


def test_a_link_stays_a_link(tmp_path):
    write(tmp_path / "a.xsb", LEVELS[:1])
    (tmp_path / "link.xsb").symlink_to("a.xsb")
    write(tmp_path / "link.xsb", LEVELS)
    assert (tmp_path / "link.xsb").is_symlink()
    assert read(tmp_path / "a.xsb") == LEVELS


def test_a_device_is_written_to_not_replaced():
    write("/dev/null", LEVELS, format="sok")
    assert not os.path.isfile("/dev/null")


@pytest.mark.parametrize(
    ("act", "sentence"),
    [
        (lambda d: read(d / "none.xsb"), "{}/none.xsb: no such file or folder"),
        (
            lambda d: read(d),
            "{}: no level files in this folder; expected names with .xsb, .txt, .sok, .slc, .npz, .npy",
        ),
        (
            lambda d: write(d / "a.doc", LEVELS),
            "{}/a.doc: unknown suffix; expected .xsb, .txt, .sok, .slc, .npz, .npy, or / for a folder",
        ),
        (lambda d: write(d / "a.xsb", []), "no levels to write to {}/a.xsb"),
        (
            lambda d: write(d / "a.xsb", LEVELS, format="pdf"),
            "format: expected one of xsb, sok, boxoban, slc, npz, npy, got 'pdf'",
        ),
        (
            lambda d: read(d, format="pdf"),
            "format: expected one of xsb, sok, boxoban, slc, npz, npy, got 'pdf'",
        ),
        (
            lambda d: write(d, LEVELS, format="sok"),
            "{}: a folder holds Boxoban files, not sok; expected a file name",
        ),
        (
            lambda d: write(d / "no" / "a.xsb", LEVELS),
            "{}/no/a.xsb: cannot be written: No such file or directory",
        ),
    ],
)
def test_what_cannot_be_done_says_why(tmp_path, act, sentence):
    with pytest.raises(MaskobanError) as caught:
        act(tmp_path)
    assert str(caught.value) == sentence.format(tmp_path)
