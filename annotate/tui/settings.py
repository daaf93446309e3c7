"""What a person's screen remembers from one sitting to the next: the theme. Keys of one's own are in keymap.py."""

from __future__ import annotations

import os
import tomllib
from contextlib import suppress
from pathlib import Path

KEYMAP = "keymap.toml"
SETTINGS = "settings.toml"


def folder() -> Path:
    """Where both files are: `adjudge` in the configuration folder."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "adjudge"


def own_keymap() -> Path | None:
    """The file with one's own keys, if it is there."""
    path = folder() / KEYMAP
    return path if path.is_file() else None


def remembered_theme() -> str | None:
    """The theme chosen last; None when there is none or the file cannot be read."""
    with suppress(OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        found = tomllib.loads((folder() / SETTINGS).read_text("utf-8")).get("theme")
        return found if isinstance(found, str) else None
    return None


def remember_theme(name: str) -> None:
    """Keep the theme for the next sitting; where nothing can be written, this sitting has it all the same."""
    with suppress(OSError):
        folder().mkdir(parents=True, exist_ok=True)
        (folder() / SETTINGS).write_text(f'theme = "{name}"\n', "utf-8")
