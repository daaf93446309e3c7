"""Locate the shipped prompts and data in the installed package or, if they are not there, in the source tree."""

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

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


LATEX_DELIMITERS: dict[str, Any] = {
    "block_start_string": "<%",
    "block_end_string": "%>",
    "variable_start_string": "<<",
    "variable_end_string": ">>",
    "comment_start_string": "<#",
    "comment_end_string": "#>",
}
"""Jinja options for LaTeX templates. Jinja's usual delimiters are braces, which LaTeX uses itself."""


def page(template: str, **values: Any) -> str:
    """Render a template from `judge/suites` as a self-contained page. All text is escaped."""
    from jinja2 import Environment, StrictUndefined

    # Texts come from data sets. Without escaping, a text could run a script in the page.
    made = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return made.from_string(_source(template)).render(**values)


def text_page(template: str, escape: Callable[[str], str], **values: Any) -> str:
    """Render a template from `judge/suites` as text. `escape` is applied to every value that is not Markup."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    made = Environment(
        # Values that `escape` returns as Markup must not be escaped again as HTML.
        autoescape=True,
        finalize=lambda value: value if isinstance(value, Markup) else Markup(escape(str(value))),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        **LATEX_DELIMITERS,
    )
    return made.from_string(_source(template)).render(**values)


def _source(template: str) -> str:
    return files("judge.suites").joinpath(template).read_text("utf-8")
