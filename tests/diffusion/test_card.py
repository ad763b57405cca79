"""A model's metadata: what is written comes back, and what makes no sense is an error that names the key."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import maskoban
from maskoban.diffusion.card import Card
from maskoban.errors import MaskobanError

FACTS = {"name": "a", "height": 8, "width": 9, "margin": 1, "diffusion_steps": 42, "timed": False}


@pytest.mark.parametrize("model", ["best", "paper"])
def test_the_cards_of_the_shipped_models_come_back(model: str) -> None:
    weights = Path(maskoban.__file__).parent / "weights" / model / "model.safetensors"
    with open(weights, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    facts = json.loads(header["__metadata__"]["facts"])
    card = Card.from_facts(facts)
    assert card.facts() == facts
    assert list(card.facts()) == list(facts)
    assert card.cells == {"best": 64, "paper": 100}[model]


def test_defaults_are_those_of_older_models() -> None:
    card = Card.from_facts(FACTS | {"unknown": 1})
    assert (card.schedule, card.polish, card.critic, card.bits) == ("linear", 0, None, 16)
    assert card.facts() == FACTS | {"polish": 0, "bits": 16}
    assert Card.from_facts(FACTS | {"schedule": "cosine"}).facts()["schedule"] == "cosine"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"height": 65}, "height: expected a whole number from 1 to 64, got 65"),
        ({"height": -1}, "height: expected a whole number from 1 to 64, got -1"),
        ({"height": []}, "height: expected a whole number from 1 to 64, got []"),
        ({"width": "x"}, "width: expected a whole number from 1 to 64, got 'x'"),
        ({"width": True}, "width: expected a whole number from 1 to 64, got True"),
        ({"diffusion_steps": -10}, "diffusion_steps: expected a whole number from 1 to 100000, got -10"),
        (
            {"diffusion_steps": 10**12},
            "diffusion_steps: expected a whole number from 1 to 100000, got 1000000000000",
        ),
        ({"margin": 9}, "margin: expected less than half of 8x9, got 9"),
        ({"polish": -1}, "polish: expected a whole number from 0 to 1000, got -1"),
        ({"timed": 1}, "timed: expected true or false, got 1"),
        ({"schedule": "square"}, "schedule: expected one of linear, cosine, got 'square'"),
        ({"schedule": []}, "schedule: expected one of linear, cosine, got []"),
        ({"critic": 0}, "critic: expected a number above 0, got 0"),
        ({"critic": math.nan}, "critic: expected a number above 0, got nan"),
        ({"critic": True}, "critic: expected a number above 0, got True"),
        ({"bits": 4}, "bits: expected 8 or 16, got 4"),
        ({"bits": []}, "bits: expected 8 or 16, got []"),
        ({"parameters": "many"}, "parameters: expected a number from 0 on, got 'many'"),
        ({"name": 5}, "name: expected 1 to 200 letters, got 5"),
        ({"name": "x" * 300}, "name: expected 1 to 200 letters, got '" + "x" * 56 + "..."),
    ],
    ids=str,
)
def test_a_value_that_makes_no_sense_is_an_error(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(MaskobanError) as error:
        Card.from_facts(FACTS | change)
    assert str(error.value) == sentence


@pytest.mark.parametrize("facts", [None, [], 5, "x"], ids=str)
def test_metadata_that_is_no_object_is_an_error(facts: object) -> None:
    with pytest.raises(MaskobanError, match="metadata: expected an object, got "):
        Card.from_facts(facts)


def test_keys_that_are_missing_are_named() -> None:
    with pytest.raises(MaskobanError, match=r"^metadata: height, timed missing$"):
        Card.from_facts({name: value for name, value in FACTS.items() if name not in ("height", "timed")})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*FACTS, "polish", "bits", "critic", "schedule", "parameters"]), JSON))
def test_any_json_gives_a_card_or_an_error(facts: dict[str, Any]) -> None:
    try:
        card = Card.from_facts(FACTS | facts)
    except MaskobanError:
        return
    assert Card.from_facts(json.loads(json.dumps(card.facts()))) == card
