"""Sokoban for reinforcement learning: ``maskoban/Sokoban-v0`` for gymnasium, one game or a vector of games.

Importing this module registers the environment. docs/environment.md has the actions, rewards and options.

>>> import gymnasium
>>> env = gymnasium.make("maskoban.environment:maskoban/Sokoban-v0", levels=["#####\\n#@$.#\\n#####"])
>>> board, info = env.reset(seed=7)
>>> env.step(3)[1]
10.9
"""

from __future__ import annotations

from maskoban.errors import MaskobanError

try:
    from gymnasium.envs.registration import register, registry
except ImportError as error:
    raise MaskobanError("the environment needs gymnasium: pip install 'maskoban[rl]'") from error

from maskoban.environment.curriculum import Curriculum
from maskoban.environment.env import SokobanEnv
from maskoban.environment.expert import Expert, SolvedEpisode, solved_episodes
from maskoban.environment.games import ACTIONS, BOXOBAN_ACTIONS, STEPS
from maskoban.environment.levels import LevelSet
from maskoban.environment.pool import Pool
from maskoban.environment.producers import ModelLevels, SynthLevels
from maskoban.environment.vector import SokobanVectorEnv

#: The id for ``gymnasium.make`` and ``gymnasium.make_vec``.
ID = "maskoban/Sokoban-v0"

__all__ = [
    "ACTIONS",
    "BOXOBAN_ACTIONS",
    "ID",
    "Curriculum",
    "Expert",
    "LevelSet",
    "ModelLevels",
    "Pool",
    "SokobanEnv",
    "SokobanVectorEnv",
    "SolvedEpisode",
    "SynthLevels",
    "solved_episodes",
]

if ID not in registry:  # importing the module again must not make gymnasium warn
    register(
        ID,
        entry_point="maskoban.environment.env:SokobanEnv",
        vector_entry_point="maskoban.environment.vector:SokobanVectorEnv",
        max_episode_steps=STEPS,
    )
