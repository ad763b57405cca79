"""The model as people use it: load it, draw boards, complete half-drawn ones, watch it draw, ask what it thinks.

model = maskoban.load()
for level in model.generate(9, seed=7):
    print(level)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from functools import partial
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, Literal, TypedDict, Unpack, cast, get_args

import numpy as np
from numpy.typing import NDArray

from maskoban.bars import Progress
from maskoban.boards import Level
from maskoban.boards.errors import MaskobanError
from maskoban.boards.tiles import (
    BOX,
    BOX_ON_GOAL,
    GOAL,
    MASK,
    PLAYER,
    PLAYER_ON_GOAL,
    WALL,
    Tokens,
)
from maskoban.diffusion.commits import Commits
from maskoban.diffusion.denoiser import Critic, Denoiser
from maskoban.diffusion.opinions import odds, surprise
from maskoban.diffusion.sampler import (
    Drawing,
    Drawn,
    Order,
    blank,
    draw,
    draw_in_turn,
    draw_many,
    drawn_cells,
)
from maskoban.diffusion.shipped import shipped, shipped_folder
from maskoban.solving.picking import Wishes

Precision = Literal["fp32", "int8"]
Numbered = Iterator[tuple[NDArray[np.int64], Tokens]]

#: A filter that keeps fewer than one board in this many is given up on.
RAREST = 500

#: What of an exported folder goes to the hub, and comes from it.
HUB_FILES = ["model.*", "critic.*", "README.md"]


def load(
    source: str | os.PathLike[str] = "best",
    device: str = "cpu",
    precision: Precision = "fp32",
    threads: int | None = None,
) -> Model:
    """The shipped model of this name, an exported folder, a training run, or a Hugging Face hub id.

    A shipped name is meant where nothing but the name is given: ``"./best"`` and ``Path("best")`` are folders.
    On a ``cpu`` an exported model runs under ONNX Runtime, in fp32 or with its products in int8 (faster, a little
    off); any other device, and a training run, needs torch and computes in its own precision. ``threads``, all cores by
    default, is how many a cpu computes with; torch then has no more for anything else in this process.

    >>> load().generate(1, seed=7)[0].shape
    (10, 10)
    """
    if precision not in get_args(Precision):
        raise MaskobanError(f"precision is one of {', '.join(get_args(Precision))}, not {precision!r}")
    if threads is not None and threads < 1:
        raise MaskobanError(f"a model computes with 1 thread or more, not {threads}")
    folder = model_folder(source)
    graph = _graph(folder, precision)
    if device == "cpu" and graph.is_file():
        from maskoban.diffusion.onnx_denoiser import OnnxDenoiser  # other devices need no ONNX Runtime

        exported = OnnxDenoiser(graph, threads)
        critic = _late(folder / "critic.onnx", partial(_onnx_critic, folder / "critic.onnx", threads))
        return Model(exported, exported.facts, folder, critic)
    if precision == "int8":
        raise MaskobanError(f"{source}: int8 is for exported models on a cpu")
    try:
        from maskoban.diffusion.torch_model import load_torch, load_torch_critic
    except ImportError as error:
        raise MaskobanError(f"{source} on {device} needs torch: pip install 'maskoban[train]'") from error
    if device == "cpu" and threads is not None:
        import torch

        torch.set_num_threads(threads)
    denoiser, facts = load_torch(folder, device)
    critic = _late(folder / "critic.safetensors", partial(load_torch_critic, folder, device))
    return Model(denoiser, facts, folder, critic)


class TooRareError(MaskobanError):
    """So few of the boards drawn were as asked that no more were drawn."""


class LateCritic:
    """A critic that is loaded when it is first asked: most of what a model is used for needs none."""

    def __init__(self, load: Callable[[], Critic]) -> None:
        self._load, self._loading = load, Lock()
        self._critic: Critic | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return LateCritic, (self._load,)

    def scores(self, tokens: Tokens) -> NDArray[np.float32]:
        """What the critic says."""
        with self._loading:
            self._critic = self._critic or self._load()
        return self._critic.scores(tokens)


def _late(file: Path, load: Callable[[], Critic]) -> Critic | None:
    return LateCritic(load) if file.is_file() else None


def _onnx_critic(file: Path, threads: int | None) -> Critic:
    from maskoban.diffusion.onnx_critic import OnnxCritic

    return OnnxCritic(file, threads)


def model_folder(source: str | os.PathLike[str]) -> Path:
    """Where the model of this name lies: in the package, on disk, or, once downloaded, in the hub's cache."""
    if (folder := shipped_folder(source)) is not None:
        return folder
    name = os.fspath(source)
    path = Path(name)
    if path.is_dir():
        return path
    if path.suffix == ".onnx" and path.name != "model.onnx":
        raise MaskobanError(f"{name}: a model is loaded by its folder, in int8 with precision='int8'")
    if path.is_file():
        return path.parent if path.name == "model.onnx" else path
    if name.count("/") == 1 and not name.startswith((".", "/", "~")):
        return _downloaded(name)
    raise MaskobanError(f"no model {name!r}: shipped are {', '.join(shipped())}, and there is no such folder")


def _graph(folder: Path, precision: Precision) -> Path:
    return folder / ("model.onnx" if precision == "fp32" else "model.int8.onnx")


def weights_hash(folder: Path | None, precision: Precision = "fp32") -> str:
    """16 hexadecimal digits that tell the weights in a model's folder from all others: a hash of their files.

    >>> len(weights_hash(model_folder("best")))
    16
    """
    files: list[Path] = []
    if folder is not None:
        files = sorted(folder.glob("*.safetensors")) if folder.is_dir() else [folder]
        # An fp32 graph only names its weights, which lie beside it; an int8 graph has made its own of them.
        if precision == "int8" or not files:
            files.append(_graph(folder, precision))
    digest = sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _downloaded(hub_id: str) -> Path:
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise MaskobanError(f"{hub_id} comes from the hub: pip install 'maskoban[train]'") from error
    try:
        return Path(snapshot_download(hub_id, allow_patterns=HUB_FILES))
    except Exception as error:  # the hub's exceptions share no base worth naming
        raise MaskobanError(
            f"{hub_id}: there is no such folder, and it cannot be had from the hub: {str(error).splitlines()[0]}"
        ) from error


class How(TypedDict, total=False):
    """How to draw, as keyword arguments: the fields of :class:`~maskoban.diffusion.sampler.Drawing`.

    ``polish`` left out, or None, is the model's own: what its card says it draws best with. Where fewer ``steps``
    are asked for, in a hurry, that is none.
    ``critic`` is not a number here but whether to ask the model's critic, by the number on its card. Left out, or None:
    where there is one and whole boards are drawn from nothing, in the paper's order, one cell at a time, at temperature
    1, with however many sweeps. It judges boards that are polished (that of ``best`` learned from unpolished ones), and
    what it rejects is drawn from the beginning.
    """

    temperature: float
    steps: int | None
    order: Order
    polish: int | None
    critic: bool | None


class Asked(How, total=False):
    """How to draw, and which boards to keep: the fields of :class:`~maskoban.solving.picking.Wishes`."""

    only_solvable: bool
    difficulty: str | None
    boxes: int | None


class Model:
    """A denoiser and what is known about it. Same seed, same boards, whatever the batch.

    A critic counts only where the card says by which number c it keeps boards.
    """

    def __init__(
        self,
        denoiser: Denoiser,
        card: dict[str, Any],
        folder: Path | None = None,
        critic: Critic | None = None,
    ) -> None:
        self.denoiser, self.card, self.folder = denoiser, card, folder
        self.critic = critic if card.get("critic") is not None else None
        self.name: str = card.get("name", "unnamed")
        self.height, self.width = denoiser.height, denoiser.width
        self.polish: int = card.get("polish", 0)

    @classmethod
    def from_pretrained(cls, source: str | os.PathLike[str], device: str = "cpu") -> Model:
        """:func:`load`, under the name the Hugging Face world expects."""
        return load(source, device)

    def push_to_hub(self, repo_id: str, private: bool = False) -> str:
        """Upload this model's exported folder (weights, graphs, card) to the Hugging Face hub; returns its address."""
        try:
            from huggingface_hub import HfApi
        except ImportError as error:
            raise MaskobanError("uploading needs the hub's client: pip install 'maskoban[train]'") from error
        if self.folder is None or not (self.folder / "model.onnx").is_file():
            raise MaskobanError(
                f"model {self.name!r} was not loaded from an export: run maskoban export first"
            )
        api = HfApi()
        address = str(api.create_repo(repo_id, private=private, exist_ok=True))
        api.upload_folder(repo_id=repo_id, folder_path=self.folder, allow_patterns=HUB_FILES)
        return address

    def sample(
        self, n: int, seed: int = 0, *, first: int = 0, progress: Progress | None = None, **how: Unpack[How]
    ) -> Tokens:
        """``n`` boards as one uint8 array, unfiltered: boards ``first``, ``first + 1``, ... of this seed.

        >>> load().sample(2, seed=7).shape
        (2, 10, 10)
        """
        return self.drawn(n, seed, first=first, progress=progress, **how).boards

    def sample_with_probabilities(
        self, n: int, seed: int = 0, *, first: int = 0, progress: Progress | None = None, **how: Unpack[How]
    ) -> tuple[Tokens, NDArray[np.float32]]:
        """:meth:`sample`, and for every cell the probability its tile had when it was committed (NaN: given)."""
        drawn = self.drawn(n, seed, first=first, record=True, progress=progress, **how)
        assert drawn.commits is not None
        return drawn.boards, drawn.commits.probability()

    def drawn(
        self,
        n: int,
        seed: int = 0,
        *,
        first: int = 0,
        record: bool = False,
        progress: Progress | None = None,
        **how: Unpack[How],
    ) -> Drawn:
        """:meth:`sample`, and how many attempts each board took; with ``record`` also every commit.

        >>> load().drawn(2, seed=7, steps=1).attempts
        array([1, 1])
        """
        start, drawing = self._blank(n), self.drawing(how)
        return draw_many(self.denoiser, start, seed, drawing, first, record, progress, self.critic)

    def generate(
        self, n: int, seed: int = 0, *, progress: Progress | None = None, **asked: Unpack[Asked]
    ) -> list[Level]:
        """``n`` boards as levels, each titled with its number in the seed's sequence.

        The solver is consulted only on request: ``only_solvable``, or a ``difficulty`` (easy, medium, hard,
        expert). With a filter, the first ``n`` boards of the sequence that pass are returned.
        """
        return [level for _, level in self.numbered(n, seed, progress=progress, **asked)]

    def numbered(
        self, n: int, seed: int = 0, *, progress: Progress | None = None, **asked: Unpack[Asked]
    ) -> Iterator[tuple[int, Level]]:
        """:meth:`generate`, each level as soon as it is drawn, with its number in the seed's sequence.

        >>> [number for number, level in load().numbered(2, seed=7)]
        [0, 1]
        """
        wishes, how = _apart(asked)
        drawing = self.drawing(how)

        def drawn(count: int, first: int, told: Progress | None) -> Numbered:
            return draw_in_turn(self.denoiser, self._blank(count), seed, drawing, first, told, self.critic)

        for number, board in self._first_passing(n, drawn, wishes, progress):
            yield number, self.titled(board, seed, number)

    def _first_passing(
        self,
        n: int,
        drawn: Callable[[int, int, Progress | None], Numbered],
        wishes: Wishes,
        progress: Progress | None,
    ) -> Iterator[tuple[int, Tokens]]:
        """The first ``n`` boards of a sequence that are as wished, some at a time, each with its number in it.

        ``drawn(count, first, progress)`` draws boards first, first + 1, ... of the sequence. ``progress`` is told of
        boards that are as wished.
        """
        _check_count(n)
        some = 4 * self.denoiser.batch
        kept = done = 0
        while kept < n:
            if done >= RAREST * n:
                raise TooRareError(f"only {kept} of {done} boards drawn were as asked ({wishes}); gave up")
            likely = max(n - kept, min(self.denoiser.batch, 2 * n)) if wishes else n - kept
            count = min(likely, some)
            told = None if wishes or progress is None else partial(_further, progress, done, n)
            for numbers, boards in drawn(count, done, told):
                passing = np.flatnonzero(wishes.met(boards))[: n - kept]
                kept += len(passing)
                if wishes and progress is not None:
                    progress(kept, n)
                yield from ((int(numbers[i]), boards[i]) for i in passing)
                done += len(boards)
                if kept == n and numbers[-1] + 1 == done:  # else Ctrl-C was pressed, and there are gaps
                    return

    def titled(self, board: Tokens, seed: int, number: int) -> Level:
        """The board as the level :meth:`generate` makes of it: titled with this model, the seed and its number."""
        return Level(board, title=f"{self.name} {seed}-{number}")

    def complete(
        self,
        board: Level | Tokens,
        n: int = 1,
        seed: int = 0,
        *,
        progress: Progress | None = None,
        **asked: Unpack[Asked],
    ) -> list[Level]:
        """``n`` ways to fill the masked (``?``) cells of a board; every given cell stays as it is.

        Filters are those of :meth:`generate`: the first ``n`` completions that pass are returned.
        """
        return [level for _, level in self.completions(board, n, seed, progress=progress, **asked)]

    def completions(
        self,
        board: Level | Tokens,
        n: int = 1,
        seed: int = 0,
        *,
        progress: Progress | None = None,
        **asked: Unpack[Asked],
    ) -> Iterator[tuple[int, Level]]:
        """:meth:`complete`, each level as soon as it is drawn, with its number among this board's completions."""
        title = board.title if isinstance(board, Level) else ""
        wishes, how = _apart(asked)
        tokens = self._half_drawn(board, wishes.boxes)
        drawing = self.drawing(how, from_nothing=False)

        def drawn(count: int, first: int, told: Progress | None) -> Numbered:
            start = np.repeat(tokens[None], count, axis=0)
            return draw_in_turn(self.denoiser, start, seed, drawing, first, told)

        _check_count(n)
        if not (tokens == MASK).any() and not wishes.met(tokens[None])[0]:
            raise TooRareError(f"the board has nothing left to draw, and is not as asked ({wishes})")
        for number, finished in self._first_passing(n, drawn, wishes, progress):
            yield number, Level(finished, title=title)

    def trajectory(
        self,
        n: int = 1,
        seed: int = 0,
        *,
        board: Level | Tokens | None = None,
        numbers: list[int] | None = None,
        progress: Progress | None = None,
        **how: Unpack[How],
    ) -> Commits:
        """Every commit of ``n`` drawings with its probabilities; the boards are those :meth:`sample` gives.

        ``board`` completes a half-drawn board instead; ``numbers`` picks boards of the sequence.
        ``progress`` is told (evaluations done, evaluations in all).
        """
        if board is None:
            start = self._blank(n if numbers is None else len(numbers))
        else:
            start = np.repeat(self._half_drawn(board)[None], n if numbers is None else len(numbers), axis=0)
        drawing = self.drawing(how, from_nothing=board is None)
        drawn = draw(self.denoiser, start, seed, drawing, numbers, True, progress, self.critic)
        assert drawn.commits is not None
        return drawn.commits

    def odds(self, board: Level | Tokens) -> NDArray[np.float64]:
        """What the model expects where: the probabilities of the seven tiles in every cell, (height, width, 7).

        In masked (``?``) cells they are the model's, given all that is drawn already; a drawn cell is what it is.
        Of many boards (n, height, width) they come as (n, height, width, 7), faster than one by one.

        >>> load().odds(np.full((10, 10), 7)).shape
        (10, 10, 7)
        """
        if isinstance(board, np.ndarray) and board.ndim == 3:
            if not len(board):
                raise MaskobanError("there are no boards to ask about")
            return odds(self.denoiser, np.array([self._fitting(each) for each in board]))
        found: NDArray[np.float64] = odds(self.denoiser, self._fitting(board)[None])[0]
        return found

    def surprise(
        self,
        boards: Level | Tokens | Sequence[Level | Tokens],
        orders: int = 1,
        seed: int = 0,
        *,
        progress: Progress | None = None,
    ) -> NDArray[np.float64]:
        """How improbable finished boards are to the model: -log p(board) in nats, at most, one number a board.

        Each board is drawn anew cell by cell with its own tiles, which costs as many evaluations as drawing it plainly,
        in ``orders`` random orders (the same for all boards) whose mean is returned: the more, the less chance is in
        it. On average that is the bound which training lowers, the negative ELBO.

        >>> model = load()
        >>> bool(model.surprise(model.generate(1, seed=7))[0] < 100)
        True
        """
        if orders < 1:
            raise MaskobanError(f"a board is drawn in at least 1 order, not {orders}")
        if isinstance(boards, Level) or (isinstance(boards, np.ndarray) and boards.ndim == 2):
            boards = [boards]
        tokens = [self._fitting(board) for board in boards]
        for number, board in enumerate(tokens):
            if (board == MASK).any():
                raise MaskobanError(
                    f"board {number} has masked cells: only a finished board has a probability"
                )
        return surprise(self.denoiser, np.array(tokens), seed, orders, progress) if tokens else np.zeros(0)

    def drawing(self, how: How, from_nothing: bool = True) -> Drawing:
        """How to draw, where ``how`` leaves it open in the model's own way."""
        unhurried = how.get("steps") is None
        polish, asked = how.get("polish"), how.get("critic")
        if asked and not from_nothing:
            raise MaskobanError("a critic is for boards drawn from nothing, not for half-drawn ones")
        if asked and self.critic is None:
            raise MaskobanError(f"model {self.name!r} has no critic")
        if asked is None:
            plain = how.get("temperature", 1) == 1 and how.get("order", "uniform") == "uniform"
            asked = self.critic is not None and from_nothing and unhurried and plain
        own = {
            "polish": polish if polish is not None else self.polish if unhurried else 0,
            "critic": self.card["critic"] if asked else None,
        }
        return Drawing(**how | own)  # type: ignore[arg-type]

    def _blank(self, n: int) -> Tokens:
        _check_count(n)
        return blank(self.denoiser, n)

    def _fitting(self, board: Level | Tokens) -> Tokens:
        """The tokens of a board of the model's size."""
        tokens = board.tokens if isinstance(board, Level) else board
        if not isinstance(tokens, np.ndarray):
            raise MaskobanError(f"a board is a Level or an array of tokens, not a {type(tokens).__name__}")
        if tokens.shape != (self.height, self.width):
            size, need = "x".join(map(str, tokens.shape)), f"{self.height}x{self.width}"
            small = "; surround it with #" if _smaller(tokens.shape, (self.height, self.width)) else ""
            raise MaskobanError(f"the board is {size}, but model {self.name!r} draws {need} boards{small}")
        if (strange := tokens > MASK).any():
            raise MaskobanError(f"{_first(strange)} holds {tokens[strange][0]}, which is no tile")
        return tokens

    def check_completable(self, board: Level | Tokens, boxes_asked: int | None = None) -> None:
        """Refuse a half-drawn board that nothing could complete, or not with so many boxes, and say why.

        >>> load().check_completable(Level.parse("#####\\n#@$?#\\n#####"))
        Traceback (most recent call last):
            ...
        maskoban.boards.errors.MaskobanError: the board is 3x5, but model 'best' draws 10x10 boards; surround it with #
        """
        self._half_drawn(board, boxes_asked)

    def _half_drawn(self, board: Level | Tokens, boxes_asked: int | None = None) -> Tokens:
        """The tokens of a board that can be completed, masked cells of its border as the wall they become."""
        tokens = self._fitting(board).copy()
        rim = np.ones(tokens.size, bool)
        rim[drawn_cells(self.denoiser)] = False
        border = rim.reshape(tokens.shape)
        tokens[border & (tokens == MASK)] = WALL
        if (gaps := border & (tokens != WALL)).any():
            raise MaskobanError(
                f"the border must be all wall, but {_first(gaps)} is not; this model needs one"
            )
        players = int(np.isin(tokens, (PLAYER, PLAYER_ON_GOAL)).sum())
        boxes = int(np.isin(tokens, (BOX, BOX_ON_GOAL)).sum())
        goals = int(np.isin(tokens, (GOAL, BOX_ON_GOAL, PLAYER_ON_GOAL)).sum())
        masks = int((tokens == MASK).sum())
        if players > 1:
            raise MaskobanError(f"the board has {players} players already, and a board has one")
        if boxes_asked is not None and boxes > boxes_asked:
            raise MaskobanError(f"the board has {boxes} boxes already, more than the {boxes_asked} asked for")
        # A masked cell can become the player on a goal, so one cell may serve twice.
        spare = masks - (players == 0)
        if masks and (spare < 0 or boxes > goals + masks or goals > boxes + spare):
            raise MaskobanError(
                f"the board has {boxes} boxes and {goals} goals, and {masks} masked cells cannot make up the difference"
            )
        return tokens


def _apart(asked: Asked) -> tuple[Wishes, How]:
    """Which boards to keep, and how to draw."""
    names = {field.name for field in fields(Wishes)}
    wishes = {name: value for name, value in asked.items() if name in names}
    how = {name: value for name, value in asked.items() if name not in names}
    return Wishes(**cast(Any, wishes)), cast(How, how)


def _further(progress: Progress, before: int, total: int, done: int, _: int) -> None:
    """Tell of boards done beyond those before them."""
    progress(before + done, total)


def _first(cells: NDArray[np.bool_]) -> str:
    """The first of some cells, in words."""
    row, column = np.argwhere(cells)[0]
    return f"row {row}, column {column} (from 0)"


def _smaller(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return len(one) == len(other) and all(a <= b for a, b in zip(one, other, strict=True))


def _check_count(n: int) -> None:
    if n < 1:
        raise MaskobanError(f"the number of boards must be at least 1, not {n}")
