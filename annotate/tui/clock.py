"""Working time and idle time of a unit, told apart."""

from __future__ import annotations

import time
from collections.abc import Callable

from annotate.sitting.desk import TimeSpent

IDLE_AFTER = 60.0


class Clock:
    """Counts since the last `take`: a pause longer than a minute, or a terminal without focus, is idle."""

    def __init__(self, now: Callable[[], float] = time.monotonic, idle_after: float = IDLE_AFTER) -> None:
        self._now, self._idle_after = now, idle_after
        self._last = now()
        self._active = self._idle = 0.0
        self._away = False

    def touch(self) -> None:
        """Something was pressed."""
        self._count()

    def away(self, is_away: bool) -> None:
        """The terminal lost or got the focus."""
        self._count()
        self._away = is_away

    def take(self) -> TimeSpent:
        """The times since the last call, in milliseconds."""
        self._count()
        spent = TimeSpent(round(self._active * 1000), round(self._idle * 1000))
        self._active = self._idle = 0.0
        return spent

    def _count(self) -> None:
        now = self._now()
        gap, self._last = now - self._last, now
        if self._away:
            self._idle += gap
        elif gap > self._idle_after:
            self._active += self._idle_after
            self._idle += gap - self._idle_after
        else:
            self._active += gap
