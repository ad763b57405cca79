"""What is asked of the server and what it answers: the shapes and limits of the HTTP API."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from maskoban.studio.worker import MAX_LEVELS

#: Boards of one drawing; bytes of a request; seconds a search and a repair may take.
MAX_COUNT = 16
MAX_BODY = 1_000_000
MAX_SECONDS = 10.0
REPAIR_SECONDS = 20.0

#: 64 rows of 64 letters, each with the line ending of any system.
Board = Annotated[
    str,
    Field(
        min_length=1,
        max_length=64 * 66,
        pattern=r"^[#@$.*+?_\- \n\r]+$",
        description="A board as text, a row a line, of # @ $ . * + ? and floor (space, - or _); at most 64 x 64.",
        examples=["#####\n#@$.#\n#####"],
    ),
]
Seconds = Annotated[
    float, Field(gt=0, le=MAX_SECONDS, allow_inf_nan=False, description="Time to give up after.")
]
Steps = Annotated[
    str, Field(max_length=100_000, pattern="^[lurdLURD]*$", description="Moves in LURD notation.")
]
Cell = Annotated[list[int], Field(min_length=2, max_length=2, description="Row and column.")]
Verdict = Literal["solved", "unsolvable", "unknown", "malformed"]
Format = Literal["xsb", "sok", "slc", "boxoban", "npz", "npy"]
Encoding = Literal["text", "base64"]


class _Asked(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Drawing(_Asked):
    """How to draw."""

    count: int = Field(4, ge=1, le=MAX_COUNT, description="How many boards.")
    seed: int | None = Field(
        None, ge=0, lt=2**53, description="Same seed, same boards; a new one by default."
    )
    temperature: float = Field(
        1.0,
        ge=0.1,
        le=5,
        allow_inf_nan=False,
        description="Below 1 draws more likely tiles, above 1 wilder ones.",
    )
    polish: int | None = Field(
        None,
        ge=0,
        le=4,
        description="Sweeps that redraw every cell once; no solver involved. Null: the model's own.",
    )


class Generate(Drawing):
    """New boards."""


class Complete(Drawing):
    """Ways to fill the ? cells of a half-drawn board; every other cell stays as it is."""

    board: Board


class Solve(_Asked):
    """A solution, or the proof that there is none."""

    board: Board
    mode: Literal["any", "pushes", "effort"] = "any"
    seconds: Seconds = 5.0


class Rate(_Asked):
    """How hard a board is."""

    board: Board
    seconds: Seconds = 2.0


class Repair(_Asked):
    """The walls whose removal makes a board solvable."""

    board: Board
    walls: int = Field(1, ge=1, le=2, description="2: try pairs where no single wall helps.")
    all: bool = Field(False, description="Every cure, not only the first.")


class DeadCells(_Asked):
    """The cells no box may ever stand on."""

    board: Board


class Level(_Asked):
    """A board and what people write beside it."""

    board: Board
    title: str = Field("", max_length=1000)
    author: str = Field("", max_length=1000)
    comment: str = Field("", max_length=10_000)
    solutions: list[Steps] = Field(default_factory=list, max_length=20)


class Convert(_Asked):
    """Levels from one format to another: either the content of a level file, or the levels themselves."""

    content: str | None = Field(
        None, min_length=1, description="A level file of any format, which is recognised."
    )
    encoding: Encoding = Field(
        "text", description="How the content is written; .npz and .npy files need base64."
    )
    levels: list[Level] | None = Field(None, min_length=1, max_length=MAX_LEVELS)
    to: Format = "xsb"

    @model_validator(mode="after")
    def _either(self) -> Convert:
        if (self.content is None) == (self.levels is None):
            raise ValueError("give either content or levels")
        return self


class Picture(_Asked):
    """A board as a picture, or its solution as an animation."""

    board: Board
    format: Literal["png", "svg", "gif"] = "png"
    solution: Steps = Field("", description="What a GIF is to show; one is looked for where this is empty.")


class Judgement(BaseModel):
    """What the solver says of a finished board; null where something is not known."""

    verdict: Verdict
    reason: str
    effort: int | None
    pushes: int | None
    moves: int | None
    box_changes: int | None
    box_lines: int | None
    word: Literal["easy", "medium", "hard", "expert"] | None


class Drawn(BaseModel):
    """One finished board."""

    number: int
    board: str
    judgement: Judgement


class DrawnBoards(BaseModel):
    """Finished boards. Drawing never asks the solver: its judgement comes after the fact."""

    seed: int
    model: str
    boards: list[Drawn]


class Solution(BaseModel):
    """The solver's verdict; with a solution if it is "solved"."""

    verdict: Verdict
    reason: str
    solution: str | None
    pushes: int | None
    moves: int | None
    expanded: int
    seconds: float


class Repaired(BaseModel):
    """Each entry of ``walls`` is one cure: the [row, column] cells to remove together."""

    verdict: Literal["solvable", "repaired", "unrepaired", "unknown", "malformed"]
    reason: str
    walls: list[list[Cell]]
    board: str | None = Field(description="The board with its first cure applied.")


class Dead(BaseModel):
    """Cells as [row, column]; walls are not among them."""

    dead: list[Cell]


class ReadLevel(BaseModel):
    """A level as it was found in a file."""

    board: str
    title: str
    author: str
    comment: str
    solutions: list[str]


class Converted(BaseModel):
    """The levels that were read, and the file they make."""

    levels: list[ReadLevel]
    content: str
    encoding: Encoding


class ModelFacts(BaseModel):
    """What the model draws."""

    name: str
    height: int
    width: int


class Health(BaseModel):
    """How the server is."""

    status: Literal["ok"]
    version: str
    model: ModelFacts | None = Field(description="null while it is being loaded")
    drawing: int = Field(description="Drawings that wait or run.")
    solving: int = Field(description="Solver jobs that wait or run.")
