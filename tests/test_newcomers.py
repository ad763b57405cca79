"""The questions of newcomers in CONTRIBUTING.md: the files are there, and what a row names is in its file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import maskoban

REPOSITORY, SOURCE = Path(__file__).parents[1], Path(maskoban.__file__).parent
TABLE = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("| question | file |")[2]
ROWS = re.findall(r"^\| (.+\?) \| (.+) \|$", TABLE.partition("\n\n")[0], re.MULTILINE)


def test_twelve_questions_are_answered() -> None:
    assert len(ROWS) == 12


@pytest.mark.parametrize(("question", "answer"), ROWS, ids=[question for question, _ in ROWS])
def test_the_file_that_answers_a_question_has_what_is_named(question: str, answer: str) -> None:
    first, *others = re.findall(r"`([^`]+)`", answer)
    file = next(root / first for root in (SOURCE, REPOSITORY) if (root / first).is_file())
    text = file.read_text(encoding="utf-8")
    for name in others:
        if "/" in name:
            assert (SOURCE / name).is_file()
        else:
            assert re.search(rf"^(def |class )?{name}\b", text, re.MULTILINE), f"{name} is not in {file.name}"
