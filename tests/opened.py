"""Connections that a test's helpers hand out: closed when the test ends, as Python 3.13 asks."""

from typing import Protocol, TypeVar


class Closes(Protocol):
    """A study, a connection."""

    def close(self) -> None: ...


C = TypeVar("C", bound=Closes)
_OPEN: list[Closes] = []


def opened(thing: C) -> C:
    """The same, closed at the end of this test."""
    _OPEN.append(thing)
    return thing


def close_all() -> None:
    while _OPEN:
        _OPEN.pop().close()
