"""Label distributions, a column at a time: stored as JSON objects, read and written as arrays units x labels."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import numpy as np

from judge.stats.ratings import FloatArray
from judge.store.study import dumps

UNASSIGNED = "unassigned"
CHUNK = 50_000


def read(texts: Sequence[str | None], domain: Sequence[str]) -> FloatArray:
    """The stored masses of each label, units x labels; a row of nan where a unit has none.

    Rows nearly always have one layout, which is read as a table of numbers: a fifth of the time of JSON.
    """
    found = np.full((len(texts), len(domain)), np.nan)
    for start in range(0, len(texts), CHUNK):
        rows = [i for i, text in enumerate(texts[start : start + CHUNK], start) if text is not None]
        if rows:
            found[rows] = _parsed([text for i in rows if (text := texts[i]) is not None], domain)
    return found


def _parsed(texts: list[str], domain: Sequence[str]) -> FloatArray:
    keys = list(json.loads(texts[0]))
    joined = "".join(texts)
    for at, key in enumerate(keys):
        joined = joined.replace(f"{dumps(key)}:", chr(_PRIVATE + at))
    marks = [chr(_PRIVATE + at) for at in range(len(keys))]
    # Without its numbers every row must be this: same labels, same order, nothing else.
    if joined.translate(_NO_NUMBERS) == "{" + ("}{".join([",".join(marks)] * len(texts))) + "}":
        flat = np.fromstring(
            joined.translate(dict.fromkeys(map(ord, marks))).replace("}{", ",")[1:-1], sep=","
        )
        if len(flat) == len(texts) * len(keys):
            table = flat.reshape(len(texts), len(keys))
            none = np.zeros(len(texts))
            return np.column_stack([table[:, keys.index(d)] if d in keys else none for d in domain])
    every = [json.loads(text) for text in texts]
    return np.array([[float(masses.get(label, 0.0)) for label in domain] for masses in every])


_PRIVATE = 0xE000
"""Where Unicode's characters for private use begin; one in a label only makes for the slower way."""
_NO_NUMBERS = {ord(c): None for c in "0123456789.-+eE"}


def write(probabilities: FloatArray, domain: Sequence[str]) -> list[str | None]:
    """Each row as stored, to six digits; None for a row of nan."""
    names = [dumps(label).replace("%", "%%") for label in domain]
    form = "{" + "".join(f"{name}:%.6g," for name in names) + f'"{UNASSIGNED}":0}}'
    return [None if math.isnan(row[0]) else form % tuple(row) for row in probabilities.tolist()]
