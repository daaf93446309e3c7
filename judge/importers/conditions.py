"""The conditions in the papers' protocols: each paper's own name for the input that a system gets with a question.

A stored answer has the condition name from its file. `judge answers generate` names the same conditions after
the system's input (`judge.runner.contexts`): `CONDITIONS` of a paper maps one to the other. A K stands for a
number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

DOCUMENT = "one document"
"""Used in place of a context. The system gets one passage at a time, and each output is about that passage."""

CONDITIONS: Mapping[str, Mapping[str, str]] = {
    "raguard": {"zero-context": "none", "top-K": "top:K", "oracle": DOCUMENT, "misleading": DOCUMENT},
    "mirage": {"base": "none", "oracle": "oracle", "mixed": "fixed5", "retrieved-K": "top:K"},
    "urag": {
        "llm-only": "none",
        "plain": "all",
        "irrelevant": "all+noise:10",
        "self-aware": "all+self-aware",
        "wrong-aware": "all+wrong-aware",
    },
}
"""Maps a paper to a mapping from its name for a condition to the system's input."""
_NUMBER = re.compile(r"(?<=[-:])\d+")
_CONTEXT = re.compile(r"(none|all|fixed5|top:\d+(:.+)?|oracle(:.+)?|misleading(:.+)?)(\+.+)?")


def name_of(paper: str, context: str) -> str:
    """Return the paper's name for a context, or the context itself if it has none: `top:5` is `top-5` in RAGuard."""
    plain, _, mark = context.partition("+")
    if plain.startswith("top:"):
        # `top:5:NAME:STAGE` also names the ranking, which is no part of the paper's condition.
        plain = ":".join(plain.split(":")[:2])
    whole = f"{plain}+{mark}" if mark else plain
    pattern, number = (
        _NUMBER.sub("K", whole, count=1) if whole.startswith("top:") else whole,
        _NUMBER.search(whole),
    )
    paper_name = next((name for name, given in CONDITIONS.get(paper, {}).items() if given == pattern), None)
    if paper_name is None:
        return whole
    return paper_name.replace("K", number[0]) if number else paper_name


def is_known(paper: str, condition: str) -> bool:
    """Return whether a name is one of the paper's conditions or a condition of `judge answers generate`."""
    names = CONDITIONS[paper]
    return _NUMBER.sub("K", condition) in names or _CONTEXT.fullmatch(condition) is not None


def known(paper: str) -> str:
    """Return the paper's names for its conditions, for use in messages."""
    return ", ".join(CONDITIONS[paper])
