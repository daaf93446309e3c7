"""The commands of the labelling screen, their keys, and a file of one's own keys.

keymap.toml:
    [keys]
    undo = "u"
    skip = "space,f4"
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import NamedTuple

from annotate.guidelines import label_keys
from judge.errors import UsageError
from judge.prompts.load import Task


class Command(NamedTuple):
    """One command: keys as Textual names them, comma-separated; the last one is a function key."""

    id: str
    keys: str
    action: str
    short: str
    help: str


COMMANDS = (
    Command(
        "undo", "backspace,ctrl+z", "undo", "undo", "take back the last thing you did, as often as you like"
    ),
    Command("skip", "minus,f4", "skip", "skip", "leave this unit for later"),
    Command(
        "flag", "exclamation_mark,f3", "flag", "flag", "flag this unit with a reason, or take the flag away"
    ),
    Command("note", "plus,f2", "note", "note", "write a note on this unit"),
    Command("evidence", "asterisk,f7", "evidence", "mark", "mark evidence in the text"),
    Command(
        "review", "equals_sign,f5", "review", "list", "your units: all, open, done, skipped, flagged, noted"
    ),
    Command("search", "slash,f8", "search", "find", "find text in your units"),
    Command("jump", "number_sign,f9", "jump", "jump", "go to a unit by its number"),
    Command("highlights", "percent_sign,f6", "highlights", "highlights", "highlighted words on or off"),
    Command("help", "question_mark,f1", "help", "help", "guidelines, labels and keys"),
    Command("pane", "tab,f10", "pane", "texts", "the answer, or the passages it is held against"),
    Command("previous", "left", "step(-1)", "", "the unit before"),
    Command("next", "right", "step(1)", "", "the unit behind"),
    Command("go_on", "enter", "go_on", "", "go on; keep after the judge was shown; type a number or text"),
    Command("down", "down", "scroll(1)", "", "scroll a line down"),
    Command("up", "up", "scroll(-1)", "", "scroll a line up"),
    Command("page_down", "space,pagedown", "scroll(10)", "", "scroll a page down"),
    Command("page_up", "pageup", "scroll(-10)", "", "scroll a page up"),
)
_SYMBOLS = {
    "backspace": "⌫", "minus": "-", "exclamation_mark": "!", "plus": "+", "asterisk": "*", "equals_sign": "=",
    "slash": "/", "number_sign": "#", "percent_sign": "%", "question_mark": "?", "left": "←", "right": "→",
    "up": "↑", "down": "↓", "tab": "⇥", "enter": "⏎", "pagedown": "PgDn", "pageup": "PgUp",
}  # fmt: skip
_NAMES = {v: k for k, v in _SYMBOLS.items() if len(v) == 1 and v.isascii()}


def symbol(key: str) -> str:
    """A key as printed on the screen."""
    if key.startswith("ctrl+"):
        return "^" + key[5:].upper()
    return _SYMBOLS.get(key, key.upper() if key[0] == "f" and key[1:].isdigit() else key)


def keys_of(task: Task, keymap: dict[str, str]) -> dict[str, list[str]]:
    """Command -> the keys that reach it: without those that are labels of the task."""
    taken = {key for keys in label_keys(task).values() for key in keys}
    out = {}
    for command in COMMANDS:
        keys = keymap.get(command.id, command.keys).split(",")
        out[command.id] = [k for k in keys if symbol(k) not in taken]
    return out


def load_keymap(path: Path | None, task: Task) -> dict[str, str]:
    """A keymap file as command -> keys. Raises UsageError for unknown commands and keys that clash."""
    if path is None:
        return {}
    try:
        table = tomllib.loads(path.read_text("utf-8")).get("keys", {})
    except OSError as e:
        raise UsageError(f"{path}: {e.strerror}") from e
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
        raise UsageError(f"{path}: not TOML: {e}") from e
    known = {c.id: c for c in COMMANDS}
    out: dict[str, str] = {}
    for name, keys in table.items():
        if name not in known:
            raise UsageError(f"{path}: no command '{name}'; there are: {', '.join(known)}")
        if not isinstance(keys, str) or not keys.strip():
            raise UsageError(f'{path}: {name}: write the keys as text, as in {name} = "u,f2"')
        out[name] = ",".join(_NAMES.get(k.strip(), k.strip()) for k in keys.split(",") if k.strip())
    labels = {key: f"label '{value}'" for keys in label_keys(task).values() for key, value in keys.items()}
    seen: dict[str, str] = {}
    for command in COMMANDS:
        for key in out.get(command.id, command.keys).split(","):
            other = seen.get(key) or (labels.get(symbol(key)) if command.id in out else None)
            if other:
                raise UsageError(f"{path}: key '{symbol(key)}' of '{command.id}' is that of {other}")
            seen[key] = f"'{command.id}'"
    return out
