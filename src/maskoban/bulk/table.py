"""The columns of a dataset, and rows as Parquet bytes that are the same every time.

Writer settings are fixed here and nothing in the bytes depends on when or where they are written; another
version of pyarrow may write the same rows differently.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from maskoban.boards.errors import MaskobanError
from maskoban.bulk.pipeline import Columns

#: Every column with its type and what it holds. Their names and order stay as they are.
COLUMNS: dict[str, tuple[pa.DataType, str]] = {
    "id": (pa.string(), "32 hexadecimal digits, equal for every drawing of the same puzzle"),
    "exact_id": (pa.string(), "the same, but another one for a turned or mirrored board"),
    "board": (pa.string(), "the board as text, a row a line: `#` wall, `@` player, `$` box, `.` goal, `*` box on "
              "goal, `+` player on goal"),
    "tokens": (pa.list_(pa.uint8()), "the same as numbers, row by row: 0 wall, 1 floor, 2 player, 3 box, 4 goal, "
               "5 box on goal, 6 player on goal"),
    "verdict": (pa.string(), "`solved`, `unsolvable` (proved), `unknown` (a limit was hit) or `malformed`"),
    "reason": (pa.string(), "why a board is unknown or malformed, how an unsolvable one was refuted, or what a "
               "limit left unproved of a solved one; else null"),
    "solution": (pa.string(), "a solution in LURD, pushes in capitals, with the fewest pushes unless `reason` says "
                 "that a limit was hit; null without one"),
    "pushes": (pa.int32(), "pushes of that solution"),
    "moves": (pa.int32(), "steps of that solution, pushes among them"),
    "effort": (pa.int64(), "states a plain breadth-first search expands; null without a solution or beyond the limit"),
    "rating": (pa.string(), "`easy`, `medium`, `hard` or `expert`: the quarter of Boxoban's medium levels the effort "
               "falls in"),
    "walls": (pa.int16(), "wall cells of the board"),
    "repaired": (pa.list_(pa.int16()), "cells whose wall was taken away to make it solvable, as places in `tokens`"),
    "seed": (pa.int64(), "the seed the board was drawn with"),
    "number": (pa.int64(), "its number in the seed's sequence"),
    "model": (pa.string(), "the model that drew it"),
    "weights": (pa.string(), "a hash of the model's weights"),
    "version": (pa.string(), "the version of maskoban"),
}  # fmt: skip

SCHEMA = pa.schema([(name, kind) for name, (kind, _) in COLUMNS.items()])

# Columns that say the same again and again.
_REPETITIVE = ["verdict", "reason", "rating", "seed", "model", "weights", "version"]


def table(columns: Columns) -> pa.Table:
    """The rows as a table with the dataset's columns.

    >>> table({name: [] for name in COLUMNS}).num_rows
    0
    """
    tokens = columns["tokens"]
    cells = tokens.shape[1] if len(tokens) else 0
    ends = pa.array(range(0, len(tokens) * cells + 1, cells) if cells else [0], pa.int32())
    flat = pa.array([] if not cells else tokens.ravel(), pa.uint8())
    arrays = {name: columns[name] for name in COLUMNS} | {"tokens": pa.ListArray.from_arrays(ends, flat)}
    return pa.table(arrays, SCHEMA)


def parquet_bytes(rows: pa.Table) -> bytes:
    """The file that holds these rows.

    >>> parquet_bytes(table({name: [] for name in COLUMNS}))[:4]
    b'PAR1'
    """
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        rows.schema,
        version="2.6",
        data_page_version="1.0",
        compression="zstd",
        compression_level=6,
        use_dictionary=_REPETITIVE,
    ) as file:
        if rows.num_rows:  # a group of no rows is more than some readers can take
            file.write_table(rows, row_group_size=65_536)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def read_rows(data: bytes, name: str) -> pa.Table:
    """The rows of such a file; ``name`` is said where it is broken.

    >>> read_rows(b"", "a.parquet")
    Traceback (most recent call last):
        ...
    maskoban.boards.errors.MaskobanError: a.parquet: not a whole file of this dataset
    """
    try:
        # Not pq.read_table: its threads may still hold the data when Python leaves, and abort it then.
        rows = pq.ParquetFile(pa.BufferReader(data), pre_buffer=False).read(use_threads=False)
    except (pa.ArrowException, OSError):
        raise MaskobanError(f"{name}: not a whole file of this dataset") from None
    if not rows.schema.equals(SCHEMA):
        raise MaskobanError(f"{name}: not a whole file of this dataset")
    return rows
