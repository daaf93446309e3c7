"""Locate the shipped prompts and data: in the installed package, else in the source tree."""

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from judge.errors import AdjudgeError


@cache
def resource_dir(name: str) -> Path:
    """Return the folder `prompts` or `data`. Raises AdjudgeError if the installation lacks it."""
    here = Path(__file__).resolve().parent
    for folder in (here / f"_{name}", here.parent / name):
        if folder.is_dir():
            return folder
    raise AdjudgeError(f"the installation has no '{name}' folder: install adjudge again")


def page(template: str, **values: Any) -> str:
    """Return a template of `judge/suites` as a self-contained page; all text is escaped."""
    from jinja2 import Environment, StrictUndefined

    source = files("judge.suites").joinpath(template).read_text("utf-8")
    made = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return made.from_string(source).render(**values)
