"""Errors of the user, each said in one sentence."""

from __future__ import annotations

from importlib.util import find_spec


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


def need(what: str, extra: str, *packages: str) -> None:
    """Raise where one of the packages that an extra installs is missing.

    >>> need("a report", "report", "no_such_package")
    Traceback (most recent call last):
        ...
    maskoban.errors.MaskobanError: a report needs no_such_package: pip install 'maskoban[report]'
    """
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise MaskobanError(f"{what} needs {' and '.join(missing)}: pip install 'maskoban[{extra}]'")
