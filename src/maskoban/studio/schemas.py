"""The requests and responses of the HTTP API."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from maskoban.diffusion.conditions import LEAST_SIDE, MOST_BOXES, MOST_SIDE
from maskoban.diffusion.sampler import Precision, SamplerConfig
from maskoban.studio.limits import MAX_BOARDS, MAX_LEVELS, MAX_SECONDS, MAX_SWEEPS

#: 64 rows of 64 letters, each with the line ending of any system.
Board = Annotated[
    str,
    Field(
        min_length=1,
        max_length=64 * 66,
        pattern=r"^[#@$.*+?_\- \n\r]+$",
        description="Rows of # @ $ . * + ? and floor (space, - or _), a line each; at most 64 x 64.",
        examples=["#####\n#@$.#\n#####"],
    ),
]
Seconds = Annotated[float, Field(gt=0, le=MAX_SECONDS, allow_inf_nan=False, description="Time limit.")]
Moves = Annotated[str, Field(max_length=100_000, pattern="^[lurdLURD]*$", description="In LURD notation.")]
Cell = Annotated[list[int], Field(min_length=2, max_length=2, description="Row and column.")]
Verdict = Literal["solved", "unsolvable", "unknown", "malformed"]
Difficulty = Literal["easy", "medium", "hard", "expert"]
LimitHit = Literal["states", "memory", "time"] | None
Format = Literal["xsb", "sok", "slc", "boxoban", "npz", "npy"]
Encoding = Literal["text", "base64"]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Sampling(_Request):
    """How boards are sampled: a seed, a sampler by name, changes to its fields, and what is wanted."""

    count: int = Field(4, ge=1, le=MAX_BOARDS, description="Number of boards.")
    seed: int | None = Field(None, ge=0, lt=2**53, description="Same seed, same boards; random by default.")
    sampler: str = Field("best", max_length=100, description="best, plain or fast.")
    steps: int | None = Field(None, ge=1, le=64 * 64, description="Network evaluations for unmasking.")
    order: str | None = Field(None, max_length=100, description="Cells unmasked first: uniform, confidence.")
    temperature: float | None = Field(
        None, ge=0.1, le=5, allow_inf_nan=False, description="Divides the logits: below 1 likelier tiles."
    )
    sweeps: int | None = Field(None, ge=0, le=MAX_SWEEPS, description="Gibbs sweeps after unmasking.")
    critic: bool | None = Field(None, description="Reject boards by the model's critic.")
    precision: Precision | None = Field(None, description="Of the network on a CPU.")
    only_solvable: bool = Field(False, description="Keep only boards that the solver solves.")
    difficulty: Difficulty | None = Field(
        None, description="Keep only boards with this rating; the model any samples such."
    )
    boxes: int | None = Field(
        None, ge=1, le=MOST_BOXES, description="Number of boxes; other than 4 by the model any."
    )


class Generate(_Sampling):
    """Boards to sample."""

    size: str | None = Field(
        None, pattern=r"^\d{1,2}x\d{1,2}$", description="Rows and columns, 5x5 to 16x16: 10x10 by default.",
        examples=["8x12"],
    )  # fmt: skip


class Complete(_Sampling):
    """Boards that fill the ? cells of a board; all other cells stay. The critic is off unless it is asked for."""

    board: Board


class Solve(_Request):
    """A board to solve."""

    board: Board
    mode: Literal["any", "pushes", "effort"] = "any"
    seconds: Seconds = 5.0


class Rate(_Request):
    """A board to rate."""

    board: Board
    seconds: Seconds = 2.0


class Repair(_Request):
    """A board to repair by removing walls."""

    board: Board
    walls: int = Field(1, ge=1, le=2, description="2: try pairs where no single wall helps.")
    all: bool = Field(False, description="Find every repair, not only the first.")


class DeadCells(_Request):
    """A board to find the dead cells of."""

    board: Board


class Level(_Request):
    """A board and its metadata."""

    board: Board
    title: str = Field("", max_length=1000)
    author: str = Field("", max_length=1000)
    comment: str = Field("", max_length=10_000)
    solutions: list[Moves] = Field(default_factory=list, max_length=20)


class Convert(_Request):
    """Levels to convert: either the content of a level file, or the levels themselves."""

    content: str | None = Field(None, min_length=1, description="A level file; its format is recognised.")
    encoding: Encoding = Field("text", description="Of the content; .npz and .npy files need base64.")
    levels: list[Level] | None = Field(None, min_length=1, max_length=MAX_LEVELS)
    to: Format = "xsb"

    @model_validator(mode="after")
    def _either(self) -> Convert:
        if (self.content is None) == (self.levels is None):
            raise ValueError("give either content or levels")
        return self


class Picture(_Request):
    """A board as a picture, or its solution as an animation."""

    board: Board
    format: Literal["png", "svg", "gif"] = "png"
    solution: Moves = Field("", description="What a GIF shows; if empty, the solver finds a solution.")


class Judgement(BaseModel):
    """The solver's verdict and rating of a finished board; null where unknown."""

    verdict: Verdict
    reason: str
    effort: int | None
    pushes: int | None
    moves: int | None
    box_changes: int | None
    box_lines: int | None
    word: Difficulty | None
    limit_hit: LimitHit
    decomposed_effort: int | None
    boxes_at_once: int | None
    decomposed_word: Difficulty | None


class SampledBoard(BaseModel):
    """One finished board."""

    number: int = Field(description="In the sequence of the seed.")
    title: str
    board: str
    attempts: int = Field(description="Boards sampled until the critic accepted one.")
    judgement: Judgement


class SampledBoards(BaseModel):
    """Finished boards. Sampling never uses the solver; it judges and filters finished boards."""

    seed: int
    model: str
    sampler: SamplerConfig
    sampled: int = Field(description="Boards sampled in all; more than returned if a filter was set.")
    boards: list[SampledBoard]


class Solution(BaseModel):
    """The solver's verdict; with a solution if it is "solved"."""

    verdict: Verdict
    reason: str
    solution: str | None
    pushes: int | None
    moves: int | None
    expanded: int
    seconds: float
    limit_hit: LimitHit


class Repaired(BaseModel):
    """Each entry of ``walls`` is one repair: the [row, column] cells to remove together."""

    verdict: Literal["solvable", "repaired", "unrepaired", "unknown", "malformed"]
    reason: str
    walls: list[list[Cell]]
    limit_hit: LimitHit
    board: str | None = Field(description="The board with its first repair applied.")


class Dead(BaseModel):
    """Cells as [row, column]; walls are not among them."""

    dead: list[Cell]


class ReadLevel(BaseModel):
    """A level of a file."""

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


class NamedSampler(BaseModel):
    """A sampler that has a name, and its cost; null where it was not measured."""

    name: str
    config: SamplerConfig
    solvable: float | None = Field(description="Share of its boards that are solvable.")
    attempts: float | None = Field(description="Attempts a board, on average.")
    evaluations: float | None = Field(description="Network evaluations a board, on average.")


class Sizes(BaseModel):
    """The boards of a conditional model: rows and columns from ``least`` to ``most``, and at most so many boxes."""

    least: int = LEAST_SIDE
    most: int = MOST_SIDE
    boxes: int = MOST_BOXES


class ModelFacts(BaseModel):
    """The model that samples, and which other boards are sampled by the model any."""

    name: str
    height: int
    width: int
    samplers: list[NamedSampler]
    sizes: Sizes | None = Sizes()


class Health(BaseModel):
    """The state of the server."""

    status: Literal["ok"]
    version: str
    model: ModelFacts | None = Field(description="null while it is being loaded")
    sampling: int = Field(description="Sampling requests that wait or run.")
    solving: int = Field(description="Solver jobs that wait or run.")
