"""Escape, told apart from Alt.

A terminal sends one byte for Escape, and the same byte before a key that Alt is held with. Textual waits
100 ms for what follows, makes one key of both and forgets that there were two: what was to be abandoned is
stored. Here the two are told apart by how they come. A terminal writes Alt and its key at once, so an Escape
at the end of a read was pressed alone. In one read it could be either; that becomes an Alt key, which means
nothing unless somebody's keymap says so, and the app refuses it.
"""

import sys
from codecs import IncrementalDecoder, getincrementaldecoder
from collections.abc import Callable, Iterable
from functools import partial
from time import monotonic
from types import ModuleType

from textual._xterm_parser import XTermParser
from textual.constants import ESCAPE_DELAY
from textual.message import Message

ESC = "\x1b"
_SEQUENCES = "[O" + ESC
"""What goes on after an Escape that begins a sequence; after a second one the first was pressed alone."""
_ALONE = ESC + "[27u"
_PASTE, _PASTED = ESC + "[200~", ESC + "[201~"


class EscapeParser(XTermParser):
    """Textual's, fed with keys that cannot be mistaken for each other, as the kitty protocol writes them."""

    _held_since: float | None = None
    """When a read ended with an Escape that has not been parsed yet, monotonic."""
    _pasting = False

    def feed(self, data: str) -> Iterable[Message]:
        """Parse what was read."""
        found = self._told_apart(data)
        return super().feed(found) if found or not data else ()  # nothing to parse means the end to it

    def tick(self) -> Iterable[Message]:
        """An Escape that nothing follows is one."""
        if self._held_since is not None and monotonic() - self._held_since >= ESCAPE_DELAY:
            self._held_since = None
            yield from super().feed(_ALONE)
        yield from super().tick()

    def _told_apart(self, data: str) -> str:
        before = ""
        if self._held_since is not None and data:
            self._held_since = None
            if data[0] in "[O":
                data = ESC + data
            else:
                before = _ALONE
        return before + self._rewritten(data)

    def _rewritten(self, data: str) -> str:
        if ESC not in data:
            return data
        out, at = [], 0
        while at < len(data):
            if self._pasting or data.startswith(_PASTE, at):
                end = data.find(_PASTED, at)
                self._pasting = end < 0
                stop = len(data) if end < 0 else end + len(_PASTED)
                out.append(data[at:stop])
                at = stop
            elif data[at] != ESC:
                out.append(data[at])
                at += 1
            elif at + 1 == len(data):
                self._held_since = monotonic()
                at += 1
            elif data[at + 1] in _SEQUENCES:
                # The second of two Escapes is looked at again: it may begin a sequence.
                double = data[at + 1] == ESC
                out.append(_ALONE if double else data[at : at + 2])
                at += 1 if double else 2
            else:
                out.append(f"{ESC}[{ord(data[at + 1])};3u")
                at += 2
        return "".join(out)


def tell_apart(driver: type) -> None:
    """Let a driver of Textual read its keys with this parser. Bytes that are no UTF-8, as a terminal of another
    encoding sends, are keys that mean nothing: Textual ends with an error at them."""
    module: ModuleType = sys.modules[driver.__module__]
    if hasattr(module, "XTermParser"):
        module.XTermParser = EscapeParser  # type: ignore[attr-defined]
    if hasattr(module, "getincrementaldecoder"):
        module.getincrementaldecoder = _forgiving  # type: ignore[attr-defined]


def _forgiving(encoding: str) -> Callable[[], IncrementalDecoder]:
    return partial(getincrementaldecoder(encoding), errors="replace")
