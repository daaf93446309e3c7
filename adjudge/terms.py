"""Messages in Python's terms: an option of the command line becomes the argument of the method that has it.

The functions behind commands and methods are the same, and their messages name options. Here, at Python's door, `--system`
becomes `system=`, and a command that a method does as well becomes a call of the method.
"""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from adjudge.outcome import Outcome
from judge.errors import AdjudgeError, BadInput

if TYPE_CHECKING:
    from judge.suites.steps import Step

T = TypeVar("T")

_OTHER_NAMES = {
    "-m": "model", "-n": "limit", "--run": "runs", "--part": "parts", "--map": "maps", "--map-label": "label_maps",
    "--system-column": "maps['system']=", "--for": "purpose",
}  # fmt: skip
"""Options whose argument has another name than the option."""
_PAIRS = {"map": "maps", "option": "settings"}
_IMPORT = re.compile(r"judge systems import((?: (?:'[^']*'|[^\s;,()']+))*)")
_PAIR = re.compile(r"--(map|option) ([\w.]+)=([^\s:;,)]+)")
_LABELS = re.compile(r"--map-label (\w+):([^\s=]+)=([^\s:;,)]+)")
_COMMAND = re.compile(r"\b(?:judge|annotate) [a-z]")
_FLAG = re.compile(r"(?<![\w-])(--[a-z](?:[a-z-]*[a-z])?|-[mn])(?![\w-])( (?=[A-Z'\"\d\[]))?")
"""An option, and the space before its value. A word in small letters may be prose: `choose with --system and --condition`."""
_CLAUSE = re.compile(r"[;:,()\n]")


def in_python(text: str) -> str:
    """The text with arguments in place of options. Commands that no method has are left as they are typed in a terminal."""
    text = _IMPORT.sub(_imports, text)
    text = _PAIR.sub(lambda m: f"{_PAIRS[m[1]]}={ {m[2]: m[3]}!r}", text)
    text = _LABELS.sub(lambda m: f"label_maps={ {m[1]: {m[2]: m[3]}}!r}", text)
    found, end = [], 0
    for flag in _FLAG.finditer(text):
        clause = _CLAUSE.split(text[: flag.start()])[-1]
        if not _COMMAND.search(clause):
            found += [text[end : flag.start()], _argument(flag[1])]
            end = flag.end()
    return "".join([*found, text[end:]])


def _argument(flag: str) -> str:
    """The argument of an option, as it is written in a call; a paper's own reading is a key of `readings`."""
    from judge.asking.scores import ScoreArguments
    from judge.run_options import WRITTEN

    names = {written.flag: name for name, written in WRITTEN.items()} | _OTHER_NAMES
    if flag in names:
        return names[flag] if names[flag].endswith("=") else f"{names[flag]}="
    name = flag.removeprefix("--").replace("-", "_")
    # `reference` is an argument of a score, and one paper has a reading of the same name.
    own = name in ScoreArguments.__annotations__
    return f"readings['{name}']" if name in _readings() and not own else f"{name}="


@functools.cache
def _readings() -> frozenset[str]:
    """The names of the papers' own options."""
    from judge.suites.papers import PAPERS

    return frozenset(o.name.replace("-", "_") for paper in PAPERS.values() for o in paper.options)


def _imports(found: re.Match[str]) -> str:
    """The call that imports what a `judge systems import` command does."""
    try:
        words = shlex.split(found[1])
    except ValueError:
        return found[0]
    files = [word for n, word in enumerate(words) if word.isupper() or "." in word][:1]
    options = {
        word.removeprefix("--"): words[n + 1] for n, word in enumerate(words[:-1]) if word.startswith("--")
    }
    if not words:
        return "study.answers(...)"
    if not files:
        return found[0]
    known = {k: v for k, v in options.items() if k in ("system", "condition", "dataset", "stage", "paper")}
    method = "rankings" if "stage" in options else "answers"
    return f"study.{method}({_called([repr(files[0])], known)})"


def call_of(step: Step, paper: str) -> str:
    """The call that does what a score lacks."""
    from pathlib import Path

    from judge import run_options

    model, options = step.asked
    if step.kind != "run":
        own = {} if step.system in (None, model) else {"system": step.system}
        return f"study.suite({_called([repr(paper)], {'model': model, **own})})"
    given = {n: str(v) if isinstance(v, Path) else v for n, v in run_options.given(options).items()}
    return f"study.run({_called([repr(step.task)], {'model': model, **given})})"


def _called(first: list[str], named: Mapping[str, Any]) -> str:
    return ", ".join([*first, *(f"{name}={value!r}" for name, value in named.items())])


def python_terms(of: type[T]) -> type[T]:
    """Make every public method of a class raise its errors, and return its notes, in Python's terms."""
    for name, method in list(vars(of).items()):
        if not name.startswith("_") and callable(method):
            setattr(of, name, _in_terms(method))
    return of


def _in_terms(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(*args: Any, **named: Any) -> Any:
        try:
            return _result(method(*args, **named))
        except AdjudgeError as error:
            error.args = (in_python(str(error)), *error.args[1:])
            if isinstance(error, BadInput):
                error.reason = in_python(error.reason)
            raise

    return call


def _result(found: Any) -> Any:
    """What a method returns, with its notes in Python's terms."""
    if isinstance(found, Outcome):
        return replace(found, notes=[in_python(text) for text in found.notes])
    attrs = getattr(found, "attrs", None)
    if isinstance(attrs, dict) and "notes" in attrs:
        attrs["notes"] = [in_python(text) for text in attrs["notes"]]
    return found
