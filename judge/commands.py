"""Build the commands that messages show to the user. No other module builds them.

    command("judge runs show", run_id)                   judge runs show 01ABC -d other.db
    command("judge systems import FILE", "--system", name)

Values are quoted for a shell. The study is that of the running command, unless another study is given.
"""

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

Writer = Callable[[Sequence[str], str], str]
"""A function that receives the words of a command and its shell command line, and returns the text for the
message.
"""
DEFAULT_STUDY = "study.db"
VARIABLE = "JUDGE_DB"
"""The environment variable that sets the study for commands without `-d`."""
WITHOUT_STUDY = (
    "judge demo", "judge examples", "judge models", "judge plugins", "judge studies merge", "judge tasks check",
    "judge tasks show", "judge tasks new", "annotate formats",
)  # fmt: skip
"""Commands that use no study, or that do not name it with -d."""
_study: ContextVar[str] = ContextVar("_study", default=DEFAULT_STUDY)
_writer: ContextVar[Writer | None] = ContextVar("_writer", default=None)


def use_study(path: Path | str) -> None:
    """Set the study of the running command."""
    _study.set(str(path))


def command(words: str, *values: object, study: Path | str | None = None) -> str:
    """Return the shell command line: `words` unchanged, followed by the values, each quoted as one word.

    The option -d is added if the command needs it to use this study.
    """
    path = _study.get() if study is None else str(study)
    parts = [*words.split(), *map(str, values)]
    # If JUDGE_DB is set, a printed command without -d would use a different study when it is typed
    # elsewhere.
    is_default = path == DEFAULT_STUDY and VARIABLE not in os.environ
    if not is_default and not words.startswith(WITHOUT_STUDY):
        parts += ["-d", path]
    line, write = " ".join(map(quote, parts)), _writer.get()
    return line if write is None else write(parts, line)


@contextmanager
def use_writer(writer: Writer) -> Iterator[None]:
    """Format commands with `writer` while the block runs.

    The Python API sets a writer that shows method calls instead of commands.
    """
    token = _writer.set(writer)
    try:
        yield
    finally:
        _writer.reset(token)


def quote(word: str) -> str:
    """Quote a word for a shell."""
    # SQL that contains single quotes is more readable in double quotes, if it has no characters that are
    # special there.
    plain = "'" in word and not set(word) & set('"$`\\!') and word.isprintable()
    return f'"{word}"' if plain else shlex.quote(word)
