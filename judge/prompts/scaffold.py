"""Generate a first version of a task file, in which each label has a key for human annotators to press."""

import json
from collections.abc import Sequence

from judge.errors import UsageError
from judge.prompts.inputs import INPUTS

_WHAT = {
    "passage": "passage", "item": "question", "answer": "answer", "sentence": "sentence", "citation": "sentence and the passage it cites",
    "claim": "claim", "nugget": "nugget and answer", "pair": "pair of claims",
}  # fmt: skip


def scaffold(
    name: str, unit: str, labels: Sequence[str], inputs: Sequence[str], ordinal: bool = False
) -> str:
    """Return the text of a task file.

    Raises UsageError if an input is not available for the unit, or if the labels are invalid.
    """
    if unknown := [i for i in inputs if i not in INPUTS[unit]]:
        raise UsageError(f"--inputs {unknown[0]}: the unit '{unit}' only has {', '.join(INPUTS[unit])}")
    if len(labels) < 2 or len(set(labels)) < len(labels) or not all(label.strip() for label in labels):
        raise UsageError("--labels: at least two different labels are needed, for example --labels yes,no")
    rows = [
        f"      - {{value: {_quote(label)}, key: {_quote(key)}, meaning: {_quote(f'what makes it {label}')}}}"
        for label, key in zip(labels, _keys(labels), strict=True)
    ]
    noun = _WHAT[unit]
    shown = "\n".join(f"{{{{ {i} }}}}" for i in inputs)
    return f"""---
title: {_quote(f"{name}: one label for each {noun}")}
unit: {unit}
inputs: [{", ".join(inputs)}]
questions:
  - field: {name}
    ask: Which label fits the {noun}?
    level: {"ordinal" if ordinal else "nominal"}
    labels:
{chr(10).join(rows)}
guidelines: |
  Advice for people: where to look first, and what to do if in doubt. Criteria for a label belong in its meaning above.
---
You label each {noun} with one of the labels below. Judge only by what is shown, not by what you know.
<!-- unit -->
{shown}
{{{{ answer_cue }}}}
"""


def _keys(labels: Sequence[str]) -> list[str]:
    """Return one character for each label: its first letter or, if another label uses that letter, another
    character.
    """
    taken: list[str] = []
    for label in labels:
        letters = [c for c in label.lower() if c.isascii() and c.isalnum()]
        # Labels in other scripts have no such letter.
        spare = "abcdefghijklmnopqrstuvwxyz0123456789"
        taken.append(next((c for c in (*letters, *spare) if c not in taken), "?"))
    return taken


def _quote(text: str) -> str:
    """Quote a string so that YAML reads it as a string, whatever the string contains."""
    # JSON strings are YAML strings, and unlike plain YAML they are never read as booleans or numbers.
    return json.dumps(text, ensure_ascii=False)
