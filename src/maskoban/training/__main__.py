"""``python -m maskoban.training``: train, with nothing but torch and NumPy installed.

``maskoban train`` is this command with the rest of the package around it.
Under torchrun, several processes train together (``processes.py``).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from maskoban.boards.errors import MaskobanError

if TYPE_CHECKING:
    from maskoban.training.loop import Trainer
    from maskoban.training.presets import Preset
    from maskoban.training.processes import Processes


def parser() -> argparse.ArgumentParser:
    from maskoban.training.presets import PRESETS

    p = argparse.ArgumentParser(
        prog="maskoban train",
        description="Train a model that draws boards.",
        epilog="Example: maskoban train --preset tiny --corpus synth.npz --out runs/tiny --minutes 5. "
        "On several GPUs: torchrun --nproc-per-node 8 -m maskoban.training and the same options.",
    )
    p.add_argument("--preset", help=f"one of {', '.join(PRESETS)} (default: best; resumed: the run's own)")
    p.add_argument(
        "--corpus",
        type=Path,
        required=True,
        help="boards to learn from: a packed file, or a fetched corpus by name",
    )
    p.add_argument(
        "--held-out",
        type=Path,
        help="boards for the validation loss (default: the corpus's last tenth, which is not learned from then)",
    )
    p.add_argument("--out", type=Path, required=True, help="folder of the run: checkpoint, log, boards")
    begin = p.add_mutually_exclusive_group()
    begin.add_argument("--resume", action="store_true", help="go on from the checkpoint in --out")
    begin.add_argument(
        "--start-from",
        metavar="RUN",
        help="begin with the weights of another run, or of a model, and a fresh schedule",
    )
    p.add_argument(
        "--minutes",
        type=float,
        help="train this long by the clock; the schedule follows (resumed: as long as was said then)",
    )
    p.add_argument(
        "--stop-at", type=int, metavar="STEP", help="leave after this step, to go on later with --resume"
    )
    p.add_argument(
        "--anneal",
        type=int,
        metavar="STEPS",
        help="with --resume: end early, the rate falling to zero over so many steps from here; "
        "the run as it was is kept in a folder inside --out",
    )
    p.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="change one number of the preset"
    )
    p.add_argument("--device", help="cpu, cuda, ... (default: cuda if there is one)")
    p.add_argument("--no-compile", action="store_true", help="do not compile the step (default on a CPU)")
    p.add_argument(
        "--save-every",
        type=int,
        default=10_000,
        metavar="STEPS",
        help="steps between two checkpoints (default: %(default)s; every five minutes in any case)",
    )
    p.add_argument("--compact", action="store_true", help="save optimiser moments in bf16")
    p.add_argument(
        "--largest-file",
        type=float,
        metavar="MB",
        help="split the checkpoint into files of at most this size",
    )
    p.add_argument("--tensorboard", action="store_true", help="also write TensorBoard events")
    return p


def run(arguments: list[str]) -> None:
    a = parser().parse_args(arguments)
    from maskoban.interrupting import saved_when_told_to_end
    from maskoban.training.checkpoint import load_checkpoint
    from maskoban.training.loop import Options
    from maskoban.training.processes import joined

    with joined(a.device or Options.device) as (processes, device), saved_when_told_to_end(processes.count):
        own = a.resume and a.preset is None
        preset = processes.from_first(lambda: load_checkpoint(a.out)[1]) if own else None
        trainer = processes.together(lambda: trainer_for(a, preset, processes, device))
        if a.resume:
            processes.together(trainer.resume)
        elif a.start_from:
            processes.together(lambda: trainer.start_from(a.start_from))
        trainer.run()


def trainer_for(a: argparse.Namespace, own: Preset | None, processes: Processes, device: str) -> Trainer:
    """What the options ask for, by the preset ``own`` where there is one."""
    from maskoban.training.corpus import load
    from maskoban.training.loop import Options, Trainer
    from maskoban.training.presets import preset_named, vary

    preset = vary(own or preset_named(a.preset or "best"), a.set)
    corpus = load(a.corpus)
    if a.held_out:
        held_out = load(a.held_out)
    else:
        tenth = max(len(corpus) // 10, 1)
        corpus, held_out = corpus[:-tenth], corpus[-tenth:]
    largest = int(a.largest_file * 1e6) if a.largest_file else None
    if a.anneal is not None and not a.resume:
        raise MaskobanError("--anneal ends a run that is there already: give --resume too")
    options = Options(minutes=a.minutes, stop_at=a.stop_at, anneal=a.anneal, save_every=a.save_every, compact=a.compact,
                      largest=largest, tensorboard=a.tensorboard, device=device,
                      compile=device.startswith("cuda") and not a.no_compile)  # fmt: skip
    if (a.out / "model.safetensors").is_file():
        raise MaskobanError(f"{a.out}: an exported model is there; a run needs a folder of its own")
    if not a.resume and any(a.out.glob("state*.safetensors")):
        raise MaskobanError(
            f"{a.out}: a run is there already; give --resume to go on with it, or another --out"
        )
    return Trainer(preset, corpus, held_out, a.out, options, processes)


def main() -> None:
    try:
        run(sys.argv[1:])
    except MaskobanError as error:
        print(f"maskoban train: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
