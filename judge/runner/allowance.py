"""How many requests or tokens are left of a limit that a server states in its rate headers."""

import math


class Allowance:
    """One of the limits that rate headers tell of: requests, or tokens.

    Until the reset, what is left is what the last reply said, less what is in flight: the server may not have counted
    that yet. What is there after the reset is known from the next reply on. Until then calls follow each other at the
    limit per window, since a burst would be refused wherever the reset was rounded down.
    """

    __slots__ = ("in_flight", "left", "limit", "next", "reset", "window")

    def __init__(self) -> None:
        self.left: float | None = None
        self.limit: float | None = None
        self.reset = self.next = -math.inf
        self.window = 0.0
        """The longest time until a reset that was ever named."""
        self.in_flight = 0.0

    def wait(self, cost: float, now: float) -> float:
        """Seconds until `cost` fits. No call waits for more than one reset, however large it is."""
        if self.left is not None and now >= self.reset:
            self.left = None
        if self.left is None:
            return max(0.0, self.next - now)
        return 0.0 if cost <= self.left else self.reset - now

    def take(self, cost: float, now: float) -> None:
        """Count what a call takes of it."""
        self.in_flight += cost
        if self.left is not None:
            self.left -= cost
        elif self.limit:
            self.next = max(self.next, now) + cost * self.window / self.limit

    def note(
        self, left: int | None, seconds: float | None, limit: int | None, now: float, in_reply: float
    ) -> None:
        """Note what a header says: so much is left of the limit, and in so many seconds it is full again.

        `in_reply` is the part of the call whose reply this is: the server has counted that one.
        """
        if left is None or seconds is None:
            return
        self.left, self.reset = left - max(0.0, self.in_flight - in_reply), now + seconds
        self.limit, self.window = limit, max(self.window, seconds)
