"""Convert an annotator's label distributions from stored JSON objects to arrays of units x labels, and back."""

import json
from collections.abc import Sequence

import numpy as np

from judge.stats.ratings import FloatArray
from judge.store.study import dumps

UNASSIGNED = "unassigned"
CHUNK = 50_000
# Each key of a row becomes one control character, and there are 31 of them without NUL.
MOST_KEYS = 31


def read_distributions(texts: Sequence[str | None], domain: Sequence[str]) -> FloatArray:
    """Return the stored label probabilities as an array of units x labels. A unit without a distribution has a
    row of nan.
    """
    table = np.full((len(texts), len(domain)), np.nan)
    for start in range(0, len(texts), CHUNK):
        rows = [i for i, text in enumerate(texts[start : start + CHUNK], start) if text is not None]
        if rows:
            table[rows] = _parse_masses([text for i in rows if (text := texts[i]) is not None], domain)
    return table


def _parse_masses(texts: list[str], domain: Sequence[str]) -> FloatArray:
    keys = list(json.loads(texts[0]))
    # Almost all rows have one layout. Parsed as one table of numbers they take a fifth of the time of JSON.
    if len(keys) <= MOST_KEYS:
        joined = "".join(texts).encode()
        for at, key in enumerate(keys, 1):
            # A control character, because stored JSON never contains one unescaped.
            joined = joined.replace(f"{dumps(key)}:".encode(), bytes([at]))
        marks = bytes(range(1, len(keys) + 1))
        layout = b"{" + b"}{".join([b",".join(bytes([m]) for m in marks)] * len(texts)) + b"}"
        # Without its numbers, every row must equal this layout: same labels, same order, nothing else.
        if joined.translate(None, b"0123456789.-+eE") == layout:
            plain = joined.translate(None, marks).replace(b"}{", b",")[1:-1]
            flat = np.fromstring(plain.decode(), sep=",")
            if len(flat) == len(texts) * len(keys):
                table = flat.reshape(len(texts), len(keys))
                zeros = np.zeros(len(texts))
                return np.column_stack([table[:, keys.index(d)] if d in keys else zeros for d in domain])
    objects = [json.loads(text) for text in texts]
    return np.array([[float(masses.get(label, 0.0)) for label in domain] for masses in objects])


def write(probabilities: FloatArray, domain: Sequence[str]) -> list[str | None]:
    """Return each row in its stored form, with six significant digits. A row of nan becomes None."""
    names = [dumps(label).replace("%", "%%") for label in domain]
    form = "{" + "".join(f"{name}:%.6g," for name in names) + f'"{UNASSIGNED}":0}}\n'
    texts: list[str | None] = []
    for start in range(0, len(probabilities), CHUNK):
        rows = probabilities[start : start + CHUNK]
        # Formatting many rows at once takes half of the time. Stored JSON contains no line break, so the
        # split is safe.
        texts += (form * len(rows) % tuple(rows.ravel().tolist())).split("\n")[:-1]
    for at in np.flatnonzero(np.isnan(probabilities[:, 0])).tolist():
        texts[at] = None
    return texts
