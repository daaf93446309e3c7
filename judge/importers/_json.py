"""JSON as data sets have it: no key twice, no nameless field, no number beyond any float, no abyss of brackets."""

from __future__ import annotations

import json
import re
from typing import IO, Any

from judge.errors import BadInput
from judge.strict import NAMELESS, twice, whole_object

DEEPEST = 200
"""Lists and objects within each other; ijson keeps the whole path of each, which grows with its square."""
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_REST = re.compile(rb'(?:[^"\\]+|\\.)*', re.DOTALL)
_PLAIN = bytes(set(range(256)) - set(b"[]{}"))
_HUGE = re.compile(rb"[0-9][eE]\+?[0-9]{3}|[0-9]{300}")


def loads(line: bytes) -> Any:
    """One JSON text. Raises ValueError (UnicodeDecodeError too) or RecursionError."""
    value = json.loads(line.decode("utf-8"), parse_constant=_no_constant, object_pairs_hook=whole_object)
    if _HUGE.search(line):
        json.dumps(value, allow_nan=False)
    if b"\\u" in line:
        # Half a surrogate pair is legal JSON but no text: SQLite and every provider refuse it.
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    return value


class Noting(dict[str, Any]):
    """An object that ijson fills: it notes what is wrong with its keys, because ijson's parser written in C makes
    a SystemError of what is raised in between."""

    wrong: str | None = None

    def __setitem__(self, name: str, value: Any) -> None:
        if name in self:
            self.wrong = twice(name)
        elif not name:
            self.wrong = NAMELESS
        super().__setitem__(name, value)


def refuse_noted(value: Any) -> None:
    """Raises ValueError for an object, at any depth, that has noted something."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, Noting) and one.wrong:
            raise ValueError(one.wrong)
        if isinstance(one, dict | list | tuple):
            parts = one.values() if isinstance(one, dict) else one
            left += [part for part in parts if isinstance(part, dict | list)]


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
