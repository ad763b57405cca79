"""How much a reader takes before it says no: what keeps a hostile file from filling the memory."""

#: Characters in one line of a text file.
MAX_LINE = 200_000

#: Lines, and characters, of text between two boards; in XML, characters of one element.
MAX_NOTE_LINES = 150_000
MAX_NOTE_LETTERS = 4_000_000

#: Nested elements in an XML file.
MAX_DEPTH = 16

#: Members of an .npz file, and bytes in one of them once unpacked.
MAX_MEMBERS = 100_000
MAX_MEMBER_BYTES = 10_000_000
