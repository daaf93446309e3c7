"""The progress line of a run: on a terminal only, counting what is committed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from judge.runner import Live

EVERY_SECONDS = 0.2


class Progress:
    """Rewrites one line on `stream`; says nothing when that is no terminal."""

    def __init__(self, stream: TextIO, quiet: bool = False) -> None:
        self._stream = stream
        self._on = stream.isatty() and not quiet
        self._last = 0.0
        self._shown = False

    def __call__(self, live: Live) -> None:
        """Show how the run stands, at most five times a second."""
        now = time.monotonic()
        if not self._on or now - self._last < EVERY_SECONDS:
            return
        self._last = now
        self._shown = True
        self._stream.write("\r\x1b[K" + line(live, now))
        self._stream.flush()

    def end(self) -> None:
        """Leave the line."""
        if self._shown:
            self._stream.write("\n")
            self._stream.flush()
            self._shown = False


def line(live: Live, now: float) -> str:
    """done / total, per second, time left, tokens, failures, concurrency."""
    report = live.report
    fresh = sum(report.ended.values())
    rate = fresh / max(now - live.started, 1e-9)
    left = f"{_duration(report.pending / rate)} left" if rate > 0 else "…"
    tokens = report.usage["input_tokens"] + report.usage["output_tokens"]
    cost = f" · ${report.spent.cost:.2f}" if report.price is not None else ""
    bad = fresh - report.ended["ok"]
    return (
        f"{report.done:,}/{report.units:,} · {rate:.1f}/s · {left} · {tokens:,} tokens{cost} · "
        f"{bad} without label · {live.gate.in_flight} of {int(live.gate.limit)} calls"
    )


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
