"""Locate the shipped prompts and data in the installed package or, if they are not there, in the source tree."""

from functools import cache
from pathlib import Path

from judge.errors import AdjudgeError


@cache
def resource_dir(name: str) -> Path:
    """Return the folder `prompts` or `data`. Raises AdjudgeError if the installation lacks it."""
    here = Path(__file__).resolve().parent
    # In the wheel, the folders are inside the package. In a clone, they are next to it.
    for folder in (here / f"_{name}", here.parent / name):
        if folder.is_dir():
            return folder
    raise AdjudgeError(f"the folder '{name}' is missing from the installation; reinstall adjudge")
