"""The command-line options of a run, built from the table `judge.run_options`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from judge.console import TO_READ, Duration, combine_options
from judge.errors import UsageError
from judge.run_options import SEVERAL, WRITTEN, Declared, RunOptions, limits_of

F = TypeVar("F", bound=Callable[..., Any])


class Sectioned(click.Command):
    """A command with many options: --help shows the common options by section, and --help-all shows every
    option.
    """

    def __init__(self, *args: Any, sections: Mapping[str, Sequence[str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._sections = sections
        self._help_all = click.Option(
            ["--help-all"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_all,
            help="Show every option and exit.",
        )

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the command's parameters, followed by --help-all.

        Like --help, --help-all is not one of the command's own options.
        """
        return [*super().get_params(ctx), self._help_all]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections and, with --help-all, the other options after them."""
        by_name = {param.name: param for param in self.params}
        common = {name for names in self._sections.values() for name in names}
        sections = {title: [by_name[name] for name in names] for title, names in self._sections.items()}
        if ctx.meta.get(SHOW_ALL):
            sections["More"] = [
                param
                for name, param in by_name.items()
                if name not in common and isinstance(param, click.Option)
            ]
        sections["Help"] = [param for param in self.get_params(ctx) if param not in self.params]
        for title, params in sections.items():
            rows = [row for param in params if (row := param.get_help_record(ctx)) is not None]
            if not rows:
                continue
            with formatter.section(title):
                # All sections have the same width, so that the descriptions are aligned.
                formatter.write_dl([(f"{row[0]:<24}", row[1]) for row in rows], col_max=24)


SHOW_ALL = "judge.cli.options.all"
"""The key in click's context that records whether every option is shown."""


def _show_all(ctx: click.Context, param: click.Parameter, is_wanted: bool) -> None:
    # While a shell completes a word, nothing may be printed.
    if is_wanted and not ctx.resilient_parsing:
        ctx.meta[SHOW_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


def _type(written: Declared) -> Any:
    """Return the click type that checks the value of an option."""
    if written.choices:
        return click.Choice(written.choices)
    if written.kind == "whole":
        return int if written.least is None else click.IntRange(int(written.least))
    if written.kind == "number":
        return float if written.least is None else click.FloatRange(written.least)
    if written.kind == "folder":
        return click.Path(path_type=Path, file_okay=False)
    if written.kind == "number or none":
        return NumberOrNone(written.least)
    plain: dict[str, Any] = {"time": Duration(), "file": TO_READ, "limits": LimitText()}
    return plain.get(written.kind, str)


class NumberOrNone(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A click type that accepts a number or `none`."""

    name = "float"

    def __init__(self, least: float | None) -> None:
        self._number = click.FloatRange(least)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | None:
        """Return the number, or None for `none`."""
        return None if value == "none" else self._number.convert(value, param, ctx)


class LimitText(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A limit of a run as typed on the command line, such as 5usd, 2h or 1Mtokens."""

    name = "value"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text unchanged, or fail if it is not a limit."""
        try:
            limits_of([str(value)])
        except UsageError as error:
            self.fail(str(error), param, ctx)
        return str(value)


class PlainOption(click.Option):
    """An option whose help does not show the valid range of numbers.

    The error for an invalid number shows the range.
    """

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Return the details that click adds to an option's description, except the range."""
        return {name: text for name, text in super().get_help_extra(ctx).items() if name != "range"}


def option_of(name: str) -> click.Option:
    """Convert an option of the table to a click option."""
    written = WRITTEN[name]
    default = getattr(RunOptions(), name)
    flag = f"{written.flag}/{written.off}" if written.off else written.flag
    common: dict[str, Any] = {"help": written.help, "metavar": written.metavar}
    if written.kind == "flag":
        # click would print the name of the second flag as the default.
        shown: dict[str, Any] = {"show_default": False} if written.off else {}
        return PlainOption([flag, name], is_flag=True, default=default, **common, **shown)
    if written.kind in (*SEVERAL, "pairs"):
        return PlainOption([flag, name], multiple=True, type=_type(written), **common)
    if written.kind == "time" and default is not None:
        # The help shows durations as users type them.
        default = f"{default / 60:g}m"
    return PlainOption([flag, name], type=_type(written), default=default, **common)


def options_of(*names: str) -> Callable[[F], F]:
    """Add these options from the table `judge.run_options` to a command, in the order of the table."""
    params = [option_of(name) for name in WRITTEN if name in names]

    def decorate(function: F) -> F:
        known = getattr(function, "__click_params__", [])
        # click stores options in the order of decorators, with the last decorator first.
        function.__click_params__ = [*known, *reversed(params)]  # type: ignore[attr-defined]
        return function

    return decorate


judge_options = combine_options(
    click.option("-m", "--model", metavar="TEXT", help="Model of the judge, as vendor/model."),
    click.option("--run", "like", metavar="RUN", help="Use the model and settings of this stored run."),
)
"""The judge that a command tests or improves: a model, or the settings of a stored run."""
