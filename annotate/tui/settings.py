"""What a person's screen remembers from one sitting to the next: theme, held keys. Keys of one's own are in keymap.py.

settings.toml:
    theme = "nord"
    held_ms = 40          # a key that repeats faster labels nothing; 0 switches this off
"""

import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

from judge.permissions import configuration_folder

KEYMAP = "keymap.toml"
SETTINGS = "settings.toml"


def own_keymap() -> Path | None:
    """The file with one's own keys, if it is there."""
    path = configuration_folder() / KEYMAP
    return path if path.is_file() else None


def _settings() -> dict[str, Any]:
    with suppress(OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return tomllib.loads((configuration_folder() / SETTINGS).read_text("utf-8"))
    return {}


def remembered_theme() -> str | None:
    """The theme chosen last; None when there is none or the file cannot be read."""
    found = _settings().get("theme")
    return found if isinstance(found, str) else None


def held_ms() -> float | None:
    """How fast a key must repeat to count as held down; None when the person has not set it."""
    found = _settings().get("held_ms")
    return (
        float(found)
        if isinstance(found, int | float) and not isinstance(found, bool) and found >= 0
        else None
    )


def remember_theme(name: str) -> None:
    """Keep the theme for the next sitting; where nothing can be written, this sitting has it all the same."""
    path = configuration_folder() / SETTINGS
    with suppress(OSError):
        configuration_folder().mkdir(parents=True, exist_ok=True)
        lines = path.read_text("utf-8").splitlines() if path.is_file() else []
        # In TOML what stands before the first table is the file's own.
        kept = [line for line in lines if line.partition("=")[0].strip() != "theme"]
        path.write_text("\n".join([f'theme = "{name}"', *kept]) + "\n", "utf-8")
