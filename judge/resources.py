"""Where the shipped prompts and data are: in the installed package, else in the source tree."""

from __future__ import annotations

from pathlib import Path

from judge.errors import AdjudgeError


def resource_dir(name: str) -> Path:
    """The folder `prompts` or `data`. Raises AdjudgeError when the installation lacks it."""
    here = Path(__file__).resolve().parent
    for folder in (here / f"_{name}", here.parent / name):
        if folder.is_dir():
            return folder
    raise AdjudgeError(f"the installation has no '{name}' folder: install adjudge again")
