"""Ways of drawing are compared on the same measures."""

from __future__ import annotations

import numpy as np

from maskoban.diffusion.sampler import SamplerConfig
from maskoban.evaluation.measures.patterns import pattern_jsd
from maskoban.evaluation.measures.samplers import TEMPERATURES, explicit, measure_setting, sampler_configs
from maskoban.evaluation.reference import load_reference, measure_reference
from maskoban.solving import Limits, solve

from .boards import EASY, EXPERT, NO_PLAYER, ONE_WALL, SOLVABLE, drawn
from .recall import recalling_model


def test_the_models_own_way_is_in_every_comparison() -> None:
    model = recalling_model()
    own = SamplerConfig(steps=25)
    for configs in sampler_configs(model).values():
        assert own in [explicit(config, 25) for config in configs]
    assert [config.temperature for config in sampler_configs(model)["temperature"]] == list(TEMPERATURES)


def test_only_a_model_with_a_critic_is_compared_with_it() -> None:
    assert "critic" not in sampler_configs(recalling_model(critic=False))
    model = recalling_model()
    configs = sampler_configs(model)["critic"]
    assert [(each.critic, each.sweeps) for each in configs] == [(False, 0), (False, 1), (True, 0), (True, 1)]
    others = (configs for name, configs in sampler_configs(model).items() if name != "critic")
    assert not any(config.critic for configs in others for config in configs)


def test_every_attempt_is_paid_for() -> None:
    found = measure_setting(
        drawn(SOLVABLE), SamplerConfig(sweeps=1, critic=True), 10, load_reference(), None, 1.5, 2.0
    )
    assert (found.attempts, found.evaluations, found.critic) == (1.5, 1.5 * (10 + 10 + 1), 2.0)


def test_a_setting_is_measured_like_any_boards() -> None:
    boards = drawn(SOLVABLE, SOLVABLE, ONE_WALL, NO_PLAYER)
    found = measure_setting(boards, SamplerConfig(sweeps=2), 10, load_reference())
    assert (found.solvable.count, found.solvable.total) == (2, 4)
    assert found.walls.mean == np.mean([(board == 0).sum() for board in boards])
    assert found.median_effort == solve(boards[0], "effort").expanded
    assert (found.steps, found.evaluations) == (10, 30)
    assert found.jsd is None  # four boards are no sample of patterns
    assert found.jsd_ratio is None


def test_the_divergence_is_read_at_a_size_of_the_held_out_curve() -> None:
    reference = load_reference()
    boards = recalling_model().sample(300, 1)
    found = measure_setting(boards, SamplerConfig(steps=5), 25, reference)
    assert (found.evaluations, found.jsd_boards) == (5, 250)
    assert found.jsd == pattern_jsd(boards[:250], reference.patterns)
    assert found.jsd_ratio == found.jsd / reference.held_out_jsd[250]


def test_there_is_no_ratio_to_levels_that_do_not_differ_from_the_corpus() -> None:
    boards = recalling_model().sample(250, 1)
    found = measure_setting(boards, SamplerConfig(), 25, measure_reference(boards, boards))
    assert (found.jsd, found.jsd_ratio) == (0, None)


def test_nothing_solved_has_no_effort() -> None:
    assert measure_setting(drawn(NO_PLAYER), SamplerConfig(), 1, load_reference()).median_effort is None


def test_a_board_whose_effort_is_unknown_is_solvable_all_the_same() -> None:
    easy, limits = solve(drawn(EASY)[0], "effort").expanded, Limits(states=4_500)
    found = measure_setting(drawn(EASY, EXPERT), SamplerConfig(), 1, load_reference(), limits)
    assert (found.solvable.count, found.median_effort) == (2, None)
    # Two easy boards of three decide what the median is, however hard the third.
    found = measure_setting(drawn(EASY, EXPERT, EASY), SamplerConfig(), 1, load_reference(), limits)
    assert (found.solvable.count, found.median_effort) == (3, easy)
