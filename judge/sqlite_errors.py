"""Explain SQLite's errors: what happened to the study, and what to do next."""

import sqlite3
from pathlib import Path

from judge.commands import command
from judge.errors import StudyError, WriteFailed


def explain(error: sqlite3.DatabaseError, study: Path | str) -> StudyError:
    """Return an error with SQLite's reason and the next step. It is WriteFailed if the disk is full or gone."""
    text = str(error)
    if "full" in text or "disk I/O" in text:
        return WriteFailed(
            f"{study}: {text}: the last batch was not written; free some space and run the same command again",
            passing=True,
        )
    if "locked" in text or "busy" in text:
        return StudyError(
            f"{study}: the study is still locked by another program; try again when that program has finished",
            passing=True,
        )
    if "readonly" in text or "unable to open" in text:
        return StudyError(
            f"{study}: {text}; this command writes to the study, so the file and its folder must be writable: copy the study to another folder"
        )
    if "not a database" in text:
        return StudyError(
            f"{study}: {text}; name a study with -d, or create one: {command('judge items import FORMAT FILE', study='NEW.db')}"
        )
    if "malformed" in text or "corrupt" in text:
        return StudyError(f"{study}: {text}; restore a backup of the study, or try SQLite's .recover")
    return StudyError(
        f"{study}: SQLite reports: {text}; restore a backup of the study, or try SQLite's .recover"
    )
