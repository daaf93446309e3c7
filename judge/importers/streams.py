"""JSON lists and objects of data sets as they stream: no key twice, no nameless field, no abyss of brackets."""

from __future__ import annotations

import re
from typing import IO, Any

from judge.errors import BadInput
from judge.strict import NAMELESS, BadObject, twice

DEEPEST = 200
"""Lists and objects within each other; ijson keeps the whole path of each, which grows with its square."""
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_REST = re.compile(rb'(?:[^"\\]+|\\.)*', re.DOTALL)
_PLAIN = bytes(set(range(256)) - set(b"[]{}"))


class Noting(dict[str, Any]):
    """An object that ijson fills: it notes what is wrong with its keys, because ijson's parser written in C makes
    a SystemError of what is raised in between."""

    wrong: str | None = None

    def __setitem__(self, name: str, value: Any) -> None:
        if name in self:
            self.wrong = twice(name)
        elif not name.strip():
            self.wrong = NAMELESS
        super().__setitem__(name, value)


def refuse_noted(value: Any) -> None:
    """Raises BadObject for an object, at any depth, that has noted something."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, Noting) and one.wrong:
            raise BadObject(one.wrong)
        if isinstance(one, dict | list | tuple):
            parts = one.values() if isinstance(one, dict) else one
            left += [part for part in parts if isinstance(part, dict | list)]


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
