"""How many hidden units of our network's blocks never answer.

    python benchmarks/idle_units.py LEVELS [MODEL [HOW MANY LEVELS]]

LEVELS is anything that holds levels (`maskoban corpus pack` makes a small file); cells of them are hidden at random,
every share of hidden cells alike. A unit of a squared ReLU that is shut for all of them has no gradient either, and
stays shut.
"""

from __future__ import annotations

import sys

import numpy as np
import torch
from torch import Tensor

from maskoban.boards.tiles import MASK
from maskoban.diffusion import network as networks
from maskoban.diffusion.model import model_folder
from maskoban.diffusion.network import InteriorNetwork
from maskoban.diffusion.torch_model import load_torch
from maskoban.training.corpus import load

AT_ONCE = 250


def main() -> None:
    levels, name, many = (*sys.argv[1:], *("best", "1500")[len(sys.argv) - 2 :])
    network = load_torch(model_folder(name), "cpu")[0].network
    assert isinstance(network, InteriorNetwork), "the paper's network has no units that can shut for good"
    boards = load(levels)[: int(many), 1:-1, 1:-1].reshape(-1, network.cells)
    plain, answers = networks.squared_relu_linear, [torch.zeros(network.up.shape[1])] * network.blocks
    seen: list[Tensor] = []

    def watched(x: Tensor, weight: Tensor) -> Tensor:
        y = plain(x, weight)
        seen.append(y.flatten(0, -2).amax(0))
        return y

    networks.squared_relu_linear = watched
    torch.manual_seed(0)
    with torch.no_grad():
        for start in range(0, len(boards), AT_ONCE):
            x = torch.from_numpy(boards[start : start + AT_ONCE].astype(np.int64))
            x[torch.rand(x.shape) < torch.rand(len(x), 1)] = MASK
            seen.clear()
            network(x)
            answers = [torch.maximum(a, b) for a, b in zip(answers, seen, strict=True)]
    idle = [int((answer == 0).sum()) for answer in answers]
    print(f"{name}: idle of {network.up.shape[1]:,} units, block by block: {idle}; {sum(idle):,} in all")


if __name__ == "__main__":
    main()
