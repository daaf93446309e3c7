"""Errors for options and commands of earlier versions. Each error names the replacement.

`judge.console.Command` prints these errors instead of click's "No such option". The table is in `removed.toml`.
"""

import tomllib
from collections.abc import Iterator
from pathlib import Path

_TYPED = ("-", "judge ", "annotate ")
"""A replacement with one of these prefixes can be typed. Any other replacement is a sentence."""


def table() -> tuple[dict[str, str], dict[str, str]]:
    """Return the replacements for removed options, and those for removed commands.

    The key of an option is `COMMAND --OPTION`, or only `--OPTION` if the entry applies to all commands.
    """
    rows = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    return dict(_single(rows["options"])), rows["commands"]


def _single(rows: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield a key and its replacement for each option of each command.

    A single entry in the table may list several commands and several options.
    """
    for removed, instead in rows.items():
        commands, dashes, options = removed.partition("--")
        for command in commands.split(","):
            for option in f"{dashes}{options}".split():
                yield f"{command.strip()} {option}".strip(), instead


def explain_option(command: str, option: str, available: set[str]) -> str | None:
    """Return the error for an option that `command` no longer has, or None if the command never had it.

    `available` contains the options of the command.
    """
    replacements, _ = table()
    words = command.split()
    # Longer prefixes come first, so that an entry for one command has priority over an entry for its group.
    keys = [" ".join([*words[:n], option]) for n in range(len(words), -1, -1)]
    for key in keys:
        instead = replacements.get(key)
        # A command without the replacement never had the option, so click's own error is right.
        if instead is None or (
            key == option and instead.startswith("-") and instead.split()[0] not in available
        ):
            continue
        return f"{command} {option} was removed. {_advice(instead)}"
    return None


def explain_command(command: str) -> str | None:
    """Return the error for a command that no longer exists, or None if the command never existed."""
    _, replacements = table()
    instead = replacements.get(command)
    return None if instead is None else f"{command} was removed. {_advice(instead)}"


def _advice(instead: str) -> str:
    return f"Type instead: {instead}" if instead.startswith(_TYPED) else instead
