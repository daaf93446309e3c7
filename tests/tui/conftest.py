"""Sittings of tests remember nothing in the home of whoever runs them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.real import require
from tests.tui.terminal import Terminal


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of tests come faster than anybody's, and are meant all the same."""
    monkeypatch.setattr("annotate.tui.actions.SETTLE", 0.0)
    monkeypatch.setattr("annotate.tui.actions.HELD_MS", 0)


@pytest.fixture
def terminals() -> Iterator[Callable[..., Terminal]]:
    """Makes real terminals, which are closed when the test ends."""
    require("tmux")
    made: list[Terminal] = []

    def make(width: int = 80, height: int = 24) -> Terminal:
        made.append(Terminal(width, height))
        return made[-1]

    yield make
    for terminal in made:
        terminal.close()
