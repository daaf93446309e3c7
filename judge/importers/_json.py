"""JSON as data sets have it: no key twice, no nameless field, no number beyond any float, no abyss of brackets."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import IO, Any

from judge.errors import BadInput

DEEPEST = 200
"""Lists and objects within each other; ijson keeps the whole path of each, which grows with its square."""
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_REST = re.compile(rb'(?:[^"\\]+|\\.)*', re.DOTALL)
_PLAIN = bytes(set(range(256)) - set(b"[]{}"))
_HUGE = re.compile(rb"[0-9][eE]\+?[0-9]{3}|[0-9]{300}")


def loads(line: bytes) -> Any:
    """One JSON text. Raises ValueError (UnicodeDecodeError too) or RecursionError."""
    value = json.loads(line.decode("utf-8"), parse_constant=_no_constant, object_pairs_hook=_object)
    if _HUGE.search(line):
        json.dumps(value, allow_nan=False)
    if b"\\u" in line:
        # Half a surrogate pair is legal JSON but no text: SQLite and every provider refuse it.
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    return value


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(
            f"the key '{next(n for n in names if names.count(n) > 1)}' stands twice in one object"
        )
    if "" in found:
        raise ValueError("a field without a name")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


class Shallow:
    """A file's bytes as they are read, as long as they nest no deeper than `DEEPEST`. Raises BadInput."""

    def __init__(self, handle: IO[bytes], path: str) -> None:
        self._handle, self._path = handle, path
        self._depth = 0
        self._in_string = self._escaped = False

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        data = self._handle.read(size)
        self._follow(data)
        return data

    def _follow(self, data: bytes) -> None:
        at = 0
        if self._in_string:
            rest = _REST.match(data, int(self._escaped))
            at = rest.end() if rest else 0
            self._escaped = data[at:] == b"\\"
            if at >= len(data) or self._escaped:
                return
            self._in_string, at = False, at + 1
        outside = _STRING.sub(b"", data[at:])
        begun = outside.find(b'"')
        if begun >= 0:
            # What follows is a string that the next bytes end; an escape may be cut in two.
            self._in_string = True
            slashes = len(outside) - len(outside.rstrip(b"\\"))
            self._escaped = slashes % 2 == 1
            outside = outside[:begun]
        for mark in outside.translate(None, _PLAIN):
            self._depth += 1 if mark in b"[{" else -1
            if self._depth > DEEPEST:
                reason = f"lists and objects nested over {DEEPEST} deep"
                raise BadInput(reason, path=self._path)
