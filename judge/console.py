"""Code shared by both command lines: errors and exit codes, output as a table, JSON or CSV, and common
options.

stdout is reserved for data. Messages for people go to stderr.
"""

import io
import json
import math
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from pathlib import Path
from sqlite3 import DatabaseError, IntegrityError
from typing import Any, TypeVar
from urllib.parse import quote

import click

from judge.commands import DEFAULT_STUDY, VARIABLE, use_study
from judge.errors import AdjudgeError, Exit, UsageError
from judge.plugins import describe_unexpected
from judge.removed import explain_command, explain_option
from judge.sqlite_errors import explain

F = TypeVar("F", bound=Callable[..., Any])
TO_READ = click.Path(path_type=Path, exists=True, dir_okay=False)
TO_WRITE = click.Path(path_type=Path, dir_okay=False)
INSIDE = click.FloatRange(0, 1, min_open=True, max_open=True)
"""A share strictly between 0 and 1, such as a confidence level."""
_TIME_PARTS = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s?)?")
# Characters that a terminal executes, hides or cannot encode: C0 (except tab and line feed), DEL and C1;
# direction, joining and invisible characters; line separators; lone surrogates; tags.
_CONTROL = [
    *(c for c in range(0x20) if c not in (0x09, 0x0A)),
    *range(0x7F, 0xA0),
    *(0x00AD, 0x061C, 0x180E),
    *range(0x200B, 0x2010),
    *range(0x2028, 0x202F),
    *range(0x2060, 0x2070),
    0xFEFF,
    *range(0xFFF9, 0xFFFC),
    *range(0xD800, 0xE000),
    *range(0xE0000, 0xE0080),
]


def _escape(c: int) -> str:
    return f"\\x{c:02x}" if c < 0x100 else f"\\u{c:04x}" if c < 0x10000 else f"\\U{c:08x}"


_NO_COMMAND = re.compile(r"No such command '([\w-]+)'")
_VISIBLE = {c: _escape(c) for c in _CONTROL}
# The same characters as JSON escapes (json.dumps escapes C0; tags are surrogate pairs).
_IN_JSON = {c: json.dumps(chr(c))[1:-1] if c != 0x7F else "\\u007f" for c in _CONTROL if c >= 0x20}


class _ReaderGone(Exception):
    """Raised if the program that reads our output (head, less) has closed the pipe."""


def seconds_of(text: str) -> float:
    """Convert a duration such as 2h, 30m, 90s or 1h30m to seconds. Return 0 if the text is not a duration."""
    duration = _TIME_PARTS.fullmatch(text.strip())
    parts = duration.groups() if duration else (None, None, None)
    return sum(float(n or 0) * of for n, of in zip(parts, (3600, 60, 1), strict=True))


class Duration(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A duration in seconds, typed as 2h, 30m, 90s or 1h30m. It must be above 0."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse a duration. Numbers are returned unchanged."""
        if isinstance(value, int | float):
            return float(value)
        seconds = seconds_of(value)
        if seconds <= 0:
            self.fail(f"'{value}' is not a duration; use a form such as 2h, 30m, 90s or 1h30m", param, ctx)
        return seconds


class Command(click.Group):
    """A command group that uses our exit codes and prints an expected error as one line.

    `sections` maps each section title of --help to its commands and their one-line descriptions. The command
    NAME is imported from the module NAME of `package`, unless `modules` names another module.
    """

    def __init__(
        self,
        *args: Any,
        package: str = "",
        sections: Mapping[str, Mapping[str, str]] | None = None,
        modules: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._package, self._sections, self._modules = package, sections or {}, modules or {}
        self._texts = {name: text for names in self._sections.values() for name, text in names.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted({*self.commands, *self._texts})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, and import its module if necessary."""
        # Only the typed command is imported, because importing all commands would take most of the start-up
        # time.
        if cmd_name in self._texts and cmd_name not in self.commands:
            module = import_module(f"{self._package}.{self._modules.get(cmd_name, cmd_name)}")
            commands = (value for value in vars(module).values() if isinstance(value, click.Command))
            self.add_command(next(command for command in commands if command.name == cmd_name))
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by section, with all descriptions in one column."""
        width = max(map(len, self._texts), default=0)
        for title, names in self._sections.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:<{width}}", text) for name, text in names.items()])

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Call click, and raise our own exception if the pipe is closed."""
        try:
            return super().make_context(*args, **kwargs)
        except BrokenPipeError as e:
            raise _ReaderGone from e

    def invoke(self, ctx: click.Context) -> Any:
        """Call click, and raise our own exception if the pipe is closed."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as e:
            raise _ReaderGone from e

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command and exit the process."""
        # Otherwise click would exit the process with its own codes and messages.
        kwargs["standalone_mode"] = False
        try:
            code = super().main(*args, **kwargs)
            # A closed pipe is detected here. During the flush at exit, Python would print its own error.
            sys.stdout.flush()
        except (_ReaderGone, BrokenPipeError):
            _drop_stdout()
            code = Exit.DONE
        except click.exceptions.Exit as e:
            code = e.exit_code
        except click.ClickException as e:
            if (replacement := _explain_removal(e)) is not None:
                print(f"{self.name}: {visible(replacement)}", file=sys.stderr)
            else:
                shown = io.StringIO()
                e.show(shown)
                print(visible(shown.getvalue()), end="", file=sys.stderr)
            code = e.exit_code
        except (click.Abort, KeyboardInterrupt):
            print(f"{self.name}: interrupted; to resume, run the same command again", file=sys.stderr)
            code = Exit.INTERRUPTED
        except Exception as e:
            code = self._report(e)
        sys.exit(int(code) if isinstance(code, int) else Exit.DONE)

    def _report(self, error: Exception) -> Exit:
        """Print an error as one line. If JUDGE_DEBUG=1 is set, print the traceback first."""
        if os.environ.get("JUDGE_DEBUG") == "1":
            traceback.print_exc()
        code, message = Exit.ERROR, describe_unexpected(error)
        # A violated constraint is a bug in adjudge. Every other SQLite error is caused by the file.
        if isinstance(error, DatabaseError) and not isinstance(error, IntegrityError):
            error = explain(error, "the study")
        if isinstance(error, AdjudgeError):
            code, message = error.exit_code, str(error)
        elif isinstance(error, OSError):
            # The failed write may have been to stdout (a full disk). Its flush at exit would fail again.
            message = ": ".join(str(part) for part in (error.filename, error.strerror or error) if part)
            _drop_stdout()
        print(f"{self.name}: {visible(' '.join(message.splitlines()))}", file=sys.stderr)
        return code


def _explain_removal(error: click.ClickException) -> str | None:
    """Return the message for an option or command of an earlier version. The message names the replacement."""
    ctx = getattr(error, "ctx", None)
    if ctx is None:
        return None
    if isinstance(error, click.NoSuchOption):
        options = {name for param in ctx.command.params for name in (*param.opts, *param.secondary_opts)}
        return explain_option(ctx.command_path, error.option_name, options)
    # Before click 8.4, only the message shows that a command does not exist.
    name = _NO_COMMAND.match(error.message)
    return None if name is None else explain_command(f"{ctx.command_path} {name[1]}")


def _drop_stdout() -> None:
    """Redirect stdout to the null device, so that Python's flush at exit does not report a second error."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        # stdout is not a file, so its flush cannot fail.
        return


def visible(text: str) -> str:
    """Escape control and direction characters, so that a terminal shows them instead of executing them."""
    return text.translate(_VISIBLE)


def json_text(value: Any, indent: int | None = None) -> str:
    """Return JSON with readable Unicode. Control and direction characters are written as JSON escapes.

    Raises ValueError for NaN, which only a bug can produce.
    """
    return json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False).translate(_IN_JSON)


def print_lines(text: str) -> None:
    """Print text to stdout, with control characters escaped."""
    print(visible(text))


def note(text: str) -> None:
    """Print one line to stderr, with control characters escaped."""
    print(visible(text), file=sys.stderr)


def note_encodings(paths: Iterable[Path]) -> None:
    """Print a line to stderr for each file that is not UTF-8, with the encoding in which it is read."""
    from judge.files import note_encoding

    for path in paths:
        if path.is_file() and (line := note_encoding(path)):
            note(line)


_IN_SCRIPT = ContextVar("_IN_SCRIPT", default=False)


@contextmanager
def script() -> Iterator[None]:
    """Suppress the suggestion of a next command.

    `judge start` uses this, because it runs several commands itself.
    """
    token = _IN_SCRIPT.set(True)
    try:
        yield
    finally:
        _IN_SCRIPT.reset(token)


def suggests_next() -> bool:
    """Return whether commands should suggest a next command when they end."""
    return not _IN_SCRIPT.get()


def notes(texts: Iterable[Any], head: str = "note") -> None:
    """Print several lines to stderr, each with the same prefix."""
    for text in texts:
        note(f"{head}: {text}")


def combine_options(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Combine several options into one decorator. The help lists them in this order."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def _use_study(ctx: click.Context, param: click.Parameter, path: Path) -> Path:
    """Set the study for the commands that messages show."""
    use_study(path)
    return path


db_option = click.option(
    "-d",
    "--db",
    envvar=VARIABLE,
    default=DEFAULT_STUDY,
    show_default=True,
    # Parsed before all other options, because an option that names a batch looks it up in the study.
    is_eager=True,
    callback=_use_study,
    type=TO_WRITE,
    help="Path of the study file (or set JUDGE_DB).",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document to stdout.")


def document(schema: str, content: Mapping[str, Any]) -> str:
    """Return a JSON document that names its schema."""
    return json_text({"schema": f"adjudge/{schema}/1", **content}, indent=2) + "\n"


def emit_json(schema: str, content: Mapping[str, Any]) -> None:
    """Print one JSON document."""
    print(document(schema, content), end="")


def unit_link(page: str, unit_id: str) -> str:
    """Return the link to a unit on a page of `annotate view`, with the unit's id as the fragment."""
    return f"{quote(page, safe='/:')}#{quote(visible(unit_id), safe='')}"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def format_value(value: Any) -> str:
    """Format a value for a table.

    A list of strings is joined with commas; any other list or dictionary is JSON.
    """
    if isinstance(value, list) and all(isinstance(v, str) for v in value):
        return ", ".join(value)
    return _cell(value)


def shorten(text: str | None, width: int) -> str:
    """Shorten a text to one line of at most `width` characters."""
    flat = " ".join((text or "").split())
    return flat if len(flat) <= width else flat[: width - 1] + "…"


def parse_named_number(text: str, option: str, form: str) -> tuple[str, float]:
    """Split `NAME=NUMBER`. For any other text, raises a UsageError that shows the expected form."""
    # Split at the last equals sign, because the names of some measures contain one.
    name, _, number = text.rpartition("=")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not name or not math.isfinite(value):
        raise UsageError(f"{option} {text}: must have the form {form}")
    return name, value


def pairs(values: Sequence[str], option: str) -> dict[str, str]:
    """Return `key=value` options as a dictionary. Raises a UsageError that names all malformed options."""
    if wrong := [value for value in values if value.find("=") < 1]:
        # Only the name is printed, because the value may be a secret.
        secret = ("header.", "query.", "key")
        shown = [re.split(r"[\s:]", value)[0] if value.startswith(secret) else value for value in wrong]
        options = ", ".join(f"{option} {value}" for value in shown)
        raise UsageError(f"{options}: must have the form key=value")
    parts = [value.partition("=") for value in values]
    named: dict[str, str] = {}
    for key, _, rest in parts:
        # Only the last value would be used, without any warning.
        if option.startswith("--map") and named.get(key.strip(), rest) != rest:
            raise UsageError(
                f"{option} {key.strip()}: '{named[key.strip()]}' and '{rest}' were both given; use only one"
            )
        named[key.strip()] = rest
    return named
