"""Task files as text, to be changed one key at a time."""

import copy
from pathlib import Path
from typing import Any

import yaml

from judge.prompts import Task, parse_task

STANCE: dict[str, Any] = {
    "title": "Does the passage support the claim?",
    "unit": "passage",
    "inputs": ["claim", "passage"],
    "questions": [
        {
            "field": "stance",
            "labels": [
                {"value": "yes", "key": "y"},
                {"value": "no", "key": "n"},
                {"value": "other", "key": "o"},
            ],
        }
    ],
}
BODY = "You judge evidence.\n<!-- unit -->\n{{ claim }}\n{{ passage }}\n{{ answer_cue }}\n"


def changed(path: str, value: Any) -> dict[str, Any]:
    """STANCE with the value at a dotted path replaced, or removed when it is None."""
    front: Any = copy.deepcopy(STANCE)
    *steps, last = [int(p) if p.isdecimal() else p for p in path.split(".")]
    inner = front
    for step in steps:
        inner = inner[step]
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    return dict(front)


def text(front: dict[str, Any] | str, body: str = BODY) -> str:
    """A task file."""
    head = front if isinstance(front, str) else yaml.safe_dump(front, sort_keys=False, allow_unicode=True)
    return f"---\n{head.rstrip()}\n---\n{body}"


def task(front: dict[str, Any] | None = None, body: str = BODY, name: str = "mine.v1") -> Task:
    """A loaded task."""
    return parse_task(text(front or STANCE, body), f"{name}.md")


def write(folder: Path, name: str, front: dict[str, Any] | str | None = None, body: str = BODY) -> Path:
    """A task file on disk."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.md"
    path.write_text(text(STANCE if front is None else front, body), encoding="utf-8")
    return path
