"""What a run does at its edges: counts, its end noted in the study, signals."""

import asyncio
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from judge.errors import StudyError
from judge.runner import writer
from judge.runner.plan import Plan, RunReport
from judge.store import runs, selection
from judge.store.study import BUSY_SECONDS, Store, explained
from judge.types import Json, Status


async def close(store: Store, plan: Plan, report: RunReport, facts: Mapping[str, Json]) -> None:
    """Note the run's end, again while the study cannot be written; judgements are all in it by now."""
    begun = time.monotonic()
    patience = 0.0 if report.interrupted else plan.patience.outage
    store.conn.execute(f"PRAGMA busy_timeout = {int(1000 * writer.BUSY_SECONDS)}")
    while True:
        try:
            runs.keep_facts(store, report.run_id, facts)
            runs.close_run(store, report.run_id, finished=report.stopped is None)
            break
        except StudyError as error:
            if not error.passing or time.monotonic() - begun >= patience:
                report.error = report.error or error
                break
        await asyncio.sleep(writer.AGAIN_SECONDS)
    store.conn.execute(f"PRAGMA busy_timeout = {int(1000 * BUSY_SECONDS)}")


async def count(store: Store, plan: Plan, report: RunReport, begun: asyncio.Event) -> None:
    """How many units there are, counted beside the run where it has millions, when its first calls are out."""

    def counted() -> tuple[int, int]:
        with store.clone() as other:
            return selection.count_all(other, plan.task)

    await begun.wait()
    with explained(store.path):
        units, report.left_out = await asyncio.to_thread(counted)
    report.units = units * plan.repeats


def statuses(store: Store, plan: Plan, run_id: str, repeat: int) -> Mapping[str, int]:
    """How the selected units stand; of a run over everything the study keeps the counts."""
    if plan.selection.is_all:
        return selection.run_statuses(store, run_id, repeat)
    return selection.selected_statuses(store, run_id, repeat)


def judged_before(store: Store, plan: Plan, run_id: str) -> int:
    """Selected units, over all repeats, that have a judgement which this plan does not ask for again."""
    again = {"pending", str(Status.FAILED), *plan.retry}
    by_repeat = (statuses(store, plan, run_id, repeat) for repeat in range(plan.repeats))
    return sum(n for each in by_repeat for status, n in each.items() if status not in again)


def labelled(store: Store, plan: Plan, run_id: str) -> int:
    """Selected units, over all repeats, that have labels."""
    return sum(statuses(store, plan, run_id, repeat)[Status.OK] for repeat in range(plan.repeats))


@contextmanager
def hardly_waiting(store: Store) -> Iterator[None]:
    """Who holds the study is not waited for, but for a commit of the run's own."""
    store.conn.execute("PRAGMA busy_timeout = 20")
    try:
        yield
    finally:
        store.conn.execute(f"PRAGMA busy_timeout = {int(1000 * BUSY_SECONDS)}")


class Interrupts:
    """Ctrl-C and SIGTERM: each is told to `told`, and what comes before there is a `told` is told then."""

    def __init__(self) -> None:
        self.callback: Callable[[], None] | None = None
        self._early = 0

    def came(self) -> None:
        """Count an interrupt, or call the callback."""
        if self.callback is None:
            self._early += 1
        else:
            self.callback()

    def tell(self, callback: Callable[[], None]) -> None:
        """Call `callback` from now on, and once for each that has come already."""
        self.callback = callback
        for _ in range(self._early):
            callback()


@contextmanager
def interrupts() -> Iterator[Interrupts]:
    """Take Ctrl-C and SIGTERM here, in the running loop, for as long as the block runs."""
    loop, caught, handled = asyncio.get_running_loop(), Interrupts(), []
    for sig in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(sig, caught.came)
        except (NotImplementedError, RuntimeError, ValueError):
            continue  # not the main thread, or a platform without it: Python's own handling stays
        handled.append(sig)
    try:
        yield caught
    finally:
        for sig in handled:
            loop.remove_signal_handler(sig)
