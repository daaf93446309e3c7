"""Locks on files, which prevent two processes from using the same file.

Two kinds of files are locked: the lock file of a run, and the new file that a merge writes.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from judge.errors import StudyError

TRIES, AGAIN_SECONDS = 5, 0.02
"""The number of attempts to lock a file, and the seconds between two attempts."""


def is_locked(path: Path) -> bool:
    """Return whether a process holds the lock on this file."""
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        # A shared lock is used so that processes that only check the lock do not block each other.
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


@contextmanager
def lock_file(path: Path, busy: str) -> Iterator[None]:
    """Lock this file for one process. The operating system releases the lock if the process dies.

    Raises a StudyError with the message `busy` if another process holds the lock.
    """
    try:
        file = _lock(path)
    except BlockingIOError as e:
        raise StudyError(busy) from e
    except OSError as e:
        raise StudyError(f"{path}: cannot lock this file: {e.strerror}") from e
    try:
        yield
    finally:
        # The file is deleted while it is locked. `_lock` recognises a file that was deleted between open
        # and lock.
        path.unlink(missing_ok=True)
        os.close(file)


def _lock(path: Path) -> int:
    """Lock the file for this process and return its descriptor.

    Raises BlockingIOError if another process holds the lock.
    """
    tries = TRIES
    while True:
        # The file is opened read-only, because another user's lock file may not be writable, and locking does
        # not need write access.
        file = os.open(path, os.O_RDONLY | os.O_CREAT, 0o666)
        try:
            tries -= 1
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The previous process deletes the file before it releases the lock. Another process may already
            # have locked a new file of the same name, so a lock on the deleted file has no effect.
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
