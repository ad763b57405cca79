"""The same rows are the same bytes, and damaged bytes are an error."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from maskoban.bulk.job import Job, Origin
from maskoban.bulk.pipeline import annotate, sample
from maskoban.bulk.table import COLUMNS, parquet_bytes, read_rows, table
from maskoban.diffusion.loading import load
from maskoban.errors import MaskobanError


def some_rows(dice: str, job: Job) -> pa.Table:
    shard = job.shard(0)
    return table(annotate(sample(load(dice), job, shard), job, shard, Origin("dice", "0", "1")))


def test_columns_keep_their_order(dice: str) -> None:
    promised = "id exact_id board tokens verdict reason solution pushes moves effort rating walls repaired"
    promised += " seed number model weights version boxes box_lines"
    assert " ".join(COLUMNS) == promised
    assert some_rows(dice, Job(9)).column_names == promised.split()


def test_rows_come_back_and_their_bytes_never_vary(dice: str) -> None:
    rows = some_rows(dice, Job(40))
    data = parquet_bytes(rows)
    assert read_rows(data, "a").equals(rows)
    assert parquet_bytes(some_rows(dice, Job(40))) == data
    # As they are after a journey through slices and chunks.
    assert parquet_bytes(pa.concat_tables([rows.slice(0, 9), rows.slice(9)]).combine_chunks()) == data


def test_a_shard_may_be_empty() -> None:
    empty = table({name: [] for name in COLUMNS})
    data = parquet_bytes(empty)
    assert read_rows(data, "a").equals(empty)
    # Readers that take a file by its groups, as Hugging Face datasets does, cannot take a group of no rows.
    assert pq.ParquetFile(pa.BufferReader(data)).num_row_groups == 0


def test_files_of_the_first_version_have_fewer_columns(dice: str) -> None:
    rows = some_rows(dice, Job(9)).select(list(COLUMNS)[:18])
    assert read_rows(parquet_bytes(rows), "a").equals(rows)


def test_half_a_file_and_another_table_are_an_error(dice: str) -> None:
    import io

    data = parquet_bytes(some_rows(dice, Job(40)))
    other = io.BytesIO()
    pq.write_table(pa.table({"id": ["a"]}), other)
    fewer = parquet_bytes(some_rows(dice, Job(9)).select(list(COLUMNS)[:17]))
    for broken in (b"", data[: len(data) // 2], other.getvalue(), fewer):
        with pytest.raises(MaskobanError, match="expected a whole Parquet file"):
            read_rows(broken, "a.parquet")
