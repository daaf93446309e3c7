"""How many calls a second a server takes, learnt from the share of them that it refuses.

Single refusals (a busy gateway, one request in twenty) say nothing about the rate; a share that stays
high does. It is found by a cumulative sum (Page 1954, Biometrika 41, 100-115): every refusal adds to a
score, every other call takes a little off it, and the score crosses its limit only when refusals keep
coming. Calls are then sent one by one at even distances, slower and slower, until hardly any is refused,
or until a pace that is a quarter of another has changed nothing (a sequential test, Wald 1945, Annals of
Mathematical Statistics 16, 117-186): then the share is the server's own and lived with. Under a limit the rate follows it from call to call, up a little with each call and down with
each refusal, which holds the share at a target (the weighted up-down method, Kaernbach 1991, Perception
& Psychophysics 49, 227-229). A few refusals are cheaper than slots of the server that nobody fills: calls
that arrive late make refusals too, and slower is no cure for those.
"""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

LIVED_WITH = 0.15
"""Share of refusals that is no sign of a limit while nothing is paced."""
SCORE = 10.0
FEW, SOME, MANY, RECENT = 12, 40, 96, 128
"""Calls of which a share is taken: at least, before a trial, at most in one, and while nothing is tried."""
SURE = 4.6
"""Logarithm of the odds at which a trial is decided (a hundred to one)."""
SLOWER, MUCH_SLOWER = 0.6, 0.25
"""Pace of the first trial against what the server took, and of each further one against the one before."""
CURED = 0.06
"""Share of refusals that lateness alone makes of a pace within the limit."""
REFUSES_ALL = 0.9
"""A share that says nothing but: much slower."""
TARGET, TARGET_NEAR = 0.05, 0.17
"""Share of refusals that a rate is held at; more where a slot that was missed can be tried again at once."""
AGAIN, MOST_AGAIN = 1 / 32, 4
"""Part of the distance between calls after which such a slot is tried again, doubled each time, and how often in a row."""
STEP, FIRST_STEP = 0.04, 0.2
"""What a refusal takes off the rate, as a logarithm; less with each, until it is the smaller one."""
LONG_QUIET, MOST_GROWN = 4.0, 8.0
"""Calls in a row without a refusal, in units of what the target expects, after which steps up grow, and to what."""
LEAP, LEAP_CALLS, LEAP_REFUSED = 2.0, 16, 0.25
"""Now and then a much faster rate is tried for so many calls; it stays when no larger share is refused."""
LEAP_AFTER, LEAP_AFTER_MOST = 128, 4096
"""Calls before the first such try, doubled by each that fails."""
FAR_DOWN = math.log(0.35)
"""A rate that has fallen this far with no effect is put to the trial again."""
SLOWEST = 1 / 30
SLACK_SECONDS = 0.002
"""What a timer may be late: made up for where the distance between calls is so small that it matters."""


class _Share(NamedTuple):
    """Of `counted` calls this share was refused."""

    share: float
    counted: int


class Pace:
    """The rate of sending, `rate` in calls a second, None = as fast as the level allows."""

    def __init__(self) -> None:
        self.rate: float | None = None
        self.cuts = 0
        self._next = 0.0
        self._background = 0.0
        self._changed = -math.inf
        self._score = 0.0
        self._seen = _Calls()
        self._is_trial = self._is_second = False
        self._like: _Share | None = None  # the trial before
        self._is_new = False  # whether the background is yet to be measured on more calls
        # Following a limit
        self._step = STEP
        self._quiet = self._again = 0
        self._to_leap, self._leap_after = 0, LEAP_AFTER
        self._home: float | None = None  # the rate before a leap
        self._fell = 0.0  # logarithm of what the rate has fallen by from where it was in balance

    def delay(self, now: float) -> float:
        """Seconds until the next call may go."""
        return self._next - now if self.rate is not None and self._next > now else 0.0

    def took(self, now: float) -> None:
        """A call is sent."""
        self._seen.sent(now)
        if self.rate is None:
            return
        if not self._is_trial:
            self._up(now)
        gap = 1.0 / self.rate
        late = SLACK_SECONDS if gap < 2 * SLACK_SECONDS else 0.0
        self._next = max(self._next, now - late) + gap

    def ended(self, now: float, sent_at: float, refused: bool) -> bool:
        """A call came back; whether the pace was cut for it. Calls from before the last change are echoes."""
        known = self._seen.ended(now, sent_at, refused)
        if self._is_trial:
            return self._tried(now)
        if self.rate is None:
            return self._is_too_fast(now, known)
        if self._home is not None:
            self._leapt(now)
            return False
        if sent_at <= self._changed:
            return False
        if refused:
            return self._down(now)
        self._again = 0
        return False

    # Is it the rate?

    def _is_too_fast(self, now: float, known: list[bool]) -> bool:
        """Whether it looks so by these calls, while nothing is paced."""
        # Chance alone takes the score over h with about exp(-2 h allowed / variance): e^-10 here.
        most = SCORE + 4 * self._background * (1 - self._background) / LIVED_WITH
        for refused in known:
            self._score = max(0.0, self._score + refused - self._background - LIVED_WITH)
            if self._score > most:
                self._try_slower(now)
                return True
        if self._background and self._seen.counted == RECENT:
            self._learn_background()
        return False

    def _learn_background(self) -> None:
        """What is lived with may become less again; more only while it was measured on few calls."""
        more = self._seen.last(RECENT).share - self._background
        if more < 0:
            self._background += 0.25 * more
        elif self._is_new:
            self._background += min(more, LIVED_WITH / 2)
        self._is_new = False
        self._seen.begin()

    def _try_slower(self, now: float) -> None:
        """Try a pace well below what was taken."""
        came, taken = self._seen.rates(now)
        came = came if self.rate is None else min(came, self.rate)
        self._try(max(SLOWER * min(taken, came), came / 16), now)

    def _try(self, rate: float, now: float) -> None:
        self.cuts += 1
        self._is_trial = True
        self._like = self._seen.last(SOME if self.rate is None else MANY)
        self._set(rate, now)

    def _tried(self, now: float) -> bool:
        """Decide the trial once it can be; whether to go still slower."""
        assert self.rate is not None and self._like is not None
        found, like = self._seen.last(MANY), self._like
        if found.counted < FEW:
            return False
        if found.share >= REFUSES_ALL:
            self._try_slower(now)
            return True
        odds = _odds(like.share, found, self._background)
        if abs(odds) < SURE and found.counted < MANY:
            return False
        if odds < 0:
            self._follow(now)
            return False
        if not self._is_second:
            self._is_second = True
            self._try(MUCH_SLOWER * self.rate, now)
            return True
        counted = like.counted + found.counted
        self._background = (like.share * like.counted + found.share * found.counted) / counted
        self._is_trial, self._is_second, self._is_new = False, False, True
        self._set(None, now)
        return False

    def _set(self, rate: float | None, now: float) -> None:
        self.rate = None if rate is None else max(rate, SLOWEST)
        self._changed, self._score = now, 0.0
        self._seen = _Calls(self._seen.echo, self._seen.typical)
        self._next = now if self.rate is None else max(now, min(self._next, now + 1.0 / self.rate))

    # Following a limit

    def _follow(self, now: float) -> None:
        self._changed = now
        self._is_trial = self._is_second = False
        self._to_leap = self._leap_after = LEAP_AFTER
        self._step, self._quiet, self._again, self._fell = FIRST_STEP, 0, 0, 0.0

    def _target(self, rate: float) -> float:
        own = TARGET_NEAR if self._is_near(rate) else TARGET
        return self._background + (1 - self._background) * own

    def _is_near(self, rate: float) -> bool:
        """Whether refusals come back soon enough for the slot that was missed."""
        return self._seen.typical * rate < 0.5

    def _up(self, now: float) -> None:
        """A call goes out, taken to be answered until it is known to be refused."""
        assert self.rate is not None
        if self._home is not None or now - self._next > 0.5 / self.rate:
            return  # a leap, or the level or the feed is what limits
        self._to_leap -= 1
        if self._to_leap <= 0:
            self._home = self.rate
            self._set(LEAP * self.rate, now)
            return
        self._quiet += 1
        target = self._target(self.rate)
        grown = max(1.0, min(MOST_GROWN, self._quiet * target / LONG_QUIET))
        self._move(self._step * target * grown)

    def _down(self, now: float) -> bool:
        """A call was refused: slower, and where there is time for it, its slot is tried again."""
        assert self.rate is not None
        near = self._is_near(self.rate)
        self._quiet = 0
        self._move(-self._step)
        self._step = max(STEP, 0.8 * self._step)
        if near and self._again < MOST_AGAIN:
            self._next = min(self._next, now + AGAIN * 2**self._again / self.rate)
            self._again += 1
        if self._fell < FAR_DOWN:
            self._try_slower(now)
            return True
        return False

    def _leapt(self, now: float) -> None:
        """Stay at the faster rate, or go back to the one before."""
        assert self._home is not None
        found = self._seen.last(LEAP_CALLS)
        refused = found.share * found.counted > (self._background + LEAP_REFUSED) * LEAP_CALLS
        if not refused and found.counted < LEAP_CALLS:
            return
        if refused:
            self._set(self._home, now)
            self._leap_after = min(LEAP_AFTER_MOST, 2 * self._leap_after)
        self._to_leap = self._leap_after if refused else LEAP_CALLS
        self._home, self._quiet = None, 0

    def _move(self, step: float) -> None:
        assert self.rate is not None
        self.rate = max(SLOWEST, self.rate * math.exp(step))
        self._fell = min(0.0, self._fell + step) if self._step <= STEP else 0.0


def _odds(before: float, found: _Share, background: float) -> float:
    """Logarithm of the odds that a slower pace has changed nothing of the share refused.

    Where less than half was refused, the slower pace is within any limit that did it; else it may be above it yet.
    """
    before = min(0.95, max(before, background + CURED + 0.1))
    more = before - background
    limit = background + (CURED if more < 0.5 else 0.6 * more)
    refused = found.share * found.counted
    taken = found.counted - refused
    return refused * math.log(before / limit) + taken * math.log((1 - before) / (1 - limit))


class _Calls:
    """The last RECENT calls, counted once their refusal would be back."""

    def __init__(self, echo: float = 0.0, typical: float = 0.0) -> None:
        self.echo, self.typical = echo, typical
        """Seconds in which a refusal comes back: at most, and mostly."""
        self._open: deque[float] = deque()
        self._refused_at: set[float] = set()
        self._known: deque[tuple[float, bool]] = deque(maxlen=RECENT)

    @property
    def counted(self) -> int:
        """How many count."""
        return len(self._known)

    def last(self, most: int) -> _Share:
        """Share of refusals of the last ones."""
        known = list(self._known)[-most:]
        return _Share(sum(refused for _, refused in known) / max(1, len(known)), len(known))

    def begin(self) -> None:
        """Count from here."""
        self._known.clear()

    def sent(self, now: float) -> None:
        """A call goes out."""
        self._open.append(now)

    def ended(self, now: float, sent_at: float, refused: bool) -> list[bool]:
        """A call came back. Which calls are known now: whether each was refused, in the order of sending."""
        if refused:
            took = now - sent_at
            self.echo = max(took, 0.95 * self.echo)
            self.typical += 0.1 * (took - self.typical) if self.typical else took
            self._refused_at.add(sent_at)
        known: list[bool] = []
        until = now - 1.5 * self.echo
        while self._open and self._open[0] <= until:
            at = self._open.popleft()
            known.append(at in self._refused_at)
            self._known.append((at, known[-1]))
            self._refused_at.discard(at)
        return known

    def rates(self, now: float) -> tuple[float, float]:
        """Calls a second, of the last ones, that went out and that were taken; a little too high if few were."""
        known = list(self._known)[-SOME:]
        seconds = max(now - known[0][0], 1e-3) if known else 1e-3
        return max(1, len(known)) / seconds, (sum(not refused for _, refused in known) + 1) / seconds
