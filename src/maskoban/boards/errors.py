"""What a person can get wrong, said in one sentence."""

from __future__ import annotations


class MaskobanError(ValueError):
    """Something the user gave cannot be used; ``str(error)`` is the one clear sentence that says why.

    The command line prints it and exits with code 2; nothing else is caught there, so a traceback
    always means a bug of ours.
    """


class LevelFileError(MaskobanError):
    """A level file that cannot be read: names the file, the line and column, and what was expected.

    >>> str(LevelFileError("maze.xsb", "unknown tile 'x'", line=3, column=2))
    "maze.xsb, line 3, column 2: unknown tile 'x'"
    """

    def __init__(self, path: str, problem: str, line: int | None = None, column: int | None = None) -> None:
        self.path, self.problem, self.line, self.column = path, problem, line, column
        where = path
        if line is not None:
            where += f", line {line}"
        if column is not None:
            where += f", column {column}"
        super().__init__(f"{where}: {problem}")
