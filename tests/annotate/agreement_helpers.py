"""The annotate command in this process, tables and studies to measure, and JSON against its schema."""

import csv
import json
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from annotate.drawing.frame import Candidate, Frame
from tests.cli.helpers import schema
from tests.opened import opened
from tests.real import ROOT

VOTES = ROOT / "data" / "examples" / "votes.csv"
EVERYBODY = ("--annotators", "ann,bob,cyd,gpt")
"""Options that count the model of VOTES as one of the annotators, on purpose."""

# Three claims with two passages each. ann and bob label all but one, gold knows four of them.
STUDY = [
    {"id": "1", "claim": "One.", "passages": [("alpha", "support", "support", "support"), ("beta", "refute", "refute", None)]},
    {"id": "2", "claim": "Two.", "passages": [("gamma", "neutral", "refute", "neutral"), ("delta", "support", "support", "refute")]},
    {"id": "3", "claim": "Three.", "passages": [("epsilon", "refute", None, "refute"), ("zeta", "neutral", "neutral", None)]},
]  # fmt: skip
SCRIPT = {"alpha": "support", "beta": "refute", "gamma": "neutral", "delta": "refute", "epsilon": "I cannot say.",
          "zeta": "support"}  # fmt: skip
"""What the judge answers to each passage; epsilon's answer cannot be parsed."""


def annotate(*args: str | Path, code: int = 0) -> Result:
    """`annotate ...`; asserts the exit code and that nothing unexpected was raised."""
    from annotate.cli import main

    return _run(main, args, code)


def judge(*args: str | Path, code: int = 0) -> Result:
    """`judge ...`, likewise."""
    from judge.cli import main

    return _run(main, args, code)


def _run(command: Any, args: Sequence[str | Path], code: int) -> Result:
    result = CliRunner().invoke(command, [str(a) for a in args])
    assert result.exit_code == code, f"{args}: exit {result.exit_code}\n{result.stdout}\n{result.stderr}"
    assert "unexpected" not in result.stderr, result.stderr
    return result


def document(*args: str | Path, code: int = 0) -> Any:
    """The JSON document of `annotate ... --json`, after its schema has passed it."""
    return checked(annotate(*args, "--json", code=code).stdout)


def checked(text: str) -> Any:
    outcome = json.loads(text, parse_constant=_no_constant)
    name = outcome["schema"].split("/")[1]
    validate(outcome, name)
    return outcome


def validate(outcome: Any, name: str) -> None:
    """Raises jsonschema's error when the document is not as its schema says."""
    schema(name).validate(outcome)


def _no_constant(name: str) -> Any:
    raise AssertionError(f"{name} is not JSON")


def values(outcome: Any, *annotators: str) -> dict[str, Any]:
    """measure[ (weights)] -> value, of exactly these annotators (of all measures when none are named)."""
    return {
        m["measure"] + (f" ({m['weights']})" if m["weights"] else ""): m["value"]
        for m in outcome["measures"]
        if not annotators or m["annotators"] == list(annotators)
    }


def write_csv(path: Path, rows: Iterable[Sequence[object]], delimiter: str = ",") -> Path:
    """A table with its header as the first row."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return path


def framed(candidates: Iterable[Candidate]) -> Frame:
    """Candidates to draw from, in a data base of their own."""
    frame = Frame(opened(sqlite3.connect(":memory:")))
    frame.fill(candidates)
    return frame


def make_study(folder: Path, runs: int = 1) -> Path:
    """A study with the votes of STUDY and judge runs that follow SCRIPT."""
    data, script, db = folder / "study.jsonl", folder / "script.jsonl", folder / "study.db"
    rows = []
    for claim in STUDY:
        passages = []
        for text, ann, bob, gold in claim["passages"]:
            votes = {who: vote for who, vote in (("ann", ann), ("bob", bob)) if vote}
            labels = {"gold": {"stance": gold}} if gold else {}
            passage = {"id": text, "text": f"The {text} passage.", "votes": {"stance": votes}}
            passages.append(passage | labels)
        rows.append({"id": claim["id"], "claim": claim["claim"], "passages": passages})
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    judge("items", "import", "jsonl", data, "-d", db)
    lines = []
    for word, reply in SCRIPT.items():
        reply = reply if reply.endswith(".") else json.dumps({"stance": reply})
        lines.append({"match": f"The {word} passage.", "reply": reply})
    script.write_text("".join(json.dumps(line) + "\n" for line in lines))
    model = ("-m", "scripted/file", "--option", f"script={script}", "-d", str(db))
    for number in range(runs):
        order = ("declared", "reversed", "shuffled:1")[number]
        judge("run", "stance", *model, "--label-order", order, code=4)  # 4: epsilon has no label
    return db
