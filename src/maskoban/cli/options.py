"""Options that several commands share, one at a time or as groups."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import typer

if TYPE_CHECKING:
    from maskoban.boards import Level
    from maskoban.diffusion.model import Model
    from maskoban.diffusion.sampler import SamplerConfig
    from maskoban.solving import Limits
    from maskoban.solving.filters import BoardFilter

#: Boards in one animation: more would be too small to watch and too large to send.
ANIMATED = 25

Difficulty = Literal["easy", "medium", "hard", "expert"]
Measure = Literal["effort", "decomposed"]
Precision = Literal["fp32", "int8"]

File = Annotated[
    str, typer.Argument(metavar="FILE", help="Level file of any format, a folder of them, or - for stdin.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object a level a line.")]
Strict = Annotated[
    bool, typer.Option("--strict", help="Refuse what is a warning otherwise: damaged levels, missing ends.")
]
Title = Annotated[
    str | None, typer.Option(help="Title of each level written; {n} is its number, counted from 1.")
]
Threads = Annotated[int | None, typer.Option(min=1, show_default="all cores", help="Threads to use.")]
Seed = Annotated[int, typer.Option(help="Same seed, same boards.")]
ModelName = Annotated[
    str | None,
    typer.Option(
        "--model",
        show_default="best; any for other sizes or numbers of boxes",
        help="A shipped model's name, a folder, or a Hugging Face hub id.",
    ),
]
Size = Annotated[
    str | None,
    typer.Option(
        metavar="ROWSxCOLUMNS", show_default="10x10", help="Size of a board, with its border: 5x5 to 16x16."
    ),
]
Guidance = Annotated[
    float | None,
    typer.Option(
        min=0, max=20, show_default="3",
        help="How much --difficulty counts for a conditional model: with 1 it is obeyed less, in half the time.",
    ),
]  # fmt: skip
Device = Annotated[str, typer.Option(help="Where the network runs: cpu, or cuda (needs torch).")]
SamplerName = Annotated[
    str,
    typer.Option(
        help="best: the model's own recipe. plain: one cell per step, as in the paper. fast: 16 steps. "
        "The options below change single fields."
    ),
]


@dataclass
class Sampling:
    """How boards are sampled."""

    sampler: SamplerName = "best"
    steps: Annotated[
        int | None,
        typer.Option(
            show_default="one per cell", help="Network evaluations for unmasking; fewer are coarser."
        ),
    ] = None
    order: Annotated[
        str | None,
        typer.Option(show_default="uniform", help="Which cells are unmasked first: uniform or confidence."),
    ] = None
    temperature: Annotated[
        float | None, typer.Option(show_default="1", help="Divides the logits: below 1 for likelier tiles.")
    ] = None
    sweeps: Annotated[
        int | None,
        typer.Option(
            "--polish",
            "--sweeps",
            show_default="the sampler's, 0 with --steps",
            help="Gibbs sweeps: each resamples every cell once given all others.",
        ),
    ] = None
    critic: Annotated[
        bool | None,
        typer.Option(
            "--critic/--no-critic",
            show_default="the sampler's, off with --steps, --order or --temperature",
            help="Rejection sampling: sample boards again that the model's critic rejects.",
        ),
    ] = None
    precision: Annotated[
        Precision | None,
        typer.Option(show_default="fp32", help="int8 is faster on most CPUs, and less exact."),
    ] = None

    def config(self, model: Model) -> SamplerConfig:
        """The sampler config these options stand for."""
        changes = {field.name: getattr(self, field.name) for field in fields(self)}
        return model.sampler(changes.pop("sampler"), **changes)


@dataclass
class Filter:
    """Which boards are kept."""

    only_solvable: Annotated[bool, typer.Option("--only-solvable", help="Keep only solvable boards.")] = False
    difficulty: Annotated[
        Difficulty | None,
        typer.Option(help="Keep only boards with this rating; a conditional model samples such."),
    ] = None
    difficulty_by: Annotated[
        Measure, typer.Option(help="What --difficulty rates by: effort, or decomposed effort.")
    ] = "effort"
    boxes: Annotated[
        int | None,
        typer.Option(min=1, help="Keep only boards with so many boxes; a conditional model samples such."),
    ] = None

    def board_filter(self) -> BoardFilter:
        """The board filter these options stand for."""
        from maskoban.solving.filters import BoardFilter

        return BoardFilter(self.only_solvable, self.difficulty, self.boxes, self.difficulty_by)


@dataclass
class Searching:
    """How levels are read and searched, and what is printed of them."""

    as_json: Json = False
    threads: Threads = None
    strict: Strict = False
    states: Annotated[int | None, typer.Option(min=0, help="Give up on a level after so many states.")] = None
    seconds: Annotated[
        float | None, typer.Option(min=0, help="Give up on a level after so many seconds.")
    ] = None
    megabytes: Annotated[int, typer.Option(min=1, help="Memory each thread's search may use.")] = 1024

    def limits(self) -> Limits:
        """The limits these options stand for."""
        from maskoban.solving import Limits

        return Limits(states=self.states, seconds=self.seconds, megabytes=self.megabytes)


@dataclass
class Outputs:
    """Files to save boards to."""

    out: Annotated[str | None, typer.Option(help="Save the boards: .sok, .xsb, .slc, .npz or folder/.")] = (
        None
    )
    picture: Annotated[str | None, typer.Option(help="Save a picture of all boards: .png or .svg.")] = None
    animate: Annotated[
        str | None, typer.Option(help=f"Save a .gif of the sampling of the first {ANIMATED} boards.")
    ] = None

    def check(self) -> None:
        """Report a name that cannot be written before the work, not after it."""
        from maskoban.boards import check_writable
        from maskoban.errors import MaskobanError
        from maskoban.pictures import check_animation, check_picture

        if self.out == "-":
            raise MaskobanError("--out: expected a file; results are written to standard output")
        for path, check in (
            (self.out, check_writable), (self.picture, check_picture), (self.animate, check_animation)
        ):  # fmt: skip
            if path:
                check(path)


def parse_size(text: str | None) -> tuple[int, int] | None:
    """The height and width of a size such as 8x12.

    >>> parse_size("8x12")
    (8, 12)
    """
    from maskoban.errors import MaskobanError

    if text is None:
        return None
    height, _, width = text.partition("x")
    if not (height.isdecimal() and width.isdecimal() and len(text) < 10):
        raise MaskobanError(f"--size: expected ROWSxCOLUMNS such as 8x12, got {text!r}")
    return int(height), int(width)


#: The names of the tiles in --tiles, and their letters.
TILE_NAMES = {
    "wall": "#",
    "floor": " ",
    "player": "@",
    "box": "$",
    "goal": ".",
    "box_on_goal": "*",
    "player_on_goal": "+",
}


def tile_letters(text: str) -> dict[str, str]:
    """What --tiles says: the letter of ours that each letter of a file stands for.

    >>> tile_letters("wall=x,box=o")
    {'x': '#', 'o': '$'}
    """
    from maskoban.errors import MaskobanError

    letters: dict[str, str] = {}
    for part in text.split(","):
        name, _, letter = part.strip().partition("=")
        tile = TILE_NAMES.get(name.strip().replace(" ", "_").replace("-", "_"))
        if tile is None or len(letter) != 1 or letter.isdigit() or letter in "|;":
            raise MaskobanError(
                f"--tiles: {part.strip()!r}; expected NAME=LETTER with one of {', '.join(TILE_NAMES)}"
            )
        letters[letter] = tile
    return letters


def titled(levels: Iterable[Level], title: str | None) -> Iterator[Level]:
    """Levels with the title that --title asks for.

    >>> from maskoban.boards import Level
    >>> [level.title for level in titled([Level.parse("#@#")], "Set {n}")]
    ['Set 1']
    """
    for number, level in enumerate(levels, 1):
        yield level if title is None else replace(level, title=title.replace("{n}", str(number)))


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """A command with groups of options as parameters: each field of a dataclass becomes an option."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name not in groups:
            parameters.append(parameter.replace(annotation=hints[name]))
            continue
        for field in fields(groups[name]):
            hint = get_type_hints(groups[name], include_extras=True)[field.name]
            if "meaning" in field.metadata:  # a dataclass that does not know typer
                hint = Annotated[hint, _option(field)]
            default = [] if field.default is MISSING else field.default
            parameters.append(
                inspect.Parameter(field.name, parameter.KEYWORD_ONLY, default=default, annotation=hint)
            )

    def run(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        command(**values)

    by_keyword = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    run.__signature__ = inspect.Signature(by_keyword)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in by_keyword}
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    return run


def _option(field: Field[Any]) -> Any:
    """The option that a field's metadata describes: meaning, shown default, flag."""
    flags = [field.metadata["flag"]] if field.metadata["flag"] else []
    shown = field.metadata["shown"]
    return typer.Option(*flags, help=field.metadata["meaning"], show_default=True if shown is None else shown)
