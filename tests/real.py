"""Real parts that a machine may lack: data, models, browsers. The one place that skips.

`require(name)` gives the part's path. When it is missing the test is skipped, or fails when the
environment variable CI is set, so that a green CI run has used every part, but for those that the
machine is known to be without: ADJUDGE_WITHOUT=shared-data,chromium.
"""

import importlib.util
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def _shared_data() -> Path | None:
    """The real data sets, in a folder beside the checkout."""
    folder = ROOT.parent / "shared" / "data"
    return folder if (folder / "README.md").is_file() else None


def _uv() -> Path | None:
    """The package manager, which builds the wheel and installs it."""
    found = shutil.which("uv")
    return Path(found) if found else None


def _embedded_model() -> Path | None:
    """The weights of the embedded model."""
    from judge.providers.llamacpp import find_bundled_weights

    return find_bundled_weights()


def _minilm() -> Path | None:
    """The weights of embedded/minilm, a package of the extra `onnx`."""
    from judge.errors import MissingExtra
    from judge.providers.embedded import weights

    try:
        return weights()
    except MissingExtra:
        return None


def _chromium() -> Path | None:
    """A browser without a window (Debian: apt-get install chromium)."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    return Path(found) if found else None


def _tmux() -> Path | None:
    """The terminal multiplexer that terminal tests type into (Debian: apt-get install tmux)."""
    found = shutil.which("tmux")
    return Path(found) if found else None


def _pdflatex() -> Path | None:
    """The TeX engine that reports are compiled with (Debian: apt-get install texlive-latex-recommended)."""
    found = shutil.which("pdflatex")
    return Path(found) if found else None


def _soffice() -> Path | None:
    """The spreadsheet program (Debian: apt-get install libreoffice-calc)."""
    found = shutil.which("soffice")
    return Path(found) if found else None


def _bm25s() -> Path | None:
    """The retriever's library, an optional package."""
    found = importlib.util.find_spec("bm25s")
    return Path(found.origin) if found and found.origin else None


def _label_studio() -> Path | None:
    """The annotation server in an environment of its own: ADJUDGE_LABEL_STUDIO names its program, or it is in

    uv venv ~/.cache/adjudge/label-studio
    uv pip install --python ~/.cache/adjudge/label-studio label-studio==1.23.2
    """
    named = os.environ.get("ADJUDGE_LABEL_STUDIO")
    program = Path(named) if named else Path.home() / ".cache/adjudge/label-studio/bin/label-studio"
    return program if program.is_file() else None


def _argilla() -> Path | None:
    """The Python of an environment with Argilla's own SDK: ADJUDGE_ARGILLA names it, or it is in

    uv venv ~/.cache/adjudge/argilla
    uv pip install --python ~/.cache/adjudge/argilla argilla==2.8.0 requests
    """
    named = os.environ.get("ADJUDGE_ARGILLA")
    program = Path(named) if named else Path.home() / ".cache/adjudge/argilla/bin/python"
    return program if program.is_file() else None


FINDERS: dict[str, Callable[[], Path | None]] = {
    "shared-data": _shared_data,
    "uv": _uv,
    "embedded-model": _embedded_model,
    "minilm": _minilm,
    "bm25s": _bm25s,
    "chromium": _chromium,
    "tmux": _tmux,
    "pdflatex": _pdflatex,
    "soffice": _soffice,
    "label-studio": _label_studio,
    "argilla": _argilla,
}
"""Name of a part -> how to find it."""

SECOND_JOB = frozenset(
    {"uv", "embedded-model", "minilm", "chromium", "tmux", "pdflatex", "soffice", "label-studio", "argilla"}
)
"""Programs and models: slow to start, so their tests are marked `real` and are no part of the fast job."""

is_marked = False
"""Whether the test that runs is marked `real`; tests/conftest.py says so."""


def require(name: str) -> Path:
    """The path of a real part; skips or fails the test when it is missing."""
    if name in SECOND_JOB and not is_marked:
        pytest.fail(f"a test that needs '{name}' is marked: @pytest.mark.real")
    found = FINDERS[name]()
    if found is not None:
        return found
    message = f"real part '{name}' is missing on this machine"
    if os.environ.get("CI") and name not in os.environ.get("ADJUDGE_WITHOUT", "").split(","):
        pytest.fail(message)
    pytest.skip(message)
