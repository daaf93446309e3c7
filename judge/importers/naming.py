"""Derive names that a file does not give, for data sets, systems, questions and passages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from judge.store.study import content_sha
from judge.types import Passage


def dataset_name(path: Path) -> str:
    """Return the default data set: the file's name without its endings."""
    name = path.name
    # In this order, so that `.jsonl.gz` loses both endings.
    for ending in (".gz", ".jsonl", ".json", ".ndjson", ".csv", ".tsv", ".txt", ".parquet"):
        name = name.removesuffix(ending)
    # A colon separates the data set from the id.
    return name.replace(":", "-") or "data"


def system_name(path: Path) -> str:
    """Return the default system of a file's answers: the file's name, without the characters that join ids."""
    return without_joints(dataset_name(path))


def without_joints(name: str) -> str:
    """Return a name without `@` and `#`, which join the parts of answer ids."""
    return re.sub(r"[@#]", "-", name)


def hashed(parts: list[Any]) -> str:
    """Return a name for something that has none: the first 16 hex digits of the sha256 of the parts as JSON."""
    return content_sha(parts)[:16]


def name_by_content(passage: Passage) -> None:
    """Name a retriever's passage by a hash of the parts that a judge is shown, and keep its own id as meta.

    A passage that has only text gets its name in the store, like every passage without an id.
    """
    if passage.source_id:
        passage.meta["id"] = passage.source_id
    # The same text with another date is other evidence: GaRAGe's class OUTDATED depends on it.
    shown = [passage.title, passage.date, passage.source]
    passage.source_id = hashed([passage.text, *shown]) if any(shown) else ""
