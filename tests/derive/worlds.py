"""Planted worlds: studies whose truth, judges and people are drawn, so that what must come out is known.

Everything is written into a real study: items by the importer's own way in, judges as runs that were made elsewhere.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from judge.errors import BadInput
from judge.prompts import load_task
from judge.stats.reliability import softmax as softmax
from judge.store import Store
from judge.store.imports import ImportInfo
from judge.store.items import add_items
from judge.store.runs import add_run
from judge.types import Answered, Item, Judgement, LabelDistribution, Passage, Row, Status, Usage, Vote, Where
from tests.opened import opened

LABELS = ("support", "refute", "neutral")
TASK = "stance"


def draw(n: int, shares: Sequence[float] = (1 / 3, 1 / 3, 1 / 3), seed: int = 0) -> NDArray[np.int64]:
    """The true codes of n units."""
    return np.random.default_rng(seed).choice(len(shares), size=n, p=np.asarray(shares)).astype(np.int64)


def study(
    path: Path,
    truth: NDArray[np.int64],
    *,
    per_question: int = 5,
    gold: bool = True,
    text: Sequence[str] | None = None,
) -> Store:
    """Units `w:0/p0`, `w:0/p1`, ... with their truth as gold; a question has `per_question` units."""
    store = opened(Store.open(path))
    rows = []
    for q in range(0, len(truth), per_question):
        passages = [
            Passage(
                text[u] if text else f"passage number {u} of the world",
                f"p{u - q}",
                votes=[Vote("stance", LABELS[truth[u]])] if gold else [],
            )
            for u in range(q, min(q + per_question, len(truth)))
        ]
        item = Item(
            str(q // per_question), "w", claim=f"Claim number {q // per_question}.", passages=passages
        )
        rows.append(Row(item, Where("world", q + 1)))
    add_items(store, rows, ImportInfo("jsonl", {"world": "0"}, "w"), [], _raise)
    return store


def units(n: int, per_question: int = 5) -> list[str]:
    """The ids of a world's units, in the order of `truth`."""
    return [f"w:{u // per_question}/p{u % per_question}" for u in range(n)]


def judged(
    store: Store,
    model: str,
    probabilities: NDArray[np.float64],
    *,
    per_question: int = 5,
    missing: Mapping[int, Status] | None = None,
    plain: bool = False,
) -> str:
    """A run with these distributions, its labels their argmax; `plain`: labels only. Returns its id."""
    rows = []
    for at, unit in enumerate(units(len(probabilities), per_question)):
        status = (missing or {}).get(at, Status.OK)
        own = probabilities[at]
        masses = None if plain else LabelDistribution(dict(zip(LABELS, own.tolist(), strict=True)), 0.0)
        labels = (Answered("stance", LABELS[int(own.argmax())], masses),) if status is Status.OK else ()
        rows.append(Judgement("", unit, 0, 1, status, None, None, labels, Usage(), None, None))
    with store.transaction() as conn:
        return add_run(conn, load_task(TASK), model, {"mode": "codes", "m": model}, {}, rows)[0]


def logits(
    truth: NDArray[np.int64], signal: float, bias: Sequence[float] = (0, 0, 0), seed: int = 1
) -> NDArray[np.float64]:
    """What a judge feels of each unit: standard normal noise, `signal` more for the true label, a bias for each."""
    noise = np.random.default_rng(seed).normal(size=(len(truth), len(bias)))
    return noise + signal * np.eye(len(bias))[truth] + np.asarray(bias)


def _raise(problem: BadInput) -> None:
    raise problem
