"""The fused kernels, forward and backward, in Triton's interpreter: no device needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    find_spec("triton") is None and (os.environ.get("CI") != "true" or sys.platform != "linux"),
    reason="Triton is not installed: there are no fused kernels to test",
)

ROOT = Path(__file__).resolve().parents[2]


def test_fused_kernels_equal_the_plain_versions() -> None:
    path = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.nn.interpreted_kernels"],
        env=environment, capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(records) == 12
    for record in records:
        assert record["forward"] < 2e-3, record  # half precision keeps three digits
        assert record.get("backward", 0.0) < 3e-3, record
