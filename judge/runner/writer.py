"""The one thread that writes judgements: several to a commit, and none counted before its commit."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue

from judge.errors import AdjudgeError, WriteFailed
from judge.store.runs import Entry, add_judgements
from judge.store.study import Store

GATHER_SECONDS = 0.015
"""How long the first queued reply waits for company; its commit starts within 20 ms."""


class Writer:
    """Commits queued entries on a connection of its own.

    `acknowledged` runs in the event loop with the entries of each finished commit; `failed` runs
    there once, with the error, when a commit fails: nothing of that batch, nor of a later one, is
    acknowledged.
    """

    def __init__(
        self,
        store: Store,
        acknowledged: Callable[[list[Entry]], None],
        failed: Callable[[AdjudgeError], None],
    ) -> None:
        self._store = store
        self._loop = asyncio.get_running_loop()
        self._acknowledged, self._failed = acknowledged, failed
        self._queue: SimpleQueue[Entry | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="adjudge-writer", daemon=True)
        self._thread.start()

    def put(self, entry: Entry) -> None:
        """Queue one entry."""
        self._queue.put(entry)

    async def close(self) -> None:
        """Commit what is queued and end the thread."""
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)
        # The last acknowledgement was scheduled by the thread; let the loop run it.
        await asyncio.sleep(0)

    def _work(self) -> None:
        try:
            with self._store.clone() as store:
                self._commit_all(store)
        except AdjudgeError as e:
            self._tell(self._failed, e)
        except Exception as e:
            self._tell(self._failed, WriteFailed(f"{self._store.path}: {type(e).__name__}: {e}"))

    def _commit_all(self, store: Store) -> None:
        seen: set[str] = set()
        open_ended = True
        while open_ended:
            first = self._queue.get()
            if first is None:
                return
            # One sleep instead of a timed get per reply: the loop's thread is not woken for each.
            time.sleep(GATHER_SECONDS)
            batch, open_ended = self._drain([first])
            with store.transaction() as conn:
                add_judgements(conn, batch, seen)
            self._tell(self._acknowledged, batch)

    def _drain(self, batch: list[Entry]) -> tuple[list[Entry], bool]:
        while True:
            try:
                entry = self._queue.get_nowait()
            except Empty:
                return batch, True
            if entry is None:
                return batch, False
            batch.append(entry)

    def _tell(self, callback: Callable[..., None], *values: object) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(callback, *values)
