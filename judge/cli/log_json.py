"""`judge run --log-json FILE`: what happens to a run, one JSON object a line, for programs that watch many runs.

started, progress (every 10 s), refusals, outage, outage_over, cannot_write, writes_again, ended. Lines hold counts,
addresses and the kinds of errors: no key, no text of a passage, a prompt or a reply, and no message of a server, which
may repeat any of them.
"""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from judge.console import json_text, note, visible
from judge.errors import UsageError

if TYPE_CHECKING:
    from judge.runner import Live
    from judge.runner.plan import RunDisplay

EVERY_SECONDS = 10.0


class Log:
    """Appends to a file; every line is there as soon as it is written. Raises UsageError for a file that cannot be.

    One that cannot be written any more is said once, and the run goes on: its calls are worth more than its log.
    """

    def __init__(
        self, path: Path, task: str, model: str, beside: RunDisplay, every: float = EVERY_SECONDS
    ) -> None:
        try:
            self._file: TextIO = path.open("a", encoding="utf-8", newline="\n")
        except OSError as e:
            raise UsageError(f"--log-json {path}: {e.strerror}") from e
        self._path, self._is_broken, self._beside = path, False, beside
        self._about = {"task": task, "model": model}
        self._every = every
        self._live: Live | None = None
        self._last = 0.0
        self._refused = 0
        self._down: dict[int, float] = {}
        self._stalled: float | None = None

    def __call__(self, live: Live) -> None:
        """Write what has changed since the last call, and show it beside."""
        self._beside(live)
        now = time.monotonic()
        if self._live is None:
            self._live, self._last = live, now
            r = live.report
            self._write(
                "started", run=r.run_id, resumed=r.resumed, units=r.units or None, left_out=r.left_out
            )
        self._changes(live, now)
        if now - self._last >= self._every:
            self._last = now
            self._write("progress", **_counts(live, now))

    def _changes(self, live: Live, now: float) -> None:
        if live.dispatcher.refused > self._refused and now - self._last >= self._every:
            self._write(
                "refusals", refused=live.dispatcher.refused - self._refused, slowed=live.dispatcher.cuts
            )
            self._refused = live.dispatcher.refused
        for number, server in enumerate(live.dispatcher.servers):
            if server.is_down and number not in self._down:
                self._down[number] = now
                self._write("outage", server=server.url, error=_kind(server.error))
            elif not server.is_down and number in self._down:
                seconds = round(now - self._down.pop(number), 1)
                self._write("outage_over", server=server.url, seconds=seconds)
        if live.stalled is not None and self._stalled is None:
            self._stalled = now
            self._write("cannot_write", error=_kind(live.stalled[1]))
        elif live.stalled is None and self._stalled is not None:
            self._write("writes_again", seconds=round(now - self._stalled, 1))
            self._stalled = None

    def ended(self, error: BaseException | None = None) -> None:
        """Write how it ended, and close the file; `error` is what ended it before or beside its report."""
        event: dict[str, Any] = {}
        how = "error" if error is not None else "done"
        if self._live is not None:
            report, dispatcher = self._live.report, self._live.dispatcher
            self._changes(self._live, time.monotonic())
            if dispatcher.refused > self._refused:
                self._write("refusals", refused=dispatcher.refused - self._refused, slowed=dispatcher.cuts)
            event = {
                "run": report.run_id,
                **_counts(self._live, time.monotonic()),
                "labelled": report.labelled,
            }
            error = error or report.error
            how = "interrupted" if report.interrupted else "error" if error is not None else how
            if how == "done" and report.stopped:
                how, event["stopped"] = "stopped", report.stopped
        if error is not None:
            event["error"] = _kind(error)
        self._write("ended", how=how, **event)
        with suppress(OSError):
            self._file.close()

    def end(self) -> None:
        """The progress beside it ends here; the run's report is not made yet."""
        self._beside.end()

    def _write(self, event: str, **values: Any) -> None:
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if self._is_broken:
            return
        try:
            self._file.write(json_text({"at": at, "event": event, **self._about, **values}) + "\n")
            self._file.flush()
        except OSError as e:
            self._is_broken = True
            note(visible(f"note: --log-json {self._path}: {e.strerror}; the run goes on without it"))


def _counts(live: Live, now: float) -> dict[str, Any]:
    report = live.report
    seconds = report.seconds or now - live.started
    fresh = sum(report.ended.values())
    return {
        "units": report.units or None,
        "ended": dict(report.ended),
        "reused": report.reused,
        "pending": report.pending if report.units else None,
        "seconds": round(seconds, 3),
        "rate": round(fresh / seconds, 3) if seconds > 0 else None,
        "calls": live.dispatcher.in_flight,
        "limit": live.dispatcher.limit,
        "tokens": dict(report.usage),
        "cost": None if report.price is None else round(report.spent.cost, 6),
        "lost_calls": report.spent.lost,
    }


def _kind(error: BaseException | None) -> str | None:
    """The class of an error, with the HTTP status where it has one; never its message."""
    if error is None:
        return None
    status = getattr(error, "status", 0)
    return type(error).__name__ + (f" {status}" if isinstance(status, int) and status else "")
