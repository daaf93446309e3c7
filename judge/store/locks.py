"""File locks between processes: for a run in a study, and for a merge into a new study."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from judge.errors import StudyError

TRIES, AGAIN_SECONDS = 5, 0.02
"""How many times to try to lock a file, and the seconds between two tries."""


def is_locked(path: Path) -> bool:
    """Return whether any process holds the lock on this file."""
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        # A shared lock, so that several processes that only look do not see each other.
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


@contextmanager
def only_here(path: Path, busy: str) -> Iterator[None]:
    """Lock this file for one process. The operating system releases the lock if the process dies.

    Raises StudyError, with the message `busy`, if another process holds the lock.
    """
    try:
        file = _locked(path)
    except BlockingIOError as e:
        raise StudyError(busy) from e
    except OSError as e:
        raise StudyError(f"cannot lock {path}: {e.strerror}") from e
    try:
        yield
    finally:
        # Deleted while still locked: `_locked` recognises a file that was deleted between its open and its
        # lock.
        path.unlink(missing_ok=True)
        os.close(file)


def _locked(path: Path) -> int:
    """Lock the file for this process and return its descriptor.

    Raises BlockingIOError if another process holds the lock.
    """
    tries = TRIES
    while True:
        # Read-only, because a lock file of another user cannot be opened for writing. Locking does not need
        # it.
        file = os.open(path, os.O_RDONLY | os.O_CREAT, 0o666)
        try:
            tries -= 1
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The previous process has deleted the file before it released it. Another process may already
            # have locked a new file of that name, so a lock on the deleted one counts for nothing.
            if path.exists() and os.path.samestat(os.fstat(file), path.stat()):
                return file
        except BlockingIOError:
            if not tries:
                os.close(file)
                raise
            time.sleep(AGAIN_SECONDS)  # `is_locked` in another process locks the file for a moment
        except BaseException:
            os.close(file)
            raise
        os.close(file)
