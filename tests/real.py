"""Real parts that a machine may lack: data, models, browsers. The one place that skips.

`require(name)` gives the part's path. When it is missing the test is skipped, or fails when the
environment variable CI is set, so that a green CI run has used every part.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def _shared_data() -> Path | None:
    """The real data sets, in a folder beside the checkout."""
    folder = ROOT.parent / "shared" / "data"
    return folder if (folder / "README.md").is_file() else None


FINDERS: dict[str, Callable[[], Path | None]] = {"shared-data": _shared_data}
"""Name of a part -> how to find it."""


def require(name: str) -> Path:
    """The path of a real part; skips or fails the test when it is missing."""
    found = FINDERS[name]()
    if found is not None:
        return found
    message = f"real part '{name}' is missing on this machine"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)
