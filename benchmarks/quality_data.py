"""Labelled pairs for `benchmarks.quality`: balanced samples of public data, each a small study's items.

The files are read where they are and never copied: a folder a data set, rows as its SOURCE.md says.
"""

import hashlib
import html
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge.types import Item, Passage, Row, Vote, Where

Fields = dict[str, Any]


@dataclass(frozen=True)
class Set:
    """One data set for one task: where its rows are, and how a row becomes an item with gold.

    `field` is the task's; `folded` maps labels on those that gold can tell apart (None: all of them).
    """

    name: str
    task: str
    field: str
    path: str
    read: Callable[[Fields], tuple[Fields, str, str]]
    folded: Mapping[str, str] | None = None

    def items(self, folder: Path, units: int) -> list[Row]:
        """About `units` items with one passage each, equally many of every gold label, in a fixed order."""
        path = folder / self.path
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        by_label: dict[str, list[tuple[str, Fields, str]]] = {}
        for number, row in enumerate(rows):
            inputs, passage, label = self.read(row)
            item = {**inputs, "passage": passage, "id": str(row.get("id", number))}
            by_label.setdefault(label, []).append((_shuffled(self.name, item["id"]), item, label))
        each = units // len(by_label)
        chosen = [found for of_label in by_label.values() for found in _spread(of_label, each)]
        return [self._row(item, label, path) for _, item, label in sorted(chosen, key=lambda c: c[0])]

    def _row(self, item: Fields, label: str, path: Path) -> Row:
        question = item.get("claim") or item["question"]
        return Row(
            Item(
                source_id=item["id"],
                dataset=self.name,
                question_id=f"{self.name}:{hashlib.sha256(question.encode()).hexdigest()[:16]}",
                question=item.get("question"),
                claim=item.get("claim"),
                passages=[Passage(item["passage"], "p", votes=[Vote(self.field, label)])],
            ),
            Where(str(path), 0),
        )


def _spread(found: list[tuple[str, Fields, str]], most: int) -> list[tuple[str, Fields, str]]:
    """The first ones, of as many questions as there are."""
    found = sorted(found, key=lambda one: one[0])
    seen: dict[str, int] = {}
    turns = []
    for one in found:
        question = one[1].get("claim") or one[1]["question"]
        turns.append((seen.setdefault(question, 0), one))
        seen[question] += 1
    return [one for _, one in sorted(turns, key=lambda turn: turn[0])[:most]]


def _shuffled(name: str, row: str) -> str:
    return hashlib.sha256(f"{name}\0{row}".encode()).hexdigest()


def _scifact(row: Fields) -> tuple[Fields, str, str]:
    return {"claim": row["claim"]}, row["evidence"], row["label"]


_STANCES = {
    "completely-support": "support",
    "partially-support": "support",
    "refute": "refute",
    "irrelevant": "neutral",
}


def _factcheck(row: Fields) -> tuple[Fields, str, str]:
    return {"claim": row["claim"]}, row["evidence"], _STANCES[row["label"]]


def _on_topic(row: Fields) -> tuple[Fields, str, str]:
    label = "not_relevant" if row["label"] == "irrelevant" else "relevant"
    return {"question": row["claim"]}, row["evidence"], label


def _novel(row: Fields) -> tuple[Fields, str, str]:
    label = "relevant" if int(row["label"]) > 0 else "not_relevant"
    return {"question": row["query"]}, row["passage"], label


def _graded(row: Fields) -> tuple[Fields, str, str]:
    return {"question": row["query"]}, row["passage"], str(row["label"])


def _rte(row: Fields) -> tuple[Fields, str, str]:
    label = "support" if int(row["label"]) else "neutral"
    return {"claim": html.unescape(row["hypothesis"])}, html.unescape(row["text"]), label


SETS = {
    s.name: s
    for s in (
        Set("factcheckgpt", "stance", "stance", "factcheckgpt/stance_pairs.jsonl", _factcheck),
        Set("noveleval", "relevant", "relevant", "noveleval/pairs.jsonl", _novel),
        Set("noveleval_grades", "relevance_graded", "relevance_grade", "noveleval/pairs.jsonl", _graded),
        Set("scifact", "stance", "stance", "scifact/pairs_dev.jsonl", _scifact),
        Set("factcheck_topic", "relevant", "relevant", "factcheckgpt/stance_pairs.jsonl", _on_topic),
        Set(
            "rte",
            "stance",
            "stance",
            "rte_crowd/votes.jsonl",
            _rte,
            # Its gold says entailed or not; whether it is contradicted it does not say.
            {"support": "support", "neutral": "neutral", "refute": "neutral"},
        ),
    )
}
