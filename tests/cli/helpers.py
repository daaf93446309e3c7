"""Studies to look at, the real command in a process of its own, and JSON against its schema."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
from referencing import Registry, Resource

from tests.real import ROOT

SCHEMAS = ROOT / "tests" / "schemas"

ROWS: list[dict[str, Any]] = [
    {
        "id": "moon",
        "claim": "Earth has one moon.",
        "note": "meta-1",
        "passages": [
            {"id": "a", "text": "Earth has one natural satellite.", "gold": {"stance": "support"}},
            {"id": "b", "text": "Mars has two small moons.", "gold": {"stance": "neutral"}},
        ],
    },
    {
        "id": "tomato",
        "claim": "Tomatoes are native to Italy.",
        "passages": [
            {"id": "a", "text": "The tomato comes from South America.", "gold": {"stance": "refute"}},
            {"id": "b", "text": "Italy grows many tomatoes.", "gold": {"stance": "neutral"}},
        ],
    },
]
"""Two claims with two passages each, all with gold: four units of `stance`."""


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str


Judge = Callable[..., Done]
"""The fixture `judge`: a command in this process, with the exit code that it must have."""


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]] = ROWS) -> Path:
    """JSON lines."""
    path.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows), encoding="utf-8")
    return path


def script(path: Path, lines: Sequence[tuple[str, str]]) -> Path:
    """A file for scripted/file: (part of the prompt, reply)."""
    text = "".join(json.dumps({"match": match, "reply": reply}) + "\n" for match, reply in lines)
    path.write_text(text, encoding="utf-8")
    return path


def process(
    *args: str | Path, cwd: Path, code: int | None = 0, env: Mapping[str, str] | None = None, **options: Any
) -> subprocess.CompletedProcess[str]:
    """`python -m judge ...` in a process of its own."""
    hidden = {"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "JUDGE_DB", "JUDGE_DEBUG"}
    environment = {k: v for k, v in os.environ.items() if k not in hidden} | dict(env or {})
    done = subprocess.run(
        [sys.executable, "-m", "judge", *map(str, args)],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        **options,
    )
    if code is not None:
        assert done.returncode == code, f"{args}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done


def checked(text: str, name: str) -> Any:
    """The one JSON document in `text`, after its schema `tests/schemas/NAME.json` has passed it."""
    document = json.loads(text, parse_constant=_no_constant)
    schema(name).validate(document)
    assert document["schema"] == f"adjudge/{name}/1"
    return document


@cache
def schema(name: str) -> jsonschema.Draft202012Validator:
    """What `validate`s a document, by its name."""
    own, shared = (json.loads((SCHEMAS / f"{file}.json").read_text("utf-8")) for file in (name, "shared"))
    registry: Registry[Any] = Registry().with_resource("shared.json", Resource.from_contents(shared)).crawl()
    return jsonschema.Draft202012Validator(own, registry=registry)


def _no_constant(name: str) -> Any:
    raise AssertionError(f"{name} is not JSON")
