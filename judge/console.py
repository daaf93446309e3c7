"""What both command lines share: errors and exit codes, output as table, JSON or CSV, common options.

stdout is data; everything for people's eyes only goes to stderr.
"""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from judge.errors import AdjudgeError, Exit, UsageError

F = TypeVar("F", bound=Callable[..., Any])
_CONTROL = {c: f"\\x{c:02x}" for c in [*range(0x20), *range(0x7F, 0xA0)] if c not in (0x09, 0x0A)} | {
    c: f"\\u{c:04x}" for c in (*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFEFF)
}


class Command(click.Group):
    """A group that ends with our exit codes and prints an expected error as one line."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command; never returns normally."""
        kwargs["standalone_mode"] = False
        try:
            code = super().main(*args, **kwargs)
        except click.exceptions.Exit as e:
            code = e.exit_code
        except click.ClickException as e:
            e.show()
            code = e.exit_code
        except click.Abort:
            code = Exit.INTERRUPTED
        except KeyboardInterrupt:
            print(f"{self.name}: interrupted; run the same command again to go on", file=sys.stderr)
            code = Exit.INTERRUPTED
        except AdjudgeError as e:
            if os.environ.get("JUDGE_DEBUG") == "1":
                raise
            print(f"{self.name}: {visible(str(e))}", file=sys.stderr)
            code = e.exit_code
        except BrokenPipeError:
            # The reader (head, less) has what it wanted; a second error at exit would be noise.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = Exit.DONE
        sys.exit(int(code) if isinstance(code, int) else Exit.DONE)


def visible(text: str) -> str:
    """Text that a terminal shows and does not obey: control and direction characters as escapes."""
    return text.translate(_CONTROL)


def note(text: str) -> None:
    """One line for people."""
    print(visible(text), file=sys.stderr)


def db_option(function: F) -> F:
    """`-d/--db`, also from JUDGE_DB."""
    return click.option(
        "-d",
        "--db",
        envvar="JUDGE_DB",
        default="study.db",
        show_default=True,
        type=click.Path(path_type=Path, dir_okay=False),
        help="The study (also JUDGE_DB).",
    )(function)


def output_options(function: F) -> F:
    """`--json` and `--csv` for a listing."""
    function = click.option("--csv", "as_csv", is_flag=True, help="CSV instead of a table.")(function)
    return click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")(function)


def json_option(function: F) -> F:
    """`--json` for a command that prints a summary."""
    return click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")(function)


def emit_json(schema: str, document: Mapping[str, Any]) -> None:
    """One document; NaN is a bug and raises."""
    body = {"schema": f"adjudge/{schema}/1", **document}
    print(json.dumps(body, ensure_ascii=False, indent=2, allow_nan=False))


def emit_rows(
    schema: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str], as_json: bool, as_csv: bool
) -> None:
    """A listing: the columns as a table or CSV, or every key of the rows as JSON."""
    if as_json:
        emit_json(schema, {"rows": [dict(r) for r in rows]})
    elif as_csv:
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([[_cell(r.get(c)) for c in columns] for r in rows])
        sys.stdout.write(out.getvalue())
    else:
        print(table(columns, [[r.get(c) for c in columns] for r in rows]))


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A plain table, numbers to the right; text is made safe to print."""
    from tabulate import tabulate

    body = [[visible(_cell(v)).replace("\n", " ") for v in row] for row in rows]
    columns = list(zip(*rows, strict=True))
    align = ["right" if all(isinstance(v, int | float | None) for v in c) else "left" for c in columns]
    return str(tabulate(body, list(head), tablefmt="simple", disable_numparse=True, colalign=align or None))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def short(text: str | None, width: int) -> str:
    """One line of at most `width` characters."""
    flat = " ".join((text or "").split())
    return flat if len(flat) <= width else flat[: width - 1] + "…"


def pairs(values: Sequence[str], option: str) -> dict[str, str]:
    """`key=value` options as a dictionary. Raises UsageError naming the option."""
    out = {}
    for value in values:
        key, found, rest = value.partition("=")
        if not found or not key:
            raise UsageError(f"{option} {value}: write it as key=value")
        out[key.strip()] = rest
    return out
