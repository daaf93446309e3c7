"""Translate messages for Python: a command-line option becomes the corresponding argument of a method.

Commands and methods share functions, whose messages mention commands and options. Each command in a message
comes from `judge.commands.command` and is replaced with the corresponding method call. Elsewhere in the
message, an option such as --field is replaced with `field=` if a method of `Study` has this argument.
Commands and options that have no counterpart in Python are not changed.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from adjudge.outcome import Outcome
from judge.commands import use_study, use_writer
from judge.errors import AdjudgeError, BadInput

if TYPE_CHECKING:
    from judge.papers.engine.steps import Step

T = TypeVar("T")

_OTHER_NAMES = {
    "-m": "model", "-n": "limit", "--run": "runs", "--part": "parts", "--map": "maps", "--map-label": "label_maps",
    "--option": "settings",
}  # fmt: skip
"""Options whose argument has a different name."""
_IMPORTS = (["judge", "systems", "import"], ["judge", "nuggets", "import"])
_OPTION = re.compile(
    r"(?<![\w-])(?P<flag>--[a-z](?:[a-z-]*[a-z])?|-[mn])(?![\w-])"
    r"(?: (?P<key>[\w.:]+)=(?P<value>[^\s:;,)]+)| (?=[A-Z'\"\d\[]))?"
)
"""Matches an option, with its KEY=VALUE or with the space before its value.

A lowercase word after the option may be prose, as in `choose with --system and --condition`.
"""
_ARGUMENTS: set[str] = set()
"""The names of arguments that the methods of `Study` declare."""


class Calls:
    """Translates the commands in messages to method calls. `lines` contains the commands without a corresponding method."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, words: Sequence[str], line: str) -> str:
        """Return the method call for a command, or the command itself if there is no such method."""
        if list(words[:3]) in _IMPORTS:
            return _call_of_import(words[1], words[3:])
        self.lines.append(line)
        return line

    def translate(self, text: str) -> str:
        """Replace options in the text with arguments, except in commands for a terminal."""
        if not self.lines:
            return translate(text)
        # A command for a terminal keeps its options, which are not arguments.
        parts = re.split("(" + "|".join(map(re.escape, self.lines)) + ")", text)
        return "".join(part if part in self.lines else translate(part) for part in parts)


def translate(text: str) -> str:
    """Replace options in the text with arguments."""
    return _OPTION.sub(_argument_of, text)


def _argument_of(match: re.Match[str]) -> str:
    name = _argument(match["flag"])
    if name is None:
        return match[0]
    key, value = match["key"], match["value"]
    if key is None:
        return f"{name}=" if name.isidentifier() or match[0].endswith(" ") else name
    if name not in ("maps", "label_maps", "settings"):
        return f"{name}={key}={value}"
    field, renames, old = key.partition(":")
    return f"{name}={ ({field: {old: value}} if renames else {key: value})!r}"


def _argument(flag: str) -> str | None:
    """Return the argument for an option, or None if no method of `Study` has such an argument.

    For an option that belongs to a single paper, return text such as "readings['name']".
    """
    if flag == "--system-column":
        return "maps['system']"
    declared = _read_declared()
    name = _OTHER_NAMES.get(flag) or declared.get(flag) or flag.removeprefix("--").replace("-", "_")
    if name in _ARGUMENTS or name in declared.values():
        return name
    return f"readings['{name}']" if name in _readings() else None


@functools.cache
def _read_declared() -> Mapping[str, str]:
    """Return a mapping from option to argument, built from the table of run options and the typed dictionaries of methods."""
    from adjudge.options import RunArguments, SuiteArguments
    from judge.asking.scores import ScoreArguments
    from judge.run_options import WRITTEN

    options = {
        f"--{name.replace('_', '-')}": name
        for names in (RunArguments, SuiteArguments, ScoreArguments)
        for name in names.__annotations__
    }
    return options | {written.flag: name for name, written in WRITTEN.items()}


@functools.cache
def _readings() -> frozenset[str]:
    """Return the names of the papers' own options."""
    from judge.papers.engine.papers import PAPERS

    return frozenset(o.name.replace("-", "_") for paper in PAPERS.values() for o in paper.options)


def _call_of_import(kind: str, words: Sequence[str]) -> str:
    """Return the calls for a `judge systems import` or `judge nuggets import` command, one for each file."""
    files: list[str] = []
    named: dict[str, Any] = {}
    rest = iter(words)
    for word in rest:
        if not word.startswith("-"):
            files.append(word)
        elif word == "--map":
            key, _, path = next(rest).partition("=")
            named.setdefault("maps", {})[key] = path
        # The method already has the study.
        elif word != "-d":
            named[word.removeprefix("--")] = next(rest)
        else:
            next(rest)
    method = kind if kind == "nuggets" else "rankings" if "stage" in named else "answers"
    return "; ".join(f"study.{method}({_match_called([repr(file)], named)})" for file in files)


def call_of(step: Step, paper: str) -> str:
    """Return the call that creates the data that is missing for a score."""
    from pathlib import Path

    from judge import run_options

    model, options = step.model_and_options
    if step.kind != "run":
        system = {} if step.system in (None, model) else {"system": step.system}
        return f"study.suite({_match_called([repr(paper)], {'model': model, **system})})"
    given = {n: str(v) if isinstance(v, Path) else v for n, v in run_options.get_given(options).items()}
    # A single address or limit is more readable without its tuple.
    given = {n: v[0] if isinstance(v, tuple) and len(v) == 1 else v for n, v in given.items()}
    return f"study.run({_match_called([repr(step.task)], {'model': model, **given})})"


def _match_called(first: list[str], named: Mapping[str, Any]) -> str:
    return ", ".join([*first, *(f"{name}={value!r}" for name, value in named.items())])


def python_terms(of: type[T]) -> type[T]:
    """Decorate a class so that the errors and notes of its public methods name arguments instead of options."""
    # A list is needed, because setattr changes the dictionary during the loop.
    for name, method in list(vars(of).items()):
        if not name.startswith("_") and callable(method):
            _ARGUMENTS.update(inspect.signature(method).parameters)
            setattr(of, name, _translate_errors(method))
    return of


def _translate_errors(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(self: Any, *args: Any, **named: Any) -> Any:
        calls = Calls()
        use_study(self.path)
        with use_writer(calls):
            try:
                return _result(method(self, *args, **named), calls)
            except AdjudgeError as error:
                error.args = (calls.translate(str(error)), *error.args[1:])
                # BadInput contains its sentence twice: with the place and without it.
                if isinstance(error, BadInput):
                    error.reason = calls.translate(error.reason)
                raise

    return call


def _result(returned: Any, calls: Calls) -> Any:
    """Replace options with arguments in the notes of a method's result, and return the result."""
    if isinstance(returned, Outcome):
        return replace(returned, notes=[calls.translate(text) for text in returned.notes])
    attrs = getattr(returned, "attrs", None)
    if isinstance(attrs, dict) and "notes" in attrs:
        attrs["notes"] = [calls.translate(text) for text in attrs["notes"]]
    return returned
