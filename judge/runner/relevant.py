"""Which passages the input `relevant_passages` holds: `--relevant` and what it stands for.

answer            gold calls them ANSWER-THE-QUESTION
answer+related    these, and RELATED-INFORMATION
marked            the data set marks them as relevant (GaRAGe's evidence_relevant is YES)
RUN:answer        a judge's run of garage_relevance calls them so; RUN:answer+related likewise
"""

from __future__ import annotations

from dataclasses import dataclass

from judge.errors import UsageError
from judge.runner.contexts import called, marked
from judge.store.export import find_run
from judge.store.study import Store
from judge.types import GOLD

FIELD = "relevance"
CLASSES = {
    "answer": ("ANSWER-THE-QUESTION",),
    "answer+related": ("ANSWER-THE-QUESTION", "RELATED-INFORMATION"),
}


@dataclass(frozen=True, slots=True)
class RelevantPassages:
    """Item -> its relevant passages. `name` is what the run is told by: a run with other passages is another run."""

    name: str
    passages: dict[str, list[str]]


def relevant(store: Store, text: str) -> RelevantPassages:
    """Read a `--relevant`. Raises UsageError for anything else, and when nothing is relevant."""
    of, colon, kind = text.rpartition(":")
    if kind not in (*CLASSES, "marked") or (colon and (kind == "marked" or not of)):
        raise UsageError(
            f"--relevant '{text}' is answer, answer+related, marked, RUN:answer or RUN:answer+related"
        )
    who, name = GOLD, kind
    if of:
        who = str(find_run(store, of)["run_id"])
        name = f"{who}:{kind}"
    found = (
        marked(store, "evidence_relevant", "YES")
        if kind == "marked"
        else called(store, who, FIELD, CLASSES[kind])
    )
    if not found:
        raise UsageError(f"--relevant {text}: no passage of the study is relevant by that")
    return RelevantPassages(name, found)
