"""Answers that decline, by their words."""

from typing import Any

import numpy as np
import pytest

from judge.errors import BadInput
from tests.scores.declining import declines


@pytest.mark.parametrize(
    ("text", "start", "anywhere"),
    [
        ("I don't know.", 1, 1),
        ("I don’t know", 1, 1),
        ("No, the answer is not present in any of the contexts.", 1, 1),
        ("The passages do not contain the date.", 1, 1),
        ("", 1, 1),
        ("  \n", 1, 1),
        ("Paris.", 0, 0),
        ("He did not know her.", 0, 0),
        ("They provide answers.", 0, 0),
        (
            "The Rhine is 1,230 km long, measured from its source in the Alps; its depth is not stated there.",
            0,
            1,
        ),
    ],
)
def test_phrases(text: str, start: int, anywhere: int) -> None:
    assert declines([text]).tolist() == [start]
    assert declines([text], "anywhere").tolist() == [anywhere]


def test_no_text_has_no_value() -> None:
    assert np.isnan(declines([None])).all()
    where: Any = "end"
    with pytest.raises(BadInput, match="unknown place"):
        declines(["x"], where)
