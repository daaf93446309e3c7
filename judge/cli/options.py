"""The options of a run on the command line, made from the table `judge.run_options`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from judge.console import TO_READ, Duration
from judge.run_options import WRITTEN, Declared, RunOptions

F = TypeVar("F", bound=Callable[..., Any])


def with_params(params: Sequence[click.Parameter]) -> Callable[[F], F]:
    """Gives a command these options."""

    def give(function: F) -> F:
        known = getattr(function, "__click_params__", [])
        # click keeps them in the order of decorators, the last one first.
        function.__click_params__ = [*known, *reversed(params)]  # type: ignore[attr-defined]
        return function

    return give


def _type(written: Declared) -> Any:
    """The type of an option on the command line, which checks its value."""
    if written.choices:
        return click.Choice(written.choices)
    if written.kind == "whole":
        return int if written.least is None else click.IntRange(int(written.least))
    if written.kind == "number":
        return float if written.least is None else click.FloatRange(written.least, min_open=written.above)
    if written.kind == "folder":
        return click.Path(path_type=Path, file_okay=False)
    plain: dict[str, Any] = {"time": Duration(), "file": TO_READ}
    return plain.get(written.kind, str)


def _words(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...]:
    """The values of an option that takes several in one text, with commas between them."""
    return tuple(filter(None, (value or "").replace(" ", "").split(",")))


def _option(name: str) -> click.Option:
    """An option of the table as click has it."""
    written = WRITTEN[name]
    default = getattr(RunOptions(), name)
    flag = f"{written.flag}/{written.off}" if written.off else written.flag
    common: dict[str, Any] = {"help": written.help, "metavar": written.metavar}
    if written.kind == "flag":
        shown: dict[str, Any] = {"show_default": False} if written.off else {}
        return click.Option([flag, name], is_flag=True, default=default, **common, **shown)
    if written.kind in ("several", "pairs"):
        return click.Option([flag, name], multiple=True, type=_type(written), **common)
    if written.kind == "list":
        return click.Option([flag, name], callback=_words, **common)
    if written.kind == "time" and default is not None:
        default = f"{default / 60:g}m"
    return click.Option([flag, name], type=_type(written), default=default, **common)


def options_of(*names: str, but: Sequence[str] = ()) -> Callable[[F], F]:
    """Gives a command these options of the table `judge.run_options`; without names all, but for some."""
    return with_params([_option(name) for name in WRITTEN if (name in names if names else name not in but)])
