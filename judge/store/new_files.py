"""Write a new study file so that it appears whole or not at all."""

import os
from pathlib import Path

from judge.errors import BadInput


def flush_to_disk(partial: Path) -> None:
    """Flush the file to disk.

    This is done before the file gets its final name, so that a power failure cannot leave an incomplete
    study.
    """
    log = partial.with_name(partial.name + "-wal")
    if log.exists() and log.stat().st_size:
        # Only the file itself is renamed, so rows in the write-ahead log would be lost.
        raise BadInput("the write-ahead log of the new study is not empty", path=str(partial))
    with partial.open("rb") as file:
        os.fsync(file.fileno())


def name_new_file(partial: Path, into: Path) -> None:
    """Rename the file.

    Raises FileExistsError if another process has meanwhile created a file with the new name.
    """
    try:
        os.link(partial, into)
    except FileExistsError:
        raise
    except OSError:
        # Some file systems do not support hard links, such as exFAT and some network file systems.
        if into.exists():
            raise FileExistsError(into) from None
        partial.rename(into)


def remove_partial(partial: Path) -> None:
    for ending in ("", "-wal", "-shm", "-journal"):
        partial.with_name(partial.name + ending).unlink(missing_ok=True)
