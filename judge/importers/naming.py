"""Names of what a file does not name: data sets, systems, questions, passages."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

from judge.store.study import canonical
from judge.types import Passage


def dataset_name(path: Path) -> str:
    """The default dataset: the file's name without its endings."""
    name = path.name
    for ending in (".gz", ".jsonl", ".json", ".ndjson", ".csv", ".tsv", ".txt", ".parquet"):
        name = name.removesuffix(ending)
    return name.replace(":", "-") or "data"


def system_name(path: Path) -> str:
    """The system of a file's answers where nothing names it: the file's name, without what joins ids."""
    return without_joints(dataset_name(path))


def without_joints(name: str) -> str:
    """A name without `@` and `#`, which join the ids of answers and their parts."""
    return re.sub(r"[@#]", "-", name)


def hashed(parts: list[Any]) -> str:
    """The first 16 hex digits of the sha256 of the parts as JSON: the name of what has no other."""
    return hashlib.sha256(canonical(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def name_by_content(passage: Passage) -> None:
    """Name a retriever's passage by what a judge is shown of it, and keep its own id as meta.

    A text alone gets its name in the store, like every passage without an id.
    """
    if passage.source_id:
        passage.meta["id"] = passage.source_id
    shown = [passage.title, passage.date, passage.source]
    passage.source_id = hashed([passage.text, *shown]) if any(shown) else ""
