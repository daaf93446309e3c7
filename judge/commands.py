"""Commands that messages print for the user to type: this is the one place that writes them.

    command("judge runs show", run_id)                   judge runs show 01ABC -d other.db
    command("judge systems import FILE", "--system", name)

Values are quoted for a shell. The study is that of the running command, or the one that is named.
"""

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

Writer = Callable[[Sequence[str], str], str]
"""Gets the words of a command and its line for a shell; returns what the message has in its place."""
DEFAULT_STUDY = "study.db"
VARIABLE = "JUDGE_DB"
"""The environment variable that names the study of commands without `-d`."""
WITHOUT_STUDY = (
    "judge demo", "judge examples", "judge models", "judge plugins", "judge studies merge", "judge tasks check",
    "judge tasks list", "judge tasks new", "judge tasks show", "annotate formats",
)  # fmt: skip
"""Commands that read no study, or name theirs themselves."""
_study: ContextVar[str] = ContextVar("_study", default=DEFAULT_STUDY)
_writer: ContextVar[Writer | None] = ContextVar("_writer", default=None)


def use_study(path: Path | str) -> None:
    """Say which study the running command is about."""
    _study.set(str(path))


def command(words: str, *values: object, study: Path | str | None = None) -> str:
    """The command as a line that a shell takes as it is: `words` as they stand, then the values, each as one word.

    It names the study, unless a command without `-d` takes that one anyway.
    """
    path = _study.get() if study is None else str(study)
    found = [*words.split(), *map(str, values)]
    is_default = path == DEFAULT_STUDY and VARIABLE not in os.environ
    if not is_default and not words.startswith(WITHOUT_STUDY):
        found += ["-d", path]
    line, write = " ".join(map(quoted, found)), _writer.get()
    return line if write is None else write(found, line)


@contextmanager
def written_by(writer: Writer) -> Iterator[None]:
    """Let a function write the commands meanwhile: Python's door writes calls of methods."""
    token = _writer.set(writer)
    try:
        yield
    finally:
        _writer.reset(token)


def quoted(word: str) -> str:
    """A word for a shell. SQL with its single quotes reads better in double ones, where nothing in it is special."""
    plain = "'" in word and not set(word) & set('"$`\\!') and word.isprintable()
    return f'"{word}"' if plain else shlex.quote(word)
