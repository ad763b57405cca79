"""Put on PYTHONPATH, this holds every process that writes a shard once GATE_SHARDS of them are in GATE_FOLDER.

Each process that is held leaves a file with its id in GATE_PIDS. So a test can kill it at a known moment, however fast
the machine is. Processes go on when GATE_PIDS is gone.
"""

import os
import time
from pathlib import Path

_fsync = os.fsync


def _held_fsync(descriptor: int) -> None:
    pids = Path(os.environ["GATE_PIDS"])
    shards = int(os.environ["GATE_SHARDS"])
    while pids.exists() and len(list(Path(os.environ["GATE_FOLDER"]).glob("data/*.parquet"))) >= shards:
        (pids / str(os.getpid())).touch()
        time.sleep(0.01)
    _fsync(descriptor)


if "GATE_PIDS" in os.environ:
    os.fsync = _held_fsync
