"""The dataset card: README.md of a dataset, as people and the Hugging Face hub read it."""

from __future__ import annotations

from typing import Any

from maskoban.bulk.table import COLUMNS


def card(settings: dict[str, Any], manifest: dict[str, Any]) -> str:
    """What a dataset holds and how it was made; nothing in it depends on when.

    >>> totals = {"boards": 0, "bytes": 0, "verdicts": {}, "ratings": {}, "shards": []}
    >>> card({"model": "best", "seed": 0}, totals).splitlines()[0]
    '---'
    """
    told = "\n".join(f"| {name.replace('_', ' ')} | {_said(value)} |" for name, value in settings.items())
    columns = "\n".join(f"| `{name}` | {kind} | {what} |" for name, (kind, what) in COLUMNS.items())
    counts = "\n".join(
        f"| {name} | {count:,} |"
        for name, count in [*manifest["verdicts"].items(), *manifest["ratings"].items()]
    )
    return f"""---
pretty_name: Sokoban boards drawn by maskoban's {settings["model"]}
tags: [sokoban, puzzle, synthetic]
configs:
- config_name: default
  data_files: data/*.parquet
---

# Sokoban boards drawn by maskoban's `{settings["model"]}`

{manifest["boards"]:,} boards drawn by a model and judged by a solver that proves its verdicts:
{len(manifest["shards"]):,} Parquet files, {manifest["bytes"] / 1e6:,.1f} MB.

    pandas.read_parquet("data")
    datasets.load_dataset("parquet", data_files="data/*.parquet")

| | boards |
|---|---|
{counts}

The words easy to expert are the quarters of Boxoban's medium levels by the states a plain search expands.

## Columns

| column | type | what it holds |
|---|---|---|
{columns}

## How it was made

| setting | value |
|---|---|
{told}

Each file is named by the seed and the range of its sequence that it was made from; the same settings make
the same files. `manifest.json` has the SHA-256 of each, and `maskoban bulk verify` checks them.
"""


def _said(value: object) -> str:
    words = {None: "–", True: "yes", False: "no"}
    return words[value] if value is None or isinstance(value, bool) else str(value)
