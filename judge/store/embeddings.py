"""Vectors kept in the study, so that no text is sent twice: one row for a text and what embedded it.

`embedder` is the sha256 of what a vector depends on beside the text (model, server, options).
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from judge.store.inputs import CHUNK
from judge.store.study import canonical
from judge.types import Json

Vectors = NDArray[np.float32]
_STORED = "<f4"


def embedder_sha(description: Mapping[str, Json]) -> str:
    """The name under which the vectors of one embedder are kept."""
    return hashlib.sha256(canonical(dict(description)).encode()).hexdigest()


def text_sha(text: str) -> str:
    """The name of a text, exactly as it is sent."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def known(conn: sqlite3.Connection, embedder: str, shas: Sequence[str]) -> dict[str, int]:
    """Those of these texts that have a vector -> how many numbers it has."""
    found: dict[str, int] = {}
    for some in _chunks(shas):
        query = (
            "SELECT text_sha, length(vector) / 4 FROM embeddings WHERE embedder = ? "
            f"AND text_sha IN ({','.join('?' * len(some))})"
        )
        found.update(conn.execute(query, [embedder, *some]).fetchall())
    return found


def add(conn: sqlite3.Connection, embedder: str, model: str, shas: Sequence[str], vectors: Vectors) -> None:
    """Keep vectors inside the caller's transaction; a text that has one already keeps it."""
    conn.executemany(
        "INSERT OR IGNORE INTO embeddings VALUES (?, ?, ?, ?)",
        [
            (embedder, sha, model, vector.astype(_STORED).tobytes())
            for sha, vector in zip(shas, vectors, strict=True)
        ],
    )


def load(conn: sqlite3.Connection, embedder: str, shas: Sequence[str]) -> Vectors:
    """The vectors of texts that all have one, `[texts, numbers]` in the order given."""
    place: dict[str, list[int]] = {}
    for n, sha in enumerate(shas):
        place.setdefault(sha, []).append(n)
    matrix: Vectors | None = None
    for some in _chunks(list(place)):
        query = (
            "SELECT text_sha, vector FROM embeddings WHERE embedder = ? "
            f"AND text_sha IN ({','.join('?' * len(some))})"
        )
        for sha, stored in conn.execute(query, [embedder, *some]):
            vector = np.frombuffer(stored, dtype=_STORED)
            if matrix is None:
                matrix = np.empty((len(shas), len(vector)), dtype=np.float32)
            matrix[place[sha]] = vector
    return np.empty((0, 0), dtype=np.float32) if matrix is None else matrix


def _chunks(shas: Sequence[str]) -> list[Sequence[str]]:
    return [shas[start : start + CHUNK] for start in range(0, len(shas), CHUNK)]
