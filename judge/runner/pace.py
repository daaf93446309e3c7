"""How many calls a second a server takes, learnt from the share of them that it refuses.

Single refusals (a busy gateway, one request in twenty) say nothing about the rate; a share that stays
high does. It is found by a cumulative sum (Page 1954, Biometrika 41, 100-115): every refusal adds to a
score, every other ending takes a little off it, and the score crosses its limit only when refusals keep
coming. Calls are then sent one by one at even distances, for a trial a little slower than the server
took them. If the share of refusals stays what it was, the rate is not the reason: the share is the
server's own and lived with. Else the rate is sought between the fastest that went well and the slowest
that did not.
"""

from __future__ import annotations

import math

LIVED_WITH = 0.15
"""Share of refusals that is no sign of a limit while nothing is paced."""
LIVED_WITH_PACED = 0.04
SCORE, SCORE_PACED = 8.0, 3.0
HELPED = 0.4
"""What a slower pace must do for the share, from 0 (nothing) to 1 (what a limit of the rate would)."""
TOO_MUCH = 0.65
"""A larger share is not waited for to the trial's end."""
REFUSES_ALL = 0.9
HURRIED = 24
LONG_SECONDS = 20.0
TRIAL, QUIET, MOST_QUIET = 48, 32, 2048
"""Endings for which a slower pace is tried, after which a faster one is, and at most between two tries."""
NEAR = 0.02
SLOWEST = 1 / 30
SLACK_SECONDS = 0.002
"""What a timer may be late: made up for where the distance between calls is so small that it matters."""


class Pace:
    """The rate of sending, `rate` in calls a second, None = as fast as the level allows."""

    def __init__(self) -> None:
        self.rate: float | None = None
        self.cuts = 0
        self._next = 0.0
        self._background = 0.0
        self._good = 0.0  # the fastest rate that went well
        self._bad = math.inf  # the slowest that did not
        self._trial: tuple[float | None, float, float] | None = None  # pace, rate and share before it
        self._unchanged = 0
        self._most = QUIET
        self._changed = self._since = -math.inf
        self._score = 0.0
        self._sent = self._refused = 0

    def delay(self, now: float) -> float:
        """Seconds until the next call may go."""
        return self._next - now if self.rate is not None and self._next > now else 0.0

    def took(self, now: float) -> None:
        """A call is sent. It counts from now on, because refusals come back long before replies."""
        if not self._sent:
            self._since = now
        self._sent += 1
        self._score = max(0.0, self._score - self._allowed)
        if self.rate is not None:
            gap = 1.0 / self.rate
            late = SLACK_SECONDS if gap < 2 * SLACK_SECONDS else 0.0
            self._next = max(self._next, now - late) + gap

    def ended(self, now: float, sent_at: float, refused: bool) -> bool:
        """A call came back; whether the pace was cut for it. Calls from before the last change are echoes."""
        if sent_at <= self._changed:
            return False
        self._refused += refused
        self._score += refused
        paced = self.rate is not None
        if self._trial is not None:
            return self._tried(now)
        if self._score > self._most_score:
            return self._too_fast(now)
        if not paced:
            self._forget(now)
        elif self._sent >= self._most or (self._sent >= QUIET / 4 and now - self._since > LONG_SECONDS):
            self._faster(now)
        return False

    @property
    def _allowed(self) -> float:
        return self._background + (LIVED_WITH if self.rate is None else LIVED_WITH_PACED)

    @property
    def _most_score(self) -> float:
        """Chance alone takes the score over h with about exp(-2 h allowed / variance): e^-8 here."""
        variance = self._background * (1 - self._background)
        if self.rate is None:
            return SCORE + 4 * variance / LIVED_WITH
        return max(SCORE_PACED, 4 * variance / LIVED_WITH_PACED)

    def _begin(self, now: float) -> None:
        self._changed = self._since = now
        self._score = 0.0
        self._sent = self._refused = 0

    def _forget(self, now: float) -> None:
        """What is lived with may become less again, and old calls say nothing about a new limit."""
        if self._sent >= 256:
            less = self._background - self._refused / self._sent
            if less > LIVED_WITH_PACED:
                self._background -= 0.25 * less
            self._sent = self._refused = 0

    def _too_fast(self, now: float) -> bool:
        if self.rate is not None and self._good < self.rate:
            # A try of something faster: back to what went well.
            self._bad = self.rate
            self._set(self._good, now)
            self._most = self._most_quiet()
            return False
        self._slow_down(now)
        return True

    def _most_quiet(self) -> int:
        near = self._bad < self._good * (1 + 1.5 * NEAR)
        return min(MOST_QUIET, max(4 * QUIET, 2 * self._most)) if near else QUIET

    def _slow_down(self, now: float) -> None:
        self.cuts += 1
        # Calls in flight were sent before the count began, and there may be nothing but those.
        share = min(1.0, self._refused / max(1, self._sent))
        seconds = max(now - self._since, 1e-3)
        came = self._sent / seconds
        before = self.rate
        if before is None:
            self._bad = math.inf
        else:
            came = min(came, before)
            self._bad = before
        self._unchanged = 0
        self._trial = (before, came, share)
        self._set(max(0.95 * came * (1 - share), came / 8), now)

    def _tried(self, now: float) -> bool:
        """Whether to go still slower; else the trial goes on, or ends well, or was for nothing."""
        assert self._trial is not None and self.rate is not None
        before, rate_before, share_before = self._trial
        share = min(1.0, self._refused / max(1, self._sent))
        hopeless = share > TOO_MUCH and self._sent >= HURRIED
        if not hopeless and not self._is_enough(now, share_before):
            return False
        self._most = QUIET
        if share <= self._background + LIVED_WITH_PACED:
            self._trial, self._good = None, self.rate
            self._begin(now)
            return False
        same = abs(_helped(self.rate / rate_before, share_before, share)) < HELPED and share < REFUSES_ALL
        self._unchanged = self._unchanged + 1 if same else 0
        if self._unchanged == 2:
            # Two paces, one less than half of the other, and the share has not moved.
            self._trial, self._background, self._bad = None, share, math.inf
            self._good = before or 0.0
            self._set(before, now)
            return False
        self._bad = self.rate
        self._trial = (before, self.rate, share)
        self._set(self.rate * (0.4 if same else 0.25 if hopeless else 0.95 * (1 - share)), now)
        return True

    def _is_enough(self, now: float, share_before: float) -> bool:
        enough = max(TRIAL, min(256, int(8 / max(share_before, 0.01))))
        return self._sent >= enough or (self._sent >= TRIAL / 3 and now - self._since > LONG_SECONDS)

    def _faster(self, now: float) -> None:
        """The pace went well for long enough: take it, and try a faster one."""
        assert self.rate is not None
        seconds = now - self._since
        if self._sent < 0.7 * self.rate * seconds:
            self._begin(now)  # the level or the feed is what limits
            return
        if self.rate > self._good:
            self._good = self.rate
        if self._bad < self._good * (1 + 1.5 * NEAR):
            # What was too much a while ago may not be any more.
            self._bad = math.inf
            self._set(self._good * (1 + NEAR), now)
            self._most = max(self._most, 4 * QUIET)
        else:
            self._set(min(1.25 * self._good, (self._good + min(self._bad, 1e9)) / 2), now)
            self._most = QUIET

    def _set(self, rate: float | None, now: float) -> None:
        self.rate = None if rate is None else max(rate, SLOWEST)
        self._begin(now)
        if self.rate is not None:
            self._next = min(self._next, now + 1.0 / self.rate)


def _helped(slower: float, before: float, after: float) -> float:
    """What a pace `slower` times the one before has done for the share of refusals: 0 nothing, 1 all.

    A limit of the rate takes as many calls a second as before, so the share taken grows as the rate falls.
    """
    most = min(1 / slower, 1 / max(1 - before, 0.01))
    gained = (1 - after) / max(1 - before, 0.01)
    return math.log(max(gained, 0.01)) / math.log(most) if most > 1 else 1.0
