"""The beginning and the end of a run: count its units, close it in the study, and handle signals."""

import asyncio
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from judge.errors import StudyError
from judge.runner import writer
from judge.runner.plan import Plan, RunReport
from judge.store import runs, selection
from judge.store.study import BUSY_SECONDS, Store, explain_errors
from judge.types import Json, Status


async def close(store: Store, plan: Plan, report: RunReport, facts: Mapping[str, Json]) -> None:
    """Store the end of the run, with retries while the study is locked. All judgements are already stored."""
    begun = time.monotonic()
    # A user who interrupts a run should not have to wait for a locked study.
    patience = 0.0 if report.interrupted else plan.patience.outage
    # SQLite's own wait would block the event loop, and interrupts would not be handled meanwhile.
    with hardly_waiting(store, writer.BUSY_SECONDS):
        while True:
            try:
                runs.keep_facts(store, report.run_id, facts)
                runs.close_run(store, report.run_id, finished=report.stopped is None)
                return
            except StudyError as error:
                if not error.passing or time.monotonic() - begun >= patience:
                    report.error = report.error or error
                    return
            await asyncio.sleep(writer.AGAIN_SECONDS)


async def count(store: Store, plan: Plan, report: RunReport, begun: asyncio.Event) -> None:
    """Count the units of a large study in a thread, after the run's first calls have been sent."""

    def counted() -> tuple[int, int]:
        with store.clone() as other:
            return selection.count_all(other, plan.task)

    # Counting reads every unit of the study, so it starts only after the first units were sent.
    await begun.wait()
    with explain_errors(store.path):
        units, report.left_out = await asyncio.to_thread(counted)
    report.units = units * plan.repeats


def statuses(store: Store, plan: Plan, run_id: str, repeat: int) -> Mapping[str, int]:
    """Return the number of selected units with each status.

    For a run over all units, the counts stored in the study are returned.
    """
    if plan.selection.is_all:
        return selection.run_statuses(store, run_id, repeat)
    return selection.count_statuses(store, run_id, repeat)


def count_judged(store: Store, plan: Plan, run_id: str) -> int:
    """Return the number of finished judgements of the selected units, summed over all repeats.

    Judgements that failed, or that this plan retries, are not counted.
    """
    again = {"pending", str(Status.FAILED), *plan.retry}
    by_repeat = (statuses(store, plan, run_id, repeat) for repeat in range(plan.repeats))
    return sum(n for each in by_repeat for status, n in each.items() if status not in again)


def count_labelled(store: Store, plan: Plan, run_id: str) -> int:
    """Return the number of selected units that have labels, summed over all repeats."""
    return sum(statuses(store, plan, run_id, repeat)[Status.OK] for repeat in range(plan.repeats))


@contextmanager
def hardly_waiting(store: Store, seconds: float) -> Iterator[None]:
    """Limit the wait for a locked study to this many seconds.

    The wait blocks the event loop and the calls in flight.
    """
    store.conn.execute(f"PRAGMA busy_timeout = {int(1000 * seconds)}")
    try:
        yield
    finally:
        store.conn.execute(f"PRAGMA busy_timeout = {int(1000 * BUSY_SECONDS)}")


class Interrupts:
    """Counts Ctrl-C and SIGTERM until a callback is set. From then on, each signal calls the callback."""

    def __init__(self) -> None:
        self.callback: Callable[[], None] | None = None
        self._early = 0

    def came(self) -> None:
        """Count an interrupt, or call the callback."""
        if self.callback is None:
            self._early += 1
        else:
            self.callback()

    def set_callback(self, callback: Callable[[], None]) -> None:
        """Set the callback, and call it once for each signal already received."""
        self.callback = callback
        for _ in range(self._early):
            callback()


@contextmanager
def interrupts() -> Iterator[Interrupts]:
    """Handle Ctrl-C and SIGTERM in the running event loop while the block runs."""
    loop, caught, handled = asyncio.get_running_loop(), Interrupts(), []
    for sig in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(sig, caught.came)
        except (NotImplementedError, RuntimeError, ValueError):
            # Not in the main thread, or not supported by the platform. Python then handles the signals as usual.
            continue
        handled.append(sig)
    try:
        yield caught
    finally:
        for sig in handled:
            loop.remove_signal_handler(sig)
