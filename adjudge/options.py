"""Check options that are passed by name. The errors list the valid options."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from judge.errors import UsageError

if TYPE_CHECKING:
    from judge.run_options import RunOptions
    from judge.runner.plan import Live, RunDisplay


class CommonArguments(TypedDict, total=False):
    """The most common options of a run. `judge.run_options.RunOptions` has the same names and describes each option.

    `max` contains limits as strings (5usd, 2h, 1Mtokens); `patience` is a number of seconds or a string such as 2h.
    """

    concurrency: int | None
    patience: float | str
    retry: Sequence[str]
    max: str | Sequence[str]
    temperature: float | None
    max_output_tokens: int
    answers: str
    rationale: str | None
    asked_as: str | None
    prompts: str | Path | None
    base_url: str | Sequence[str]
    settings: Mapping[str, str]


class ImproveArguments(CommonArguments, total=False):
    """The options of `Study.improve`. The method itself chooses the units, the examples and the recipe."""

    prices: str | Path | None
    label_order: str
    guidelines: bool
    same_model: bool
    timeout: float
    repeats: int
    seed: int | None
    allow: str | Sequence[str]


class RunArguments(ImproveArguments, total=False):
    """The options of `Study.run`, which are all options in `judge.run_options`. `examples` may be a list of items."""

    limit: int | None
    where: str | None
    units_of: str | None
    sample: int | None
    relevant: str | None
    examples: str | Sequence[str] | None
    recipe: str | Path | None


class SuiteArguments(CommonArguments, total=False):
    """The options of `Study.suite`: the selection of rows, and the most common options of a run.

    `limit` is a number of questions. With `also_generate`, the model also generates outputs for a system with
    imported outputs.
    """

    also_generate: bool
    condition: str | None
    dataset: str | None
    limit: int | None
    sample: int | None
    parts: Sequence[str]
    readings: Mapping[str, str | float]


def run_options(given: Mapping[str, Any], without: Iterable[str] = ()) -> RunOptions:
    """Return the options of a run by name. Raises UsageError for an unknown option; the message lists the known options."""
    from judge.run_options import RunOptions

    names = [name for name in RunOptions.__dataclass_fields__ if name not in without]
    for name in given:
        if name not in names:
            raise UsageError(f"no option '{name}'; available: {', '.join(names)}")
    given = _convert(given)
    paths = {name: Path(given[name]) for name in ("prices", "recipe", "prompts") if given.get(name)}
    examples = given.get("examples")
    if examples is not None and not isinstance(examples, str):
        # On the command line, the items are one text.
        given = {**given, "examples": ",".join(examples)}
    return RunOptions.from_options({**given, **paths})


def _convert(given: Mapping[str, Any]) -> dict[str, Any]:
    """Convert option values as the command line does. Raises UsageError for an invalid value."""
    import click

    from judge.cli.options import LimitText, NumberOrNone, option_of
    from judge.console import Duration

    # Only these types check a value. The others would convert a Python object to text.
    kinds = (click.IntRange, click.FloatRange, click.Choice, Duration, LimitText, NumberOrNone)
    checked = dict(given)
    for name, value in given.items():
        kind = option_of(name).type
        if not isinstance(kind, kinds) or value is None:
            continue
        several = isinstance(value, list | tuple)
        try:
            converted = [kind.convert(entry, None, None) for entry in (value if several else [value])]
        except click.BadParameter as problem:
            raise UsageError(f"{name}={value!r}: {problem.message}") from None
        checked[name] = converted if several else converted[0]
    return checked


def check_arguments(given: Iterable[str], names: Iterable[str], method: str) -> None:
    """Raise UsageError if an argument is not an option of the method."""
    names = list(names)
    for argument in given:
        if argument not in names:
            raise UsageError(f"{method} has no option '{argument}'; available: {', '.join(names)}")


class WatchedCall:
    """A caller's progress function. If it raises an error, the run stops, stores all answers, and raises the error again."""

    def __init__(self, progress: bool | RunDisplay, stop: Callable[[], None]) -> None:
        """Raise UsageError if `progress` is neither True, nor False, nor a function."""
        self._stop = stop
        self._error: Exception | None = None
        self._to: RunDisplay | None = None
        if isinstance(progress, bool):
            from judge.cli.progress import Progress

            self._to = Progress(sys.stderr) if progress else None
        elif callable(progress):
            self._to = progress
        else:
            raise UsageError(
                f"progress={progress!r}: must be True, False, or a function that receives the state of the run"
            )

    def __call__(self, live: Live) -> None:
        """Call the function, unless it has raised an error before."""
        if self._to is not None and self._error is None:
            try:
                self._to(live)
            except Exception as error:
                # The error is raised at the end, after the answers that the server has already sent are
                # stored.
                self._error = error
                self._stop()

    def end(self) -> None:
        """End the progress line, if there is one."""
        getattr(self._to, "end", lambda: None)()

    def __enter__(self) -> WatchedCall:
        return self

    def __exit__(self, *ended: object) -> None:
        """Raise the progress function's error instead of the interruption that it caused."""
        if self._error is not None:
            # The interruption was only the way to stop the run.
            raise self._error from None
