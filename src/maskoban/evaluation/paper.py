"""The paper's numbers, each with where it stands: *Solvable Sokoban Without a Solver via Diffusion* (Baghal)."""

from __future__ import annotations

from dataclasses import dataclass

TITLE = "Solvable Sokoban Without a Solver via Diffusion"


@dataclass(frozen=True)
class Stated:
    """A number of the paper's: its value, how the paper writes it, and in which section."""

    value: float
    text: str
    where: str


PAPER = {
    "solvable": Stated(0.774, "77.4 %", "abstract"),
    "one_wall": Stated(0.945, "94.5 %", "abstract; 3.2 One-wall fixes"),
    "effective": Stated(0.987, "98.7 %", "1.3.1 Solvability emerges without supervision"),
    "broken": Stated(0.0040, "0.40 %", "1.3.1 Solvability emerges without supervision"),
    "culprit_median": Stated(0.45, "0.45", "3.2 One-wall fixes"),
    "other_median": Stated(0.93, "0.93", "3.2 One-wall fixes"),
    "jsd_ratio": Stated(1.04, "under 1.04", "1.3.2 Distribution match"),
    "jsd_exponent": Stated(-0.59, "−0.59", "2.5 Distribution match, figure"),
    "distance_median": Stated(12, "12", "3.3 Memorization"),
    "distance_mean": Stated(11.43, "11.43", "3.3 Memorization"),
    "distance_exact": Stated(5, "5", "3.3 Memorization"),
    "distance_within_five": Stated(0.056, "5.6 %", "3.3 Memorization"),
    "held_out_distance_median": Stated(12, "12", "3.3 Memorization"),
    "held_out_distance_mean": Stated(11.33, "11.33", "3.3 Memorization"),
    "held_out_distance_exact": Stated(19, "19", "3.3 Memorization"),
    "held_out_distance_within_five": Stated(0.075, "7.5 %", "3.3 Memorization"),
    "walls": Stated(69.5, "69.5", "1.3.3 Temperature trade-off"),
    "corpus_walls": Stated(68.6, "68.6", "1.3.3 Temperature trade-off"),
    "cool_gain": Stated(0.038, "+3.8 points", "1.3.3 Temperature trade-off"),
    "cool_walls": Stated(73.2, "73.2", "1.3.3 Temperature trade-off"),
    "cool_effort": Stated(-0.36, "−36 %", "1.3.3 Temperature trade-off"),
    "confidence_walls": Stated(81.5, "81.5", "3.1 Sampling algorithm"),
    "boards": Stated(50_000, "50,000", "1.3.1 Solvability emerges without supervision"),
    "evaluations": Stated(100, "100", "3.1 Sampling algorithm"),
    "parameters": Stated(4.9e6, "4.9 M", "2.2 Architecture"),
    "training_steps": Stated(292_000, "292,000", "2.4 Loss and solvability"),
}
