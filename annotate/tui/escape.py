"""A parser that distinguishes Escape from Alt.

A terminal sends one byte for Escape, and the same byte before a key that is pressed with Alt. Textual waits 100 ms for
the next byte, and combines both bytes into one key. A text that the user wanted to discard could then be stored. This
parser treats the bytes as two keys unless they arrive in the same read.
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
"""The bytes that show that the Escape before them is not Alt.

`[` and `O` continue an escape sequence. Before a second Escape, the first was pressed alone.
"""
# The kitty protocol writes Escape as a sequence of its own, which Textual's parser understands at once.
_ALONE = ESC + "[27u"
_PASTE, _PASTED = ESC + "[200~", ESC + "[201~"


class EscapeParser(XTermParser):
    """A variant of Textual's parser that rewrites its input so that each key is unambiguous, as in the kitty
    keyboard protocol.
    """

    _held_since: float | None = None
    """The monotonic time of the last read, if the read ended with an Escape that is not parsed yet. Otherwise None."""
    _pasting = False

    def feed(self, data: str) -> Iterable[Message]:
        """Parse the bytes from one read."""
        rewritten = self._unambiguous(data)
        # To Textual's parser, an empty string means the end of the input.
        return super().feed(rewritten) if rewritten or not data else ()

    def tick(self) -> Iterable[Message]:
        """Parse a pending Escape if no other byte has followed it."""
        if self._held_since is not None and monotonic() - self._held_since >= ESCAPE_DELAY:
            self._held_since = None
            yield from super().feed(_ALONE)
        yield from super().tick()

    def _unambiguous(self, data: str) -> str:
        before = ""
        if self._held_since is not None and data:
            self._held_since = None
            if data[0] in "[O":
                # A sequence, such as that of an arrow key, was split between two reads.
                data = ESC + data
            else:
                before = _ALONE
        return before + self._rewritten(data)

    def _rewritten(self, data: str) -> str:
        if ESC not in data:
            return data
        out, at = [], 0
        while at < len(data):
            # In a pasted text, an Escape is text.
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
                # A terminal writes Alt and its key at once, so an Escape at the end of a read was pressed alone.
                self._held_since = monotonic()
                at += 1
            elif data[at + 1] in _SEQUENCES:
                # The second of two Escapes is parsed again, because it may begin a sequence.
                double = data[at + 1] == ESC
                out.append(_ALONE if double else data[at : at + 2])
                at += 1 if double else 2
            else:
                # Within one read it could be either. It becomes an Alt key, which the app refuses unless a keymap has it.
                out.append(f"{ESC}[{ord(data[at + 1])};3u")
                at += 2
        return "".join(out)


def install_parser(driver: type) -> None:
    """Make the module of a Textual driver use this parser, and a decoder that replaces invalid UTF-8."""
    # Terminals with another encoding send such bytes, and Textual would end with an error.
    module: ModuleType = sys.modules[driver.__module__]
    if hasattr(module, "XTermParser"):
        module.XTermParser = EscapeParser  # type: ignore[attr-defined]
    if hasattr(module, "getincrementaldecoder"):
        module.getincrementaldecoder = _forgiving  # type: ignore[attr-defined]


def _forgiving(encoding: str) -> Callable[[], IncrementalDecoder]:
    return partial(getincrementaldecoder(encoding), errors="replace")
