"""Derive names for data sets, systems, questions and passages that are not named in a file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from judge.store.study import content_sha
from judge.types import Passage


def dataset_name(path: Path) -> str:
    """Return the default name of a data set: the file's name without suffixes."""
    name = path.name
    # .gz is first, so that both suffixes of `.jsonl.gz` are removed.
    for ending in (".gz", ".jsonl", ".json", ".ndjson", ".csv", ".tsv", ".txt", ".parquet"):
        name = name.removesuffix(ending)
    # A colon separates the data set from the id.
    return name.replace(":", "-") or "data"


def system_name(path: Path) -> str:
    """Return the default system name for the answers in a file.

    It is the file's name without the characters that separate the parts of an id.
    """
    return remove_joints(dataset_name(path))


def remove_joints(name: str) -> str:
    """Return a name without `@` and `#`, which separate the parts of answer ids."""
    return re.sub(r"[@#]", "-", name)


def hash_parts(parts: list[Any]) -> str:
    """Return an id derived from content: the first 16 hex digits of the sha256 of the parts as JSON."""
    return content_sha(parts)[:16]


def name_by_content(passage: Passage) -> None:
    """Set the id of a retrieved passage to a hash of the fields that a judge sees.

    The original id is kept in the passage's meta. If the passage has only text, its id is left empty, and the
    store derives an id from the text.
    """
    if passage.source_id:
        passage.meta["id"] = passage.source_id
    # The same text with a different date is different evidence; GaRAGe's class OUTDATED depends on the date.
    shown = [passage.title, passage.date, passage.source]
    passage.source_id = hash_parts([passage.text, *shown]) if any(shown) else ""
