"""The progress line of a run. It only counts answers that are stored."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from judge.runner import Live

EVERY_SECONDS = 0.2
EVERY_SECONDS_IN_A_LOG = 30.0


class Progress:
    """Rewrites one line on `stream`, or writes a line every 30 s if the stream is not a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._rewrites = stream, stream.isatty()
        self._every = EVERY_SECONDS if self._rewrites else EVERY_SECONDS_IN_A_LOG
        # In a log, the first line comes after the interval, so a short run writes none.
        self._last = 0.0 if self._rewrites else time.monotonic()
        self._shown = False

    def __call__(self, live: Live) -> None:
        """Show the progress of the run, if the interval has passed."""
        now = time.monotonic()
        if now - self._last < self._every:
            return
        self._last = now
        if self._rewrites:
            self._shown = True
            # The code erases the line, because the new text may be shorter.
            self._stream.write("\r\x1b[K" + line(live, now))
        else:
            self._stream.write(line(live, now) + "\n")
        self._stream.flush()

    def end(self) -> None:
        """End the line."""
        if self._shown:
            self._stream.write("\n")
            self._stream.flush()
            self._shown = False


def line(live: Live, now: float) -> str:
    """Return the counts, rate, time left, tokens, failures and concurrency, or the reason why the run is waiting."""
    report = live.report
    # Stored answers took no time, so they do not count in the rate.
    fresh = sum(report.ended.values())
    # Both times may be equal in the first update.
    rate = fresh / max(now - live.started, 1e-9)
    left = f"{duration(report.pending / rate)} left" if rate > 0 and report.units else "…"
    units = f"{report.units:,}" if report.units else "…"
    tokens = report.usage["input_tokens"] + report.usage["output_tokens"]
    cost = f" · ${report.spent.cost:.2f}" if report.price is not None else ""
    bad = fresh - report.ended["ok"]
    return (
        f"{report.done:,}/{units} · {rate:.1f}/s · {left} · {tokens:,} tokens{cost} · "
        f"{bad} without label · {_state(live, now)}"
    )


def _state(live: Live, now: float) -> str:
    patience = duration(live.dispatcher.patience)
    if live.stalled is not None:
        since, error = live.stalled
        return f"writing has failed for {duration(now - since)} (limit {patience}): {error}"
    if (down := live.dispatcher.down_for()) is not None:
        return f"server down for {duration(down[0])} (limit {patience}): {down[1]}"
    gone = sum(server.is_down for server in live.dispatcher.servers)
    calls = f"{live.dispatcher.in_flight} of {live.dispatcher.limit} calls"
    return calls + (f" · {gone} of {len(live.dispatcher.servers)} servers down" if gone else "")


def duration(seconds: float) -> str:
    """Format seconds as h:mm:ss, or as m:ss for less than an hour."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
