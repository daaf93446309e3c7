"""The commands on the labelling screen, their keys, and the file in which an annotator can change the keys.

keymap.toml:
    [keys]
    undo = "u"
    skip = "space,f4"
"""

import re
import tomllib
import unicodedata
from difflib import get_close_matches
from pathlib import Path
from string import punctuation
from typing import NamedTuple

from textual.keys import KEY_NAME_REPLACEMENTS, Keys

from annotate.guidelines import label_keys
from judge.errors import UsageError
from judge.prompts.load import Task


class KeyCommand(NamedTuple):
    """A command and its keys. `keys` contains Textual's names for the keys, separated by commas.

    Every command, except for scrolling, has a second key that no task can use for a label, such as F4.
    """

    # A task can use any character as the key of a label, and the commands must remain available.

    id: str
    keys: str
    short: str
    help: str


QUIT = "ctrl+q"
COMMANDS = (
    KeyCommand("undo", "backspace,ctrl+z", "undo", "undo your last action, as often as you like"),
    KeyCommand("skip", "minus,f4", "skip", "leave this unit for later"),
    KeyCommand("flag", "exclamation_mark,f3", "flag", "flag this unit with a reason, or remove its flag"),
    KeyCommand("note", "plus,f2", "note", "write a note on this unit"),
    KeyCommand("evidence", "asterisk,f7", "mark", "mark evidence in the text"),
    KeyCommand("review", "equals_sign,f5", "list", "your units: all, open, done, skipped, flagged, noted"),
    KeyCommand("search", "slash,f8", "find", "find text in your units"),
    KeyCommand("jump", "number_sign,f9", "jump", "go to a unit by its number"),
    KeyCommand("highlights", "percent_sign,f6", "highlights", "turn highlights on or off"),
    KeyCommand("raw", "tilde,ctrl+r", "", "switch between raw text and laid-out tables and code"),
    KeyCommand("help", "question_mark,f1", "help", "guidelines, labels and keys"),
    KeyCommand("pane", "tab,f10", "texts", "the next text, or the question or labels if they do not fit"),
    KeyCommand("previous", "left", "", "the previous unit"),
    KeyCommand("next", "right", "", "the next unit"),
    KeyCommand(
        "go_on", "enter", "", "go on; keep your label after the judge was shown; type a number or text"
    ),
    KeyCommand("down", "down", "", "scroll a line down"),
    KeyCommand("up", "up", "", "scroll a line up"),
    KeyCommand("page_down", "space,pagedown", "", "scroll a page down"),
    KeyCommand("page_up", "pageup", "", "scroll a page up"),
    KeyCommand("begin", "home", "", "scroll to the beginning"),
    KeyCommand("end", "end", "", "scroll to the end"),
    KeyCommand(
        "match_below", "greater_than_sign,f12", "", "the next highlight or match below the visible text"
    ),
    KeyCommand("match_above", "less_than_sign,f11", "", "the next highlight or match above the visible text"),
)
_SYMBOLS = {
    "backspace": "⌫", "left": "←", "right": "→", "up": "↑", "down": "↓", "tab": "⇥", "enter": "⏎",
    "pagedown": "PgDn", "pageup": "PgUp", "home": "Home", "end": "End",
}  # fmt: skip
_TAKEN = {
    QUIT: "it quits",
    "ctrl+p": "it opens the menu",
    "ctrl+c": "it copies",
    "escape": "it closes dialogs",
}
_SAME = {"ctrl+i": "tab", "ctrl+m": "enter", "ctrl+h": "backspace", "return": "enter", "ctrl+space": "ctrl+@"}
"""A map from keys to other keys for which terminals send the same bytes."""
# Nobody can press keys with names such as `<any>`.
_KNOWN = {str(key.value) for key in Keys if key.value[0] != "<"}
_MODIFIED = re.compile(r"(alt|ctrl\+alt)\+[a-z0-9]")


def symbol(key: str) -> str:
    """Return a key in the form that the screen shows."""
    if key.startswith("ctrl+"):
        return "^" + key[5:].upper()
    if key in _SYMBOLS:
        return _SYMBOLS[key]
    return key.upper() if key[0] == "f" and key[1:].isdigit() else _character(key) or key


def _character(key: str) -> str | None:
    """Return the character for a Textual key name, or None if the key has no character. `key_name` is the inverse."""
    if key in _PUNCTUATION:
        return _PUNCTUATION[key]
    try:
        character = unicodedata.lookup(key.replace("_", " "))
    except KeyError:
        return None
    return character if character.isprintable() and not character.isspace() else None


def key_name(key: str) -> str:
    """Return Textual's name for a key: `u`, `ctrl+z`, `f4`, or `semicolon` for `;`.

    Raises ValueError if a command cannot use the key.
    """
    if len(key) == 1:
        if key.isalnum():
            return key
        # Textual uses a character's name in Unicode, and other names for some characters.
        name = unicodedata.name(key, "").lower().replace("-", "_").replace(" ", "_")
        if not name:
            raise ValueError("there is no such key")
        return KEY_NAME_REPLACEMENTS.get(name, name)
    if reason := _TAKEN.get(key):
        raise ValueError(f"it cannot be reassigned: {reason}")
    if same := _SAME.get(key):
        raise ValueError(f"terminals cannot distinguish it from '{same}': write '{same}' instead")
    if key in _PUNCTUATION or key in _KNOWN or _MODIFIED.fullmatch(key):
        return key
    near = get_close_matches(key, [*_PUNCTUATION, *_KNOWN], 1)
    raise ValueError(f"there is no such key{f'; did you mean {near[0]}?' if near else ''}")


_PUNCTUATION = {key_name(character): character for character in punctuation}


def keys_of(task: Task, keymap: dict[str, str]) -> dict[str, list[str]]:
    """Return a map from each command to its keys, without the keys that the task uses for labels."""
    of_labels = {key for keys in label_keys(task).values() for key in keys}
    keys = {command.id: keymap.get(command.id, command.keys).split(",") for command in COMMANDS}
    return {name: [k for k in names if symbol(k) not in of_labels] for name, names in keys.items()}


def load_keymap(path: Path | None, task: Task) -> dict[str, str]:
    """Return the keys that a keymap file sets for each command. Raises UsageError for unknown commands or conflicting keys."""
    if path is None:
        return {}
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except OSError as e:
        raise UsageError(f"{path}: {e.strerror}") from e
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
        raise UsageError(f"{path}: not valid TOML: {e}") from e
    table = document.get("keys", {})
    if other := next((name for name in document if name != "keys"), None):
        raise UsageError(f"{path}: unknown section '{other}'; the only section is [keys]")
    if not isinstance(table, dict):
        raise UsageError(f'{path}: keys must be a table: write [keys], and below it undo = "u"')
    known = {c.id: c for c in COMMANDS}
    out: dict[str, str] = {}
    for name, keys in table.items():
        if name not in known:
            raise UsageError(f"{path}: unknown command '{name}'; available: {', '.join(known)}")
        if not isinstance(keys, str) or not keys.strip(", "):
            raise UsageError(f'{path}: {name}: write the keys as a string, for example {name} = "u,f2"')
        out[name] = ",".join(_describe_place(path, name, k.strip()) for k in keys.split(",") if k.strip())
    labels = {key: f"label '{value}'" for keys in label_keys(task).values() for key, value in keys.items()}
    seen: dict[str, str] = {}
    for command in COMMANDS:
        for key in out.get(command.id, command.keys).split(","):
            # A default key that is a label is left out silently (`keys_of`); a key that the user chose is refused.
            other = seen.get(key) or (labels.get(symbol(key)) if command.id in out else None)
            if other:
                raise UsageError(f"{path}: key '{symbol(key)}' of '{command.id}' is already used by {other}")
            seen[key] = f"'{command.id}'"
    return out


def _describe_place(path: Path, command: str, key: str) -> str:
    try:
        return key_name(key)
    except ValueError as e:
        raise UsageError(f"{path}: {command}: key '{key}': {e}") from e
