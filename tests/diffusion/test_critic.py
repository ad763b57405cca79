"""A critic: what it keeps when boards are drawn, and the network that it is."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from maskoban.boards import MaskobanError, Tokens
from maskoban.boards.tiles import MASK
from maskoban.diffusion import sampler
from maskoban.diffusion.critic_network import CriticNetwork, fingerprint
from maskoban.diffusion.model import Model, load
from maskoban.diffusion.network import InteriorNetwork
from maskoban.diffusion.noise import uniforms
from maskoban.diffusion.sampler import (
    Drawing,
    blank,
    draw,
    draw_in_turn,
    draw_many,
    keeping,
    pick_tiles,
    probabilities,
)
from maskoban.diffusion.tensorfile import save_tensors
from maskoban.diffusion.torch_critic import TorchCritic
from maskoban.diffusion.torch_model import load_torch, load_torch_critic
from maskoban.training.export import export
from tests.diffusion.dummies import Joint, agrees, giving_up
from tests.training.small_models import save_critic, save_run


class Taste:
    """Has a score for each of the 81 boards of :class:`Joint`, most of them poor."""

    def __init__(self, seed: int = 0) -> None:
        self.table = np.random.default_rng(seed).normal(-0.5, 1.0, 81).astype(np.float32)
        self.asked = 0

    def scores(self, tokens: Tokens) -> NDArray[np.float32]:
        self.asked += len(tokens)
        return self.table[tokens @ np.array([27, 9, 3, 1])]


class Never:
    def scores(self, tokens: Tokens) -> NDArray[np.float32]:
        return np.full(len(tokens), -np.inf, np.float32)


class Always:
    def scores(self, tokens: Tokens) -> NDArray[np.float32]:
        return np.full(len(tokens), 50, np.float32)


# -- which boards are kept


@pytest.mark.parametrize(("c", "overlap", "sweeps"), [(1.0, 1, 0), (4.0, 1, 1), (1.0, 2, 1), (4.0, 2, 0)])
def test_kept_boards_follow_the_reweighed_distribution(c: float, overlap: int, sweeps: int) -> None:
    """q(x) min(exp(score), c), polished or not, and each board takes as many attempts as it should."""
    joint, taste = Joint(0), Taste()
    joint.batch, joint.overlap = 3000, overlap
    drawn = draw_many(joint, blank(joint, 40_000), 3, Drawing(critic=c, polish=sweeps), critic=taste)
    weight = joint.p * np.minimum(np.exp(taste.table.astype(float)), c)
    assert agrees(joint.counts(drawn.boards), weight / weight.sum())
    assert not agrees(joint.counts(drawn.boards), joint.p)

    kept = weight.sum() / c  # of all attempts; the number of attempts is geometric
    most = int(drawn.attempts.max())
    geometric = kept * (1 - kept) ** np.arange(most)
    geometric[-1] = 1 - geometric[:-1].sum()
    last = int(np.argmax(40_000 * geometric < 20))
    counts = np.bincount(np.minimum(drawn.attempts - 1, last), minlength=last + 1)
    assert agrees(counts, np.append(geometric[:last], 1 - geometric[:last].sum()))


def test_a_board_is_what_one_attempt_after_the_other_gives() -> None:
    """The slow and obvious way: a board at a time, a cell at a time and then once more, until the critic keeps it."""
    joint, taste, c, seed = Joint(1), Taste(1), 2.0, 9
    drawn = draw(joint, blank(joint, 60), seed, Drawing(critic=c, polish=1), critic=taste)

    def numbers(board: int, purpose: int, count: int) -> NDArray[np.float64]:
        return uniforms(seed, np.array([board]), purpose, count)[0]

    for board in range(60):
        for attempt in range(1000):
            fresh = attempt * 2**20
            tokens = np.full((1, 4), MASK, np.uint8)
            for purpose in (fresh, fresh + 2):  # the reveal, the sweep
                order, u = numbers(board, purpose, 4), numbers(board, purpose + 1, 4)
                for cell in np.argsort(order):
                    tokens[0, cell] = MASK
                    left = np.array([(tokens == MASK).sum()])
                    p = probabilities(joint.logits(tokens, left, np.array([[cell]])), 1.0)[0, 0]
                    tokens[0, cell] = pick_tiles(p, u[cell])
            if numbers(board, fresh + 2**20 - 1, 1)[0] < min(1, np.exp(taste.scores(tokens)[0]) / c):
                break
        assert (drawn.boards[board].ravel() == tokens).all()
        assert drawn.attempts[board] == attempt + 1
    assert drawn.attempts.max() > 3


def test_another_attempt_has_other_candidates() -> None:
    joint = Joint(1)
    drawn = draw(joint, blank(joint, 300), 9, Drawing(critic=2.0, order="confidence"), critic=Taste(1))
    assert 3 < drawn.attempts.max() < 100


def test_a_board_is_kept_with_probability_e_to_its_score_over_c() -> None:
    scores = np.log(np.array([0.5, 1, 3, 1e30], dtype=np.float32))
    assert keeping(scores, 3.0) == pytest.approx([1 / 6, 1 / 3, 1, 1])
    assert keeping(np.array([-np.inf], np.float32), 3.0) == [0]


def test_a_board_kept_at_once_is_the_board_drawn_without_a_critic() -> None:
    joint = Joint(2)
    plain = draw_many(joint, blank(joint, 100), 5, Drawing(polish=1))
    kept = draw_many(joint, blank(joint, 100), 5, Drawing(polish=1, critic=1.0), critic=Always())
    assert (kept.boards == plain.boards).all()
    assert (kept.attempts == 1).all()
    some = draw_many(joint, blank(joint, 100), 5, Drawing(polish=1, critic=2.0), critic=Taste())
    at_once = some.attempts == 1
    assert 5 < at_once.sum() < 95
    assert (some.boards[at_once] == plain.boards[at_once]).all()


def test_a_critic_not_asked_for_is_not_asked() -> None:
    joint, taste = Joint(2), Taste()
    for record in (True, False):
        drawn = draw_many(joint, blank(joint, 10), 5, Drawing(polish=1), record=record, critic=taste)
        assert (drawn.attempts == 1).all()
    assert taste.asked == 0


def test_a_critic_judges_the_polished_board() -> None:
    joint, how = Joint(3), Drawing(polish=2, critic=1.0)
    taste = Taste()
    taste.table = np.where(joint.states[:, 0] == 0, 0, -np.inf).astype(
        np.float32
    )  # a wall in the corner, or nothing
    drawn = draw_many(joint, blank(joint, 200), 4, how, critic=taste)
    assert (drawn.boards[:, 0, 0] == 0).all()
    assert drawn.attempts.max() > 3


# -- the same boards, whatever the batch


@pytest.mark.parametrize(
    "how", [Drawing(critic=4.0), Drawing(critic=4.0, polish=2), Drawing(critic=2.0, steps=3, polish=1)]
)
def test_boards_and_attempts_do_not_depend_on_the_batch(how: Drawing) -> None:
    joint, taste = Joint(5), Taste()
    boards = blank(joint, 41)
    boards[::3, 0, 1] = 2  # some with a cell given, so that batches mix long and short drawings
    whole = draw(joint, boards, 11, how, critic=taste)
    assert whole.attempts.max() > 4
    assert (whole.boards[::3, 0, 1] == 2).all()
    for batch, overlap in ((1, 1), (7, 1), (7, 2), (64, 1), (64, 2), (500, 2)):
        joint.batch, joint.overlap = batch, overlap
        for record in (False, True):
            parts = draw_many(joint, boards, 11, how, record=record, critic=taste)
            assert (parts.boards == whole.boards).all()
            assert (parts.attempts == whole.attempts).all()
    late = draw(joint, boards[30:], 11, how, numbers=range(30, 41), critic=taste)
    assert (late.boards == whole.boards[30:]).all()
    late = draw_many(joint, boards[30:], 11, how, first=30, critic=taste)
    assert (late.boards == whole.boards[30:]).all()
    assert (late.attempts == whole.attempts[30:]).all()


def test_a_record_has_the_commits_of_the_attempt_that_was_kept() -> None:
    joint, how = Joint(5), Drawing(critic=4.0, polish=1)
    plain = draw_many(joint, blank(joint, 41), 11, how, critic=Taste())
    drawn = draw(joint, blank(joint, 41), 11, how, record=True, critic=Taste())
    commits = drawn.commits
    assert commits is not None
    assert commits.cell.shape == (41, 8)
    assert (commits.step == np.arange(8)).all()
    frames = commits.frames()
    assert (frames[0] == MASK).all()
    assert (frames[-1] == plain.boards).all()
    assert (np.sort(commits.cell[:, :4], axis=1) == np.arange(4)).all()

    for batch, overlap in ((15, 1), (15, 2), (200, 2)):
        joint.batch, joint.overlap = batch, overlap
        parts = draw_many(joint, blank(joint, 41), 11, how, record=True, critic=Taste())
        assert parts.commits is not None
        for name in ("start", "step", "cell", "tile", "probabilities"):
            np.testing.assert_array_equal(getattr(parts.commits, name), getattr(commits, name))


# -- when it ends, and how it is told


@pytest.mark.parametrize("overlap", [1, 2])
def test_a_board_no_critic_would_keep_is_kept_in_the_end(
    overlap: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampler, "MOST_ATTEMPTS", 5)
    joint = Joint(0)
    joint.overlap = overlap
    drawn = draw_many(joint, blank(joint, 20), 1, Drawing(critic=1.0), critic=Never())
    assert (drawn.attempts == 5).all()
    assert (drawn.boards != MASK).all()


@pytest.mark.parametrize("overlap", [1, 2])
def test_kept_boards_are_handed_out_in_their_order_before_all_are_kept(overlap: int) -> None:
    joint, how = Joint(5), Drawing(critic=4.0)
    joint.batch, joint.overlap = 5, overlap
    whole = draw_many(joint, blank(joint, 60), 11, how, critic=Taste()).boards
    parts = list(draw_in_turn(joint, blank(joint, 60), 11, how, critic=Taste()))
    assert np.concatenate([numbers for numbers, _ in parts]).tolist() == [*range(60)]
    assert (np.concatenate([boards for _, boards in parts]) == whole).all()
    assert len(parts) > 5


@pytest.mark.parametrize("record", [False, True])
@pytest.mark.parametrize("how", [Drawing(critic=4.0), Drawing(critic=4.0, polish=2)])
def test_progress_goes_forward_only_and_ends_at_the_end(how: Drawing, record: bool) -> None:
    joint, boards = Joint(5), blank(Joint(5), 41)
    for batch, overlap in ((15, 1), (15, 2), (200, 2)):
        joint.batch, joint.overlap = batch, overlap
        many = list[tuple[int, int]]()
        note = many.append
        draw_many(joint, boards, 1, how, 0, record, lambda *at, note=note: note(at), Taste())
        done = [boards for boards, _ in many]
        assert done == sorted(done)
        assert len(set(done)) > 5  # all along the way
        assert many[-1] == (41, 41)

    one = list[tuple[int, int]]()
    draw(joint, boards, 1, how, record=record, progress=lambda *at: one.append(at), critic=Taste())
    evaluations = 4 + 4 * how.polish
    done = [evaluation for evaluation, _ in one]
    assert done == sorted(done)
    assert len(set(done)) > 2
    assert {total for _, total in one} == {evaluations}
    assert one[-1] == (evaluations, evaluations)


@pytest.mark.parametrize("overlap", [1, 2])
def test_giving_up_ends_the_seeking_soon(overlap: int) -> None:
    joint, told = Joint(5), list[int]()
    joint.batch, joint.overlap = 15, overlap

    with pytest.raises(KeyboardInterrupt):
        draw_many(joint, blank(joint, 600), 1, Drawing(critic=1.0), progress=giving_up(told), critic=Never())
    assert len(told) < 40


def test_no_boards_at_all() -> None:
    joint, how = Joint(0), Drawing(critic=1.0)
    for drawn in (
        draw(joint, blank(joint, 0), 1, how, critic=Taste()),
        draw_many(joint, blank(joint, 0), 1, how, critic=Taste()),
    ):
        assert drawn.boards.shape == (0, 2, 2)
        assert drawn.attempts.shape == (0,)


def test_drawing_with_a_critic_needs_one() -> None:
    joint = Joint(0)
    for drawing in (draw, draw_many):
        with pytest.raises(MaskobanError, match="drawing with a critic needs one, and none was given"):
            drawing(joint, blank(joint, 2), 1, Drawing(critic=1.0))


# -- the network


def a_network() -> InteriorNetwork:
    torch.manual_seed(1)
    network = InteriorNetwork(5, 6, d=32, blocks=2, heads=2, hidden=64)
    with torch.no_grad():
        for p in network.parameters():
            p.copy_(torch.randn_like(p) * 0.2)
    return network


def a_critic(network: InteriorNetwork) -> CriticNetwork:
    critic = CriticNetwork(network, rank=3)
    with torch.no_grad():
        for name, p in critic.named_parameters():
            if not name.startswith("base."):
                p.copy_(torch.randn_like(p) * 0.3)
    return critic


def some_boards(network: InteriorNetwork, n: int) -> Tokens:
    return np.random.default_rng(3).integers(0, 7, (n, network.cells)).astype(np.uint8)


def test_a_new_critic_finds_all_boards_as_likely_drawn_as_real() -> None:
    network = a_network()
    boards = torch.from_numpy(some_boards(network, 4)).long()
    assert (CriticNetwork(network, rank=2)(boards) == 0).all()


def test_a_critic_learns_what_it_adds_and_leaves_the_denoiser_alone() -> None:
    network = a_network()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    critic = a_critic(network).train()
    assert not network.training
    learned = {name for name, p in critic.named_parameters() if p.requires_grad}
    assert learned == set(critic.added())
    critic(torch.from_numpy(some_boards(network, 8)).long(), torch.arange(8)).sum().backward()
    assert all(p.grad is not None for name, p in critic.named_parameters() if name in learned)
    assert all((value == before[name]).all() for name, value in network.state_dict().items())
    plain = CriticNetwork(network, rank=3)
    for changed, stack in zip(plain.stacks(), network.stacks(), strict=True):
        assert torch.equal(changed, stack)  # until it has learned, nothing is changed


def test_a_critic_hears_by_which_symmetry_a_board_was_turned() -> None:
    network = a_network()
    critic, board = a_critic(network), torch.from_numpy(some_boards(network, 1)).long()
    with torch.no_grad():
        scores, untold = critic(board.expand(8, -1), torch.arange(8)).tolist(), critic(board).tolist()
    assert len(set(scores)) == 8
    assert untold == pytest.approx(scores[:1], abs=1e-5)


def test_scores_are_the_networks_whatever_else_is_in_the_batch() -> None:
    network = a_network()
    critic, boards = a_critic(network), some_boards(network, 20)
    with torch.no_grad():
        expected = critic(torch.from_numpy(boards).long()).numpy()
    judge = TorchCritic(critic, batch=8)
    scores = judge.scores(boards)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-5)
    assert np.ptp(scores) > 0.1
    for which in ([3], [19, 3, 0], list(range(20))[::-1]):
        assert (judge.scores(boards[which]) == scores[which]).all()
    assert judge.scores(boards[:0]).shape == (0,)


def saved(folder: Path, critic: CriticNetwork, **changed: torch.Tensor) -> Path:
    """An exported folder with a critic."""
    preset = {"name": "tiny", "network": "interior", "dropout": 0, "diffusion_steps": 12,
              "height": 5, "width": 6, "d": 32, "blocks": 2, "heads": 2, "hidden": 64}  # fmt: skip
    weights = {f"net.{name}": value for name, value in critic.base.state_dict().items()}
    save_tensors(folder / "model.safetensors", weights, {"preset": json.dumps(preset)})
    added = {name: value.half() for name, value in critic.added().items()} | changed
    save_tensors(folder / "critic.safetensors", added, {})
    return folder


def test_a_saved_critic_scores_as_it_did(tmp_path: Path) -> None:
    critic = a_critic(a_network())
    boards = some_boards(critic.base, 10)
    loaded = load_torch_critic(saved(tmp_path, critic), "cpu")
    np.testing.assert_allclose(
        loaded.scores(boards), TorchCritic(critic).scores(boards), rtol=0.02, atol=0.01
    )


def test_onnx_runtime_and_torch_keep_the_same_boards(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    export(save_run(tmp_path / "run"), folder, critic=save_critic(tmp_path / "critic"))
    light = load(folder)
    denoiser, facts = load_torch(folder, "cpu")
    plain = light.sample(40, seed=3, critic=False)[:, 1:-1, 1:-1].reshape(40, -1)
    assert light.critic is not None
    cutoff = float(np.exp(light.critic.scores(plain).max()))  # it keeps some of them and rejects others
    first = Model(light.denoiser, light.card | {"critic": cutoff}, critic=light.critic).drawn(40, seed=3)
    critic = load_torch_critic(folder, "cpu")
    second = Model(denoiser, facts | {"critic": cutoff}, critic=critic).drawn(40, seed=3)
    assert 1 < first.attempts.mean() < 20
    assert (first.attempts == second.attempts).all()
    assert (first.boards == second.boards).all()


def test_a_critic_of_another_model_is_refused(tmp_path: Path) -> None:
    critic = a_critic(a_network())
    sentence = r"critic\.safetensors: not a critic of this model"
    with pytest.raises(MaskobanError, match=sentence + ".*head is of shape"):
        load_torch_critic(saved(tmp_path, critic, head=torch.zeros(1, 99)), "cpu")
    save_tensors(tmp_path / "critic.safetensors", {"head": torch.zeros(1, 32)}, {})
    with pytest.raises(MaskobanError, match=r"critic\.safetensors: not a critic of maskoban's"):
        load_torch_critic(tmp_path, "cpu")
    save_tensors(tmp_path / "critic.safetensors", critic.added(), {"model": fingerprint(critic.base)})
    assert load_torch_critic(tmp_path, "cpu")
    save_tensors(tmp_path / "critic.safetensors", critic.added(), {"model": "0123456789abcdef"})
    with pytest.raises(MaskobanError, match=sentence + ": it learned from the drawings of another"):
        load_torch_critic(tmp_path, "cpu")
