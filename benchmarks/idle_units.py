"""How many hidden units of our network's blocks never answer.

    python benchmarks/idle_units.py LEVELS [MODEL [HOW MANY LEVELS]]

LEVELS is anything that holds levels (`maskoban corpus pack` makes a small file), 1,500 of them unless more are asked
for; cells of them are hidden at random (`training/pruning.py`).
"""

from __future__ import annotations

import sys

from maskoban.boards.corpus import load
from maskoban.diffusion.loading import model_folder
from maskoban.nn.networks import InteriorNetwork
from maskoban.nn.runtime import load_torch
from maskoban.training.pruning import idle_units


def main() -> None:
    levels, name, many = (*sys.argv[1:], *("best", "1500")[len(sys.argv) - 2 :])
    network = load_torch(model_folder(name), "cpu")[0].network
    assert isinstance(network, InteriorNetwork), "the paper's network has no units that can shut for good"
    idle = idle_units(network, load(levels)[: int(many)])
    blocks = idle.sum(1).tolist()
    print(f"{name}: idle of {idle.shape[1]:,} units, block by block: {blocks}; {sum(blocks):,} in all")


if __name__ == "__main__":
    main()
