"""Planted worlds: studies whose gold and judges follow a plan."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from judge.prompts import load_task
from judge.store import Store, splits
from judge.store.runs import add_run as add
from judge.types import Answered, Judgement, LabelDistribution, Status, Usage
from tests.annotate.agreement_helpers import judge

LABELS = ("support", "refute", "neutral")


def planted(folder: Path, questions: int, per_question: int = 1, name: str = "study") -> Path:
    """A study of `stance` units with gold labels in turn; unit p of question q is `NAME:q/p`."""
    rows = [
        {
            "id": f"{q:03}",
            "claim": f"Claim {q}.",
            "passages": [
                {"id": str(p), "text": f"Passage {p} of {q}.", "gold": {"stance": gold(q, p)}}
                for p in range(per_question)
            ],
        }
        for q in range(questions)
    ]
    return imported(folder, rows, name)


def imported(folder: Path, rows: Sequence[Mapping[str, Any]], name: str = "study") -> Path:
    """A study of these items."""
    data, db = folder / f"{name}.jsonl", folder / f"{name}.db"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    judge("items", "import", "jsonl", data, "-d", db)
    return db


def one_passage(name: str, claim: str, label: str, **more: Any) -> dict[str, Any]:
    """An item with one passage, of which this is the gold label."""
    passage = {"id": "0", "text": "t", "gold": {"stance": label}}
    return {"id": name, "claim": claim, "passages": [passage], **more}


def part(db: Path, name: str, task: str = "stance") -> set[str]:
    """The questions of a part of the split."""
    with Store.open(db) as store:
        return {q for q, where in splits.questions(store, task).items() if where == name}


def looks(db: Path, task: str = "stance") -> list[splits.Look]:
    """The looks at the sealed test so far."""
    with Store.open(db) as store:
        return splits.looks(store, task)


def gold(q: int, p: int) -> str:
    return LABELS[(q + p) % 3]


def add_run(
    db: Path,
    model: str,
    labels: Mapping[str, str],
    distributions: Mapping[str, Sequence[float]] | None = None,
    task: str = "stance",
    **facts: float,
) -> str:
    """A run as if it had been asked: unit -> label (None: unparsed), and the probabilities of LABELS."""
    result = []
    for unit, label in labels.items():
        masses = (distributions or {}).get(unit)
        shares = LabelDistribution(dict(zip(LABELS, masses, strict=True)), 0.0) if masses else None
        usage = Usage(100, 1, 0)
        answer = (Answered("stance", label, shares),)
        seconds, cost = facts.get("latency"), facts.get("cost")
        result.append(Judgement("", unit, 0, 0, Status.OK, "", None, answer, usage, seconds, None, cost=cost))
    with Store.open(db) as store, store.transaction() as conn:
        run, _ = add(conn, load_task(task), model, {"mode": "codes"}, {}, result)
    return run
