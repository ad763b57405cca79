"""Sokoban for reinforcement learning: ``maskoban/Sokoban-v0`` for gymnasium, plain and vectorised.

Importing this module registers the environment. docs/environment.md has the actions, rewards and options.

>>> import gymnasium
>>> env = gymnasium.make("maskoban.environment:maskoban/Sokoban-v0", levels=["#####\\n#@$.#\\n#####"])
>>> board, info = env.reset(seed=7)
>>> env.step(3)[1]
10.9
"""

from __future__ import annotations

from maskoban.boards import MaskobanError

try:
    from gymnasium.envs.registration import register, registry
except ImportError as error:
    raise MaskobanError("the environment needs gymnasium: pip install 'maskoban[rl]'") from error

from .games import ACTIONS, STEPS
from .levels import DrawnLevels, LevelSet
from .plain import SokobanEnv
from .vector import SokobanVectorEnv

#: The name ``gymnasium.make`` and ``gymnasium.make_vec`` know the environment by.
ID = "maskoban/Sokoban-v0"

__all__ = ["ACTIONS", "ID", "DrawnLevels", "LevelSet", "SokobanEnv", "SokobanVectorEnv"]

if ID not in registry:  # a module imported anew must not make gymnasium warn
    register(
        ID,
        entry_point="maskoban.environment.plain:SokobanEnv",
        vector_entry_point="maskoban.environment.vector:SokobanVectorEnv",
        max_episode_steps=STEPS,
    )
