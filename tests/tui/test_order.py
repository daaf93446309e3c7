"""Keys act in the order typed, however they come: what is in the log is what was meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.line import log, opened
from tests.tui.studies import batch, build


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = build(tmp_path / "s.db", items=10)
    batch(path, n=20)
    return path


def test_an_undo_in_a_burst_takes_back_what_was_typed_before_it(study: Path) -> None:
    with opened(study) as line:
        line.burst(["s", "backspace", "r"])
        assert line.quit() == 0
    assert log(study) == [("label", 1, "support"), ("undo", 1, None), ("label", 1, "refute")]


def test_a_skip_in_a_burst_skips_the_unit_that_was_shown(study: Path) -> None:
    with opened(study) as line:
        line.burst(["-", "r"])
        assert line.quit() == 0
    assert log(study) == [("skip", 1, None), ("label", 2, "refute")]


def test_a_note_in_a_burst_is_a_note(study: Path) -> None:
    with opened(study) as line:
        line.burst(["+nice", "enter", "s"])
        assert line.quit() == 0
    assert log(study) == [("note", 1, "nice"), ("label", 1, "support")]
