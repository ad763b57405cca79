"""Errors of the user, each said in one sentence."""

from __future__ import annotations


class MaskobanError(ValueError):
    """Input that cannot be used; ``str(error)`` is one sentence that says why.

    The command line prints it and exits with code 2. It catches nothing else, so a traceback is always a bug.
    """


class FileError(MaskobanError):
    """A file that cannot be read or written: its name, the line and column if known, and the problem.

    >>> str(FileError("maze.xsb", "unknown tile 'x'", line=3, column=2))
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

    def __reduce__(self) -> tuple[type[FileError], tuple[str, str, int | None, int | None]]:
        return FileError, (self.path, self.problem, self.line, self.column)  # so that it can be pickled
