"""Train a small agent with PPO on easy boards, and draw its learning curve.

    python benchmarks/environment_agent.py                  # two runs of three minutes, on two cores
    python benchmarks/environment_agent.py --minutes 1 --seeds 1 --out curve

One file and plain PyTorch, in the manner of CleanRL: collect steps with the vector environment, compute advantages,
update the network. The boards are endless ones of the synthesizer, made by a process in the background; the agent is
measured on levels of another seed, which it never trains on and which no setting was chosen by. Every seed of
``--seeds`` is a run of its own. Minutes are CPU time, so a busy machine only takes longer.
``curve.json`` holds the numbers and ``curve.png`` the picture; both are written after every measurement.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from maskoban.boards.synth import synthesize
from maskoban.environment import LevelSet, Pool, SokobanVectorEnv, SynthLevels


@dataclass(frozen=True)
class Config:
    """Every number of a run."""

    minutes: float = 3.0  # of CPU time of this process, which runs on one core
    size: int = 7  # rows and columns
    boxes: int = 1
    num_envs: int = 256
    steps: int = 32  # of every environment between two updates
    limit: int = 60  # steps of an episode
    width: int = 32  # channels of the network
    epochs: int = 2
    minibatch: int = 1024
    learning_rate: float = 1e-3
    reward_scale: float = 0.1  # values near 1, so that the loss of the value does not drown the policy's
    discount: float = 0.97
    gae_lambda: float = 0.9
    clip: float = 0.2
    entropy: float = 0.01
    value_weight: float = 0.5
    seed: int = 1
    test_levels: int = 500
    test_seed: int = 2_000_000
    test_every: float = 15.0  # seconds of training


class Agent(nn.Module):
    """Two convolutions over the planes, then a layer over the whole board; policy and value read that layer."""

    def __init__(self, planes: int, height: int, width: int, actions: int, channels: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(planes, channels, 3),  # no padding: the outermost cells are wall
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(channels * (height - 2) * (width - 2), 256),
            nn.ReLU(),
        )
        self.policy, self.value = nn.Linear(256, actions), nn.Linear(256, 1)
        nn.init.normal_(self.policy.weight, std=0.01)

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        features = self.body(observations.float())
        return self.policy(features), self.value(features).squeeze(-1)


def train(config: Config, envs: SokobanVectorEnv, agent: Agent) -> Iterator[dict[str, float]]:
    """Train for ever; yields what every update did."""
    optimizer = torch.optim.Adam(agent.parameters(), config.learning_rate)
    n, k = envs.num_envs, config.steps
    shape = envs.single_observation_space.shape or ()
    observations = torch.zeros((k, n, *shape), dtype=torch.uint8)
    actions = torch.zeros((k, n), dtype=torch.long)
    log_probs, values, rewards = torch.zeros(k, n), torch.zeros(k, n), torch.zeros(k, n)
    ended = torch.zeros(k, n)
    current = torch.from_numpy(envs.reset(seed=config.seed)[0])  # the buffer itself: every step writes to it
    while True:
        solved = finished = 0
        with torch.no_grad():
            for t in range(k):
                observations[t] = current
                logits, values[t] = agent(current)
                policy = torch.distributions.Categorical(logits=logits, validate_args=False)
                actions[t] = policy.sample()
                log_probs[t] = policy.log_prob(actions[t])
                _, reward, terminated, truncated, infos = envs.step(actions[t].numpy())
                rewards[t] = torch.from_numpy(reward) * config.reward_scale
                over = terminated | truncated
                ended[t] = torch.from_numpy(over)
                cut = np.flatnonzero(truncated & ~terminated)
                if len(cut):  # an episode that was cut off would have gone on: its last value counts
                    _, last = agent(torch.from_numpy(infos["final_obs"][cut]))
                    rewards[t, cut] += config.discount * last
                solved, finished = solved + int(terminated.sum()), finished + int(over.sum())
            advantages = _advantages(config, rewards, values, ended, agent(current)[1])
        batch = [
            observations.flatten(0, 1),
            *(part.flatten() for part in (actions, log_probs, advantages, advantages + values)),
        ]
        for _ in range(config.epochs):
            for chosen in torch.randperm(k * n).split(config.minibatch):
                _update(config, agent, optimizer, [part[chosen] for part in batch])
        yield {"steps": k * n, "episodes": finished, "solved": solved}


def _advantages(config: Config, rewards: Tensor, values: Tensor, ended: Tensor, last: Tensor) -> Tensor:
    """Generalised advantage estimation."""
    advantages, ahead = torch.zeros_like(rewards), torch.zeros_like(last)
    for t in reversed(range(len(rewards))):
        goes_on = 1 - ended[t]
        following = last if t == len(rewards) - 1 else values[t + 1]
        error = rewards[t] + config.discount * following * goes_on - values[t]
        ahead = error + config.discount * config.gae_lambda * goes_on * ahead
        advantages[t] = ahead
    return advantages


def _update(config: Config, agent: Agent, optimizer: torch.optim.Optimizer, batch: list[Tensor]) -> None:
    observations, actions, old_log_probs, advantages, returns = batch
    logits, values = agent(observations)
    policy = torch.distributions.Categorical(logits=logits, validate_args=False)
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    ratio = (policy.log_prob(actions) - old_log_probs).exp()
    clipped = ratio.clamp(1 - config.clip, 1 + config.clip)
    loss = -torch.min(ratio * advantages, clipped * advantages).mean()
    loss = loss + config.value_weight * F.mse_loss(values, returns) - config.entropy * policy.entropy().mean()
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
    optimizer.step()


@torch.no_grad()
def share_solved(agent: Agent, levels: LevelSet, limit: int, seed: int = 0) -> float:
    """The share of levels that the agent solves in one episode each, with sampled actions."""
    generator = torch.Generator().manual_seed(seed)
    envs = SokobanVectorEnv(
        len(levels), levels, "planes", order="sequential", max_episode_steps=limit, autoreset_mode="Disabled"
    )
    observations, _ = envs.reset(seed=seed)
    solved = np.zeros(len(levels), bool)
    for _ in range(limit):
        probabilities = agent(torch.from_numpy(observations))[0].softmax(-1)
        actions = probabilities.multinomial(1, generator=generator)[:, 0].numpy()
        observations, _, terminated, truncated, _ = envs.step(actions)
        solved |= terminated
        over = terminated | truncated
        if solved.all() or truncated.all():
            break
        if over.any():  # solved ones begin anew and do not count again
            envs.reset(options={"reset_mask": over, "level": "#@$.#"})
    return float(solved.mean())


def run(
    config: Config, on_point: Callable[[dict[str, Any]], None] = lambda point: None
) -> list[dict[str, Any]]:
    """Train for so many minutes of CPU time; the learning curve."""
    torch.manual_seed(config.seed)
    source = Pool(SynthLevels(config.size, config.size, config.boxes), size=4096)
    envs = SokobanVectorEnv(
        config.num_envs, source, "planes", max_episode_steps=config.limit, autoreset_mode="SameStep"
    )
    test = LevelSet(synthesize(config.test_levels, config.size, config.size, config.boxes, config.test_seed))
    agent = Agent(7, config.size, config.size, 4, config.width)
    curve: list[dict[str, Any]] = []
    trained, steps, recent = 0.0, 0, [0, 0]

    def measure() -> None:
        supply = envs.games.supply
        curve.append(
            {
                "minutes": round(trained / 60, 3),
                "steps": steps,
                "train": round(recent[1] / max(1, recent[0]), 4),
                "test": round(share_solved(agent, test, config.limit), 4),
                "boards": supply.boards if supply else 0,
                "waits": supply.waits if supply else 0,
            }
        )
        on_point(curve[-1])

    measure()
    begun = time.process_time()
    for update in train(config, envs, agent):
        trained += time.process_time() - begun
        steps += int(update["steps"])
        recent = [recent[0] + int(update["episodes"]), recent[1] + int(update["solved"])]
        over = trained >= 60 * config.minutes
        if over or trained >= len(curve) * config.test_every:
            measure()
            recent = [0, 0]
        if over:
            break
        begun = time.process_time()
    envs.close()
    return curve


def draw(runs: list[dict[str, Any]], config: Config, path: Path) -> None:
    """The learning curves as a picture."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
    for number, run in enumerate(runs):
        minutes = [point["minutes"] for point in run["curve"]]
        tests = [100 * point["test"] for point in run["curve"]]
        train = [100 * point["train"] for point in run["curve"]]
        colour, seed = f"C{number}", run["seed"]
        axes.plot(minutes, tests, colour, marker="o", markersize=3, label=f"seed {seed}, levels never seen")
        axes.plot(minutes[1:], train[1:], colour, alpha=0.5, ls="--", label=f"seed {seed}, training episodes")
    axes.set(xlabel="minutes of training on one core", ylabel="% solved", ylim=(0, 100))
    boxes = "1 box" if config.boxes == 1 else f"{config.boxes} boxes"
    axes.set_title(f"PPO, boards of {config.size}x{config.size} with {boxes}", fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, loc="upper left")
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description="A small agent and its learning curves.")
    for name, kind in (("minutes", float), ("size", int), ("boxes", int)):
        parser.add_argument(f"--{name}", type=kind, default=getattr(Config, name))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2], help="a run for each")
    parser.add_argument(
        "--out", type=Path, default=Path("curve"), help="curve.json and curve.png are written"
    )
    given = vars(parser.parse_args())
    out, seeds = given.pop("out"), given.pop("seeds")
    config = Config(**given)
    torch.set_num_threads(1)
    runs: list[dict[str, Any]] = []

    def save(point: dict[str, Any]) -> None:
        print(point, flush=True)
        runs[-1]["curve"].append(point)
        settings = {name: value for name, value in asdict(config).items() if name != "seed"}
        out.with_suffix(".json").write_text(json.dumps({"config": settings, "runs": runs}, indent=1) + "\n")
        draw(runs, config, out.with_suffix(".png"))

    for seed in seeds:
        runs.append({"seed": seed, "curve": []})
        run(replace(config, seed=seed), save)


if __name__ == "__main__":
    main()
