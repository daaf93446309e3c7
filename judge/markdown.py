"""Escape untrusted text for Markdown: nothing in it becomes markup, a link or a mention."""

import re

from judge.console import visible

_SPECIAL = re.compile(r"([\\`*_\[\]#|~$])")
# Special only at the start of a line: list items, underlined headings, numbered lists.
_STARTS = re.compile(r"^([-+=])|^(\d+)([.)])(?=\s|$)")
_BEFORE_LINK = re.compile(r"(?i)\b(https?|ftp)(:)|\b(www)(\.)")


def text(value: str) -> str:
    """Return the text on one line, with all markup escaped."""
    return _escape(" ".join(visible(value).split()))


def quote(value: str) -> str:
    """Return the text as a block quote, with all markup inside it escaped."""
    lines = [_escape(line.strip()) for line in visible(value).strip().split("\n")]
    return "\n".join(f"> {line}  " if line else ">" for line in lines)


def _escape(line: str) -> str:
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    line = _SPECIAL.sub(r"\\\1", line)
    line = _STARTS.sub(lambda m: f"\\{m[1]}" if m[1] else f"{m[2]}\\{m[3]}", line)
    # Entities are added last, because their own "#" must not be escaped. GitHub turns "@" into a mention
    # and a bare address into a link.
    line = line.replace("@", "&#64;")
    return _BEFORE_LINK.sub(lambda m: f"{m[1] or m[3]}&#{ord(m[2] or m[4])};", line)
