"""The names that papers use for their conditions.

A condition determines which passages a system sees together with a question.

An imported answer keeps the condition name that its file uses. `judge answers generate` uses different names
for the same conditions: they describe the system's input (`judge.runner.contexts`). `CONDITIONS` maps each
paper's names to the names used by `judge answers generate`. A K in a name matches any number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from judge.paper_files import read_declarations

DOCUMENT = "one document"
"""The value in `CONDITIONS` for conditions in which the system sees only one passage at a time.

Each output is then about that passage.
"""

CONDITIONS: Mapping[str, Mapping[str, str]] = {
    name: declaration["conditions"]
    for name, declaration in read_declarations().items()
    if "conditions" in declaration
}
"""Maps each paper to {the paper's name for a condition: the system's input}. Papers declare them."""
_NUMBER = re.compile(r"(?<=[-:])\d+")
_CONTEXT = re.compile(r"(none|all|fixed5|top:\d+(:.+)?|oracle(:.+)?|misleading(:.+)?)(\+.+)?")


def name_of(paper: str, context: str) -> str:
    """Return the paper's name for a context, or the context itself if the paper has no name for it.

    For example, `top:5` is called `top-5` in RAGuard.
    """
    plain, _, mark = context.partition("+")
    if plain.startswith("top:"):
        # `top:5:NAME:STAGE` also names the ranking, which is not part of the paper's condition.
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
    """Return whether `name` is the name of a condition in the paper or in `judge answers generate`."""
    names = CONDITIONS[paper]
    return _NUMBER.sub("K", condition) in names or _CONTEXT.fullmatch(condition) is not None


def list_conditions(paper: str) -> str:
    """Return the paper's condition names as one string, for use in messages."""
    return ", ".join(CONDITIONS[paper])
