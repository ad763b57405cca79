"""The columns of a dataset, its rows as Parquet bytes, and its card.

The bytes depend on the rows and the version of pyarrow alone.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from maskoban.bulk.pipeline import Columns
from maskoban.errors import MaskobanError

#: Every column with its type and what it holds. A new column goes to the end; the others stay as they are.
COLUMNS: dict[str, tuple[pa.DataType, str]] = {
    "id": (pa.string(), "32 hexadecimal digits, equal for every form of the same puzzle: turned, mirrored, shifted"),
    "exact_id": (pa.string(), "the same, but different for a turned or mirrored board"),
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
    "moves": (pa.int32(), "steps of that solution, pushes included"),
    "effort": (pa.int64(), "states a plain breadth-first search expands; null without a solution or beyond the limit"),
    "rating": (pa.string(), "`easy`, `medium`, `hard` or `expert`: the quarter of Boxoban's medium levels the effort "
               "falls in"),
    "walls": (pa.int16(), "wall cells of the board"),
    "repaired": (pa.list_(pa.int16()), "cells whose wall was removed to make it solvable, as places in `tokens`"),
    "seed": (pa.int64(), "the seed the board was sampled with"),
    "number": (pa.int64(), "its number in the seed's sequence"),
    "model": (pa.string(), "the name of the model"),
    "weights": (pa.string(), "a hash of the model's weights"),
    "version": (pa.string(), "the version of maskoban"),
    "boxes": (pa.int16(), "boxes of the board"),
    "box_lines": (pa.int32(), "box lines of that solution: straight series of pushes of one box"),
}  # fmt: skip

SCHEMA = pa.schema([(name, kind) for name, (kind, _) in COLUMNS.items()])

#: The columns of the first version. Files with fewer columns than today's are read, too.
_FIRST_COLUMNS = 18

_REPETITIVE = ["verdict", "reason", "rating", "seed", "model", "weights", "version"]


def table(columns: Columns) -> pa.Table:
    """The rows as a table with the dataset's columns."""
    return pa.table({name: columns[name] for name in COLUMNS} | {"tokens": list(columns["tokens"])}, SCHEMA)


def parquet_bytes(rows: pa.Table) -> bytes:
    """The file that holds these rows."""
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
        if rows.num_rows:  # some readers cannot read a row group without rows
            file.write_table(rows, row_group_size=65_536)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def read_rows(data: bytes, name: str, columns: list[str] | None = None) -> pa.Table:
    """The rows of such a file, all columns or some; ``name`` is for the error."""
    try:
        # The threads of pq.read_table may still hold the data when Python exits, which aborts it.
        file = pq.ParquetFile(pa.BufferReader(data), pre_buffer=False)
        schema = list(file.schema_arrow)
        if len(schema) >= _FIRST_COLUMNS and schema == list(SCHEMA)[: len(schema)]:
            return file.read(columns, use_threads=False)
    except (pa.ArrowException, OSError):
        pass
    raise MaskobanError(f"{name}: expected a whole Parquet file with the columns of a dataset")


def card(settings: dict[str, Any], manifest: dict[str, Any]) -> str:
    """The dataset card, README.md, as the Hugging Face hub reads it. It does not depend on time or place."""
    model, boards, files = settings["model"], manifest["boards"], len(manifest["shards"])
    return f"""---
pretty_name: Sokoban boards sampled from maskoban's {model}
tags: [sokoban, puzzle, synthetic]
configs:
- config_name: default
  data_files: data/*.parquet
---

# Sokoban boards sampled from maskoban's `{model}`

{boards:,} boards, sampled from a model and solved by a solver that proves its verdicts:
{files:,} Parquet files, {manifest["bytes"] / 1e6:,.1f} MB.

    pandas.read_parquet("data")
    datasets.load_dataset("parquet", data_files="data/*.parquet")

| | boards |
|---|---|
{_table_rows((name, f"{number:,}") for name, number in (manifest["verdicts"] | manifest["ratings"]).items())}

Ratings from easy to expert are the quarters of Boxoban's medium levels by the states a plain search expands.

## Columns

| column | type | what it holds |
|---|---|---|
{_table_rows((f"`{name}`", kind, text) for name, (kind, text) in COLUMNS.items())}

## How it was made

| setting | value |
|---|---|
{_table_rows((name.replace("_", " "), _text(value)) for name, value in settings.items())}

Each file is named by the seed and the range of its sequence that it was made from; the same settings make
the same files. `manifest.json` has the SHA-256 of each, and `maskoban bulk verify` checks them.
"""


def _table_rows(rows: Any) -> str:
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows)


def _text(value: object) -> str:
    return "–" if value is None else str(value) if not isinstance(value, bool) else "yes" if value else "no"
