"""The one thread that writes judgements: several to a commit, and none counted before its commit."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue

from judge.errors import AdjudgeError, StudyError, WriteFailed
from judge.store.judgements import Entry, add_judgements
from judge.store.study import Store

AGAIN_SECONDS = 1.0
"""Between two tries of a commit that could not be made."""
GATHER_SECONDS = 0.015
"""How long the first queued reply waits for company; its commit starts within 20 ms."""

BUSY_SECONDS = 1.0

Attempts = Sequence[Entry]
"""What is known of one unit at once (a reply and its repair): in one commit, all or nothing."""


class Writer:
    """Commits queued attempts on a connection of its own.

    `acknowledged` runs in the event loop with what each finished commit held. A commit that cannot be
    made for now (the study is locked, the disk full) is tried again for `patience` seconds; `stalled`
    runs in the loop with the error when that begins, and with None when it is over. `failed` runs there
    once, with the error, when a commit fails for good: nothing of that batch, nor of a later one, is
    acknowledged. `unsaved` counts what is queued and not acknowledged.
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
        self._patience, self._on_stalled = patience, stalled
        self._hurried = threading.Event()
        self._store = store
        self._loop = asyncio.get_running_loop()
        self._on_acknowledged, self._on_failed = acknowledged, failed
        self._clock, self._sleep = clock, sleep
        self._queue: SimpleQueue[tuple[float, Attempts] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="adjudge-writer", daemon=True)
        self._thread.start()

    def put(self, attempts: Attempts) -> None:
        """Queue what is to be committed together."""
        self.unsaved += 1
        self._queue.put((self._clock(), attempts))

    def hurry(self) -> None:
        """Try a commit that cannot be made no more than once again."""
        self._hurried.set()

    async def close(self) -> None:
        """Commit what is queued and end the thread."""
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)
        # The last acknowledgement was scheduled by the thread; let the loop run it.
        await asyncio.sleep(0)

    def _work(self) -> None:
        try:
            with self._store.clone() as store:
                # Whoever holds the lock is asked again from here, where the run can be told of it.
                store.conn.execute(f"PRAGMA busy_timeout = {int(1000 * BUSY_SECONDS)}")
                self._commit_all(store)
        except AdjudgeError as e:
            self._tell(self._on_failed, e)
        except Exception as e:
            self._tell(self._on_failed, WriteFailed(f"{self._store.path}: {type(e).__name__}: {e}"))

    def _commit_all(self, store: Store) -> None:
        seen: set[str] = set()
        while (first := self._queue.get()) is not None:
            # One sleep instead of a timed get per reply: the loop's thread is not woken for each.
            # Time that a reply spent waiting for the commit before this one counts.
            waited = self._clock() - first[0]
            if waited < GATHER_SECONDS:
                self._sleep(GATHER_SECONDS - waited)
            batch, closing = self._drain([first[1]])
            self._commit(store, [entry for attempts in batch for entry in attempts], seen)
            self._tell(self._acknowledged, batch)
            if closing:
                return

    def _commit(self, store: Store, entries: list[Entry], seen: set[str]) -> None:
        """One commit, tried until it is made or patience is at its end."""
        first: float | None = None
        while True:
            known = set(seen)
            try:
                with store.transaction() as conn:
                    add_judgements(conn, entries, known)
            except StudyError as error:
                now = self._clock()
                first = now if first is None else first
                hurried = self._hurried.is_set()
                if not error.passing or hurried or now - first >= self._patience:
                    raise
                if now == first:
                    self._tell(self._on_stalled, error)
                self._hurried.wait(min(AGAIN_SECONDS, self._patience / 4))
            else:
                seen |= known
                if first is not None:
                    self._tell(self._on_stalled, None)
                return

    def _drain(self, batch: list[Attempts]) -> tuple[list[Attempts], bool]:
        while True:
            try:
                queued = self._queue.get_nowait()
            except Empty:
                return batch, False
            if queued is None:
                return batch, True
            batch.append(queued[1])

    def _acknowledged(self, batch: list[Attempts]) -> None:
        self.unsaved -= len(batch)
        self._on_acknowledged(batch)

    def _tell(self, callback: Callable[..., None], *values: object) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(callback, *values)
