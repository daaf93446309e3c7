"""Sittings of tests remember nothing in the home of whoever runs them."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of tests come faster than anybody's, and are meant all the same."""
    monkeypatch.setattr("annotate.tui.intentions.SETTLE", 0.0)
    monkeypatch.setattr("annotate.tui.intentions.HELD_MS", 0)
