"""The only thread that writes judgements. It writes several judgements per commit, and counts a judgement
only after its commit.
"""

import asyncio
import math
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue

from judge.errors import AdjudgeError, StudyError, WriteFailed
from judge.store.aside import Aside
from judge.store.judgements import Entry, add_judgements
from judge.store.study import Store

AGAIN_SECONDS = 1.0
"""Seconds before a failed commit is tried again."""
GATHER_SECONDS = 0.015
"""How long the first queued reply waits for others to join its commit, which starts within 20 ms.

The test machine made 6,400 durable commits of single rows per second, and stored 40,000 rows per second in
batches of 10.
"""

LEAST_FREE_BYTES = 16 * 2**20
"""Sending pauses while the study's disk has less free space. Thousands of replies in flight still fit."""
BUSY_SECONDS = 0.25
"""How long a commit waits for a locked study before the run pauses sending."""
LOOK_SECONDS = 0.05
"""While a commit fails: seconds between two checks for newly received replies."""

Attempts = Sequence[Entry]
"""The attempts for one unit that are stored in the same commit, such as a reply and its repair."""


class Writer:
    """Commits queued attempts over its own connection.

    `acknowledged` is called in the event loop with the attempts of each finished commit. A commit that fails
    temporarily (the study is locked, the disk is full) is retried for `patience` seconds. `stalled` is called
    in the loop with the error when the retries begin, and with None when they have succeeded. `failed` is
    called in the loop once, with the error, if a commit fails permanently: nothing in that batch or in a
    later one is acknowledged. `unsaved` counts the units that are queued but not acknowledged.

    If the disk is almost full, `stalled` is called before a commit fails.

    From the first failed commit on, received replies are also written to a file (`judge.store.aside`), so that no
    reply is lost if the run ends or is killed before the study can be written again. If there is no room for the
    file, the writer waits for room, whatever `patience` is, until the user interrupts the run. After `close`,
    `left` describes that file.
    """

    def __init__(
        self,
        store: Store,
        acknowledged: Callable[[list[Attempts]], None],
        failed: Callable[[AdjudgeError], None],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        patience: float = 0.0,
        stalled: Callable[[AdjudgeError | None], None] = lambda error: None,
    ) -> None:
        self.unsaved = 0
        self.left: str | None = None
        self._patience, self._on_stalled = patience, stalled
        self._hurried, self._abandoned = threading.Event(), threading.Event()
        self._low_since: float | None = None
        self._store = store
        self._loop = asyncio.get_running_loop()
        self._on_acknowledged, self._on_failed = acknowledged, failed
        self._clock, self._sleep = clock, sleep
        self._queue: SimpleQueue[tuple[float, Attempts] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="adjudge-writer", daemon=True)
        self._thread.start()

    def add(self, attempts: Attempts) -> None:
        """Queue attempts that are committed together."""
        self.unsaved += 1
        self._queue.put((self._clock(), attempts))

    def hurry(self, *, abandon: bool = False) -> None:
        """Allow a failing commit only one more try, because the run is ending.

        Replies that are only in memory are still kept until there is room, unless the user `abandon`s them.
        """
        if abandon:
            self._abandoned.set()
        self._hurried.set()

    async def close(self) -> None:
        """Commit the queued attempts and end the thread."""
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)
        # The last acknowledgement was scheduled by the thread; let the loop run it.
        await asyncio.sleep(0)

    def _work(self) -> None:
        try:
            with self._store.clone() as store:
                # SQLite's own wait would be silent. Retries from here let the run show that the study is locked.
                store.conn.execute(f"PRAGMA busy_timeout = {int(1000 * BUSY_SECONDS)}")
                self._commit_all(store)
        except AdjudgeError as e:
            self._notify(self._on_failed, e)
        except Exception as e:
            self._notify(self._on_failed, self._wrap(e))

    def _wrap(self, error: Exception) -> WriteFailed:
        return WriteFailed(f"{self._store.path}: {type(error).__name__}: {error}")

    def _commit_all(self, store: Store) -> None:
        seen: set[str] = set()
        while (first := self._take()) is not None:
            # One sleep instead of a timed get per reply: the loop's thread is not woken for each.
            # Time that a reply spent waiting for the commit before this one counts.
            waited = self._clock() - first[0]
            if waited < GATHER_SECONDS:
                self._sleep(GATHER_SECONDS - waited)
            batch, closing = self._drain([first[1]])
            if (error := self._failure(store, batch, seen)) is not None:
                is_committed, closing = self._retry_commit(store, batch, closing, seen, error)
                if not is_committed:
                    return
            self._notify(self._acknowledge, batch)
            if closing:
                return

    def _take(self) -> tuple[float, Attempts] | None:
        """Return the next queued attempts, or None if the queue is closed. Watch the disk while it is almost full."""
        while True:
            self._check_room()
            try:
                return self._queue.get(timeout=None if self._low_since is None else AGAIN_SECONDS)
            except Empty:
                continue

    def _check_room(self) -> None:
        """Pause sending while the study's disk is almost full, so that the replies in flight can be stored."""
        free = shutil.disk_usage(self._store.path.parent).free
        if free >= LEAST_FREE_BYTES:
            if self._low_since is not None:
                self._low_since = None
                self._notify(self._on_stalled, None)
            return
        error = WriteFailed(
            f"{self._store.path}: the disk is almost full ({free / 2**20:.1f} MB free, and a run needs "
            f"{LEAST_FREE_BYTES // 2**20} MB); free some space, and run the same command again",
            passing=True,
        )
        if self._low_since is None:
            self._low_since = self._clock()
            self._notify(self._on_stalled, error)
        elif self._clock() - self._low_since >= self._patience:
            self._low_since = math.inf
            self._notify(self._on_failed, error)

    def _failure(self, store: Store, batch: list[Attempts], seen: set[str]) -> AdjudgeError | None:
        """Commit the batch. Return the error if the commit fails, and None otherwise."""
        # A copy, because the prompts of this commit are not stored after a rollback.
        known = set(seen)
        try:
            with store.transaction() as conn:
                add_judgements(conn, _entries(batch), known)
        except AdjudgeError as error:
            return error
        except Exception as error:
            return self._wrap(error)
        seen |= known
        return None

    def _retry_commit(
        self, store: Store, batch: list[Attempts], closing: bool, seen: set[str], error: AdjudgeError
    ) -> tuple[bool, bool]:
        """Retry the commit until it succeeds or the time for retries is over. Replies received meanwhile join
        it.

        Return whether the commit succeeded, and whether the queue is closed.
        """
        aside = Aside(store.path, batch[0][0].judgement.run_id)
        aside.write(_entries(batch))
        begun = self._clock()
        stalled: AdjudgeError | None = None
        while True:
            is_hurried = self._hurried.is_set()
            passing = isinstance(error, StudyError) and error.passing
            is_over = is_hurried or self._clock() - begun >= self._patience
            # Replies that are only in memory would be lost if the run ended now.
            is_kept = aside.lost is None or self._abandoned.is_set()
            if not passing or (is_over and is_kept):
                break
            aside.write()
            if stalled is None:
                stalled = error
                self._notify(self._on_stalled, error)
            closing = self._wait(min(AGAIN_SECONDS, self._patience / 4), batch, closing, aside)
            failure = self._failure(store, batch, seen)
            if failure is None:
                aside.close(committed=True)
                self._notify(self._on_stalled, None)
                return True, closing
            error = failure
        self._notify(self._on_failed, error)
        # Replies that have not arrived yet are paid for as well.
        while not closing:
            queued = self._queue.get()
            closing = queued is None
            self._set_aside([] if queued is None else [queued[1]], batch, aside)
        aside.close(committed=False)
        answers = f"the received answers of {len(batch):,} units"
        self.left = (
            f"{answers} are in {aside.path.name} beside the study, and the next run stores them"
            if aside.lost is None and aside.path.parent == self._store.path.resolve().parent
            else f"{answers} are in {aside.path}, and the next run stores them"
            if aside.lost is None
            else f"{answers} may be lost: {aside.path}: {aside.lost.strerror}"
        )
        return False, True

    def _wait(self, seconds: float, batch: list[Attempts], closing: bool, aside: Aside) -> bool:
        """Wait before the next try, while new replies join the batch. Return whether the queue is closed."""
        if self._hurried.is_set():
            # The replies are only in memory, so the commit is tried again until there is room.
            time.sleep(LOOK_SECONDS)
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not self._hurried.wait(min(left, LOOK_SECONDS)):
            if not closing:
                more, closing = self._drain([])
                self._set_aside(more, batch, aside)
        return closing

    def _set_aside(self, more: list[Attempts], batch: list[Attempts], aside: Aside) -> None:
        if more:
            batch += more
            aside.write(_entries(more))

    def _drain(self, batch: list[Attempts]) -> tuple[list[Attempts], bool]:
        while True:
            try:
                queued = self._queue.get_nowait()
            except Empty:
                return batch, False
            if queued is None:
                return batch, True
            batch.append(queued[1])

    def _acknowledge(self, batch: list[Attempts]) -> None:
        self.unsaved -= len(batch)
        self._on_acknowledged(batch)

    def _notify(self, callback: Callable[..., None], *values: object) -> None:
        # A run that is cancelled may close its loop while this thread is still in a commit.
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(callback, *values)


def _entries(batch: list[Attempts]) -> list[Entry]:
    return [entry for attempts in batch for entry in attempts]
