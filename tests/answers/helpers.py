"""The example files that ship, in a study of their own, and units read back."""

from collections.abc import Callable
from typing import Any

from judge.store import Store
from tests.cli.helpers import Done
from tests.real import ROOT
from tests.store.helpers import dump

EXAMPLES = ROOT / "data" / "examples"
Judge = Callable[..., Done]


def rag(judge: Judge) -> None:
    """Three questions with passages; six answers to them by a person and a model; one ranking."""
    judge("items", "import", "jsonl", EXAMPLES / "rag.jsonl")
    judge("systems", "import", EXAMPLES / "answers.jsonl")
    judge("systems", "import", "--stage", "retrieve", EXAMPLES / "first.run")


def column(query: str, *values: Any, db: str = "study.db") -> list[Any]:
    """The first column of a query on the study."""
    with Store.open(db, create=False) as store:
        return [row[0] for row in store.conn.execute(query, values)]


def rows(query: str, *values: Any, db: str = "study.db") -> list[tuple[Any, ...]]:
    """The rows of a query on the study."""
    with Store.open(db, create=False) as store:
        return [tuple(row) for row in store.conn.execute(query, values)]


def contents() -> list[str]:
    """Everything in the study, to compare before and after."""
    with Store.open("study.db") as store:
        return dump(store)
