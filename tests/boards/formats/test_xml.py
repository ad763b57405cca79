"""XML collections as they are found, and nothing of XML that could do harm."""

from __future__ import annotations

import io

import pytest

from maskoban.boards import Collection, Level, Source
from maskoban.boards.formats.xml import read_slc
from maskoban.errors import FileError

REAL = """<?xml version="1.0" encoding="{encoding}"?>
<!DOCTYPE SokobanLevels SYSTEM "SokobanLev.dtd">
<SokobanLevels xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="SokobanLev.xsd">
  <Title>Two rooms</Title>
  <Description>
    Small &amp; fine.
  </Description>
  <LevelCollection Copyright="Ann Öther" MaxWidth="6" MaxHeight="3">
    <Level Id="room" Width="5" Height="3">
      <L>#####</L>
      <L>#@$.#</L>
      <L>#####</L>
    </Level>
    <Level Id="hall" Width="6" Height="4" Copyright="Somebody">
      <L> ####</L>
      <L/>
      <L>#@-$_.</L>
      <L>#</L>
    </Level>
  </LevelCollection>
</SokobanLevels>
"""


@pytest.mark.parametrize("encoding", ["UTF-8", "ISO-8859-1", "UTF-16", "windows-1252"])
def test_a_collection_as_programs_write_it(encoding):
    data = REAL.format(encoding=encoding).encode(encoding)
    source = Source(io.BytesIO(data), "two.slc")
    room, hall = read_slc(source)
    assert (room.title, room.author, room.comment) == ("room", "Ann Öther", "")
    assert source.collection == Collection((), "Two rooms", "Ann Öther", "", "Small & fine.")
    assert str(room) == "#####\n#@$.#\n#####"
    assert hall == Level(Level.parse(" ####\n\n#@ $ .\n#").tokens, "hall", "Somebody")


LAUGHS = "".join(f'<!ENTITY a{i + 1} "&a{i};&a{i};&a{i};&a{i};&a{i};&a{i};&a{i};&a{i};">' for i in range(30))


@pytest.mark.parametrize(
    ("prolog", "text"),
    [
        (f'<!DOCTYPE SokobanLevels [<!ENTITY a0 "ha">{LAUGHS}]>', "&a30;"),
        ('<!DOCTYPE SokobanLevels [<!ENTITY secret SYSTEM "file:///etc/passwd">]>', "&secret;"),
        ('<!DOCTYPE SokobanLevels [<!ENTITY % more SYSTEM "http://localhost/x.dtd"> %more;]>', ""),
    ],
)
def test_entities_are_refused_before_they_are_used(prolog, text):
    xml = f"{prolog}<SokobanLevels><Level><L>#{text}</L></Level></SokobanLevels>"
    with pytest.raises(FileError, match="a document type with declarations"):
        list(read_slc(Source(io.BytesIO(xml.encode()), "bad.slc")))


def test_levels_arrive_before_the_file_ends():
    class Endless(io.RawIOBase):
        """A collection whose end nobody will ever see."""

        begun = False

        def read(self, size=-1):
            if not self.begun:
                self.begun = True
                return b"<SokobanLevels>"
            return b'<Level Id="again"><L>#@#</L></Level>' * 100

    levels = read_slc(Source(Endless(), "endless.slc"))
    assert [next(levels).title for _ in range(1000)] == ["again"] * 1000


def test_a_tag_without_an_end_does_not_fill_the_memory():
    class Endless(io.RawIOBase):
        fed = 0

        def read(self, size=-1):
            self.fed += 65536
            return b'<SokobanLevels x="' if self.fed == 65536 else b"x" * 65536

    source = Endless()
    with pytest.raises(FileError, match="a tag without an end; expected >"):
        list(read_slc(Source(source, "endless.slc")))
    assert source.fed < 10_000_000
