"""The settings that a person keeps between sessions: the theme, and when a key counts as held down.

settings.toml:
    theme = "nord"
    held_ms = 40          # a key that repeats faster counts as held down; 0 turns this off
"""

import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

from judge.permissions import configuration_folder

KEYMAP = "keymap.toml"
SETTINGS = "settings.toml"


def find_keymap() -> Path | None:
    """Return the path of the person's keymap file if it exists, otherwise None."""
    path = configuration_folder() / KEYMAP
    return path if path.is_file() else None


def _settings() -> dict[str, Any]:
    with suppress(OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return tomllib.loads((configuration_folder() / SETTINGS).read_text("utf-8"))
    return {}


def read_theme() -> str | None:
    """Return the theme that was chosen last, or None if none was chosen or the file is unreadable."""
    theme = _settings().get("theme")
    return theme if isinstance(theme, str) else None


def read_held_ms() -> float | None:
    """Return the interval in milliseconds within which a repeated key counts as held down, or None if it is not set."""
    value = _settings().get("held_ms")
    # In Python, true is an integer.
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        return None
    return float(value)


def remember_theme(name: str) -> None:
    """Store the theme for the next session."""
    path = configuration_folder() / SETTINGS
    # A read-only folder must not end the session. Only the choice of theme is lost.
    with suppress(OSError):
        configuration_folder().mkdir(parents=True, exist_ok=True)
        lines = path.read_text("utf-8").splitlines() if path.is_file() else []
        # The theme comes first in the file, because a key after the header of a table would belong to that table.
        others = [line for line in lines if line.partition("=")[0].strip() != "theme"]
        path.write_text("\n".join([f'theme = "{name}"', *others]) + "\n", "utf-8")
