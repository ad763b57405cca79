"""``python -m maskoban.training``: ``maskoban train`` where only torch and NumPy are installed, and under torchrun.

``python -m maskoban.training critic`` is ``maskoban train critic``.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import MISSING, fields
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from maskoban.errors import MaskobanError
from maskoban.training.options import CriticOptions, TrainOptions, wait_passively


def parse(options: type[Any], arguments: list[str], name: str) -> Any:
    """Options from command-line arguments: one argument for every field."""
    parser = argparse.ArgumentParser(prog=name, description=options.__doc__)
    hints = get_type_hints(options)
    for field in fields(options):
        flag = field.metadata["flag"] or "--" + field.name.replace("_", "-")
        kind = hints[field.name]
        if isinstance(kind, UnionType):  # X | None
            kind = get_args(kind)[0]
        default = field.metadata["shown"] or (None if field.default is MISSING else field.default)
        keywords: dict[str, Any] = {"help": f"{field.metadata['meaning']} [{default}]", "dest": field.name}
        if kind is bool:
            keywords["action"] = argparse.BooleanOptionalAction
        elif get_origin(kind) is list:
            keywords["action"] = "append"
        else:
            keywords["type"] = kind
        parser.add_argument(flag, default=argparse.SUPPRESS, **keywords)
    return options(**vars(parser.parse_args(arguments)))


def main(arguments: list[str]) -> None:
    wait_passively()
    critic = arguments[:1] == ["critic"]
    name = "maskoban train critic" if critic else "maskoban train"
    try:
        if critic:
            from maskoban.training.critic import train_critic

            train_critic(parse(CriticOptions, arguments[1:], name))
        else:
            from maskoban.training.run import train

            train(parse(TrainOptions, arguments, name))
    except MaskobanError as error:
        print(f"{name}: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt as interrupt:
        print(*interrupt.args, sep="\n", end="\n" * len(interrupt.args), file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main(sys.argv[1:])
