"""The conditions of the papers' protocols: how each paper asks a system, by the paper's own names.

A stored answer has the condition's name as its file gave it. `judge answers generate` names the same conditions after what
the system was given (`judge.runner.contexts`): `contexts` of a paper goes from one to the other. A K stands for a number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

DOCUMENT = "one document"
"""In place of a context: the system is shown one passage at a time, and each output is about a passage."""

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
"""Paper -> the paper's name of a condition -> what the system is given."""
_NUMBER = re.compile(r"(?<=[-:])\d+")
_CONTEXT = re.compile(r"(none|all|fixed5|top:\d+(:.+)?|oracle(:.+)?|misleading(:.+)?)(\+.+)?")


def name_of(paper: str, context: str) -> str:
    """The paper's name of a context, and the context itself where it has none: `top:5` is `top-5` in RAGuard."""
    plain, _, mark = context.partition("+")
    if plain.startswith("top:"):
        plain = ":".join(plain.split(":")[:2])
    whole = f"{plain}+{mark}" if mark else plain
    pattern, number = (
        _NUMBER.sub("K", whole, count=1) if whole.startswith("top:") else whole,
        _NUMBER.search(whole),
    )
    found = next((name for name, given in CONDITIONS.get(paper, {}).items() if given == pattern), None)
    if found is None:
        return whole
    return found.replace("K", number[0]) if number else found


def is_known(paper: str, condition: str) -> bool:
    """Whether a paper has a condition of this name, or it is what `judge answers generate` calls one."""
    names = CONDITIONS[paper]
    return _NUMBER.sub("K", condition) in names or _CONTEXT.fullmatch(condition) is not None


def known(paper: str) -> str:
    """The paper's names of its conditions, for messages."""
    return ", ".join(CONDITIONS[paper])
