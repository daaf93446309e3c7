"""The Jinja environment for the templates in this folder."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from judge.document.blocks import STATES
from judge.document.cells import format_count, grid

FOLDER = Path(__file__).parent


def environment(**options: Any) -> Environment:
    """Return an environment with the functions that all templates use. The `options` are passed to Jinja."""
    made = Environment(
        loader=FileSystemLoader(FOLDER),
        # An undefined name is an error, because it means that a template is wrong.
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        **options,
    )
    made.globals.update(
        grid=grid,
        counted=format_count,
        kind=lambda block: type(block).__name__,
        states=STATES,
        is_boxed=lambda block: getattr(block, "boxed", False),
    )
    return made
