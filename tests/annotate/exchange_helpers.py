"""Batches with answers, out through the real command and in again into a copy that has none."""

import json
import shutil
from pathlib import Path
from typing import Any

from annotate.sitting.desk import Desk, TimeSpent
from annotate.store import open_study
from tests.annotate.agreement_helpers import annotate, checked
from tests.tui.studies import batch, build, judge_all, rows_of, three

VALUES = {"relevance": ["relevant", "irrelevant"], "stance": ["support", "refute", "neutral"], "quality": ["good", "bad"]}  # fmt: skip


def study(path: Path, *, task: Any = None, judged: bool = True, **plan: Any) -> Path:
    """Eight claims, a judge's run, gold and meta with canaries, and the batch `pilot` for alice and bob."""
    build(path, items=8)
    if judged:
        judge_all(path)
    plan = {"n": 6, "annotators": ["alice", "bob"], **plan}
    batch(path, task or three(), **plan)
    return path


def empty_copy(path: Path, name: str) -> Path:
    """The study as it is now, under another name (a batch is drawn once, so the copy has the same units)."""
    with open_study(path) as store:
        store.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    copy = path.with_name(name)
    shutil.copy(path, copy)
    return copy


def answer(path: Path, person: str, answers: dict[int, dict[str, str]], **extra: Any) -> None:
    """Label positions at the desk; `extra` may have notes, spans, flags (position -> value) and skips."""
    with open_study(path) as store, Desk.open(store, "pilot", person) as desk:
        for position, given in answers.items():
            for field, value in given.items():
                desk.label(position, field, value, TimeSpent(1500, 0))
        for position, text in extra.get("notes", {}).items():
            desk.note(position, text)
        for position, spans in extra.get("spans", {}).items():
            desk.spans(position, spans)
        for position in extra.get("skips", []):
            desk.skip(position)


def all_labels(path: Path) -> set[tuple[Any, ...]]:
    """Every label of people, with layer and repeat."""
    query = (
        "SELECT unit_id, field, annotator_id, layer, repeat, value FROM labels WHERE annotator_id IN "
        "(SELECT annotator_id FROM annotators WHERE kind = 'human')"
    )
    return set(rows_of(path, query))


def standing(path: Path) -> set[tuple[Any, ...]]:
    """How every position stands, without times."""
    query = (
        "SELECT annotator_id, position, unit_id, status, answers, spans, flag, note, layers FROM assignments"
    )
    return {(*r[:4], _sorted(r[4]), *r[5:]) for r in rows_of(path, query) if r[3] != "open" or r[7]}


def _sorted(text: str) -> str:
    return json.dumps(json.loads(text), sort_keys=True)


def export(path: Path, out: Path, form: str, *args: str, code: int = 0) -> Any:
    """`annotate export pilot --to FORM -o OUT`; the JSON document."""
    done = annotate("export", "pilot", "--to", form, "-o", out, "-d", path, "--json", *args, code=code)
    return checked(done.stdout) if code == 0 else done


def take_in(path: Path, file: Path, form: str, *args: str, code: int = 0, document: bool = False) -> Any:
    """`annotate import FILE --from FORM --batch pilot`; the JSON document, at exit 0 or when it is asked for."""
    done = annotate(
        "import", file, "--from", form, "--batch", "pilot", "-d", path, "--json", *args, code=code
    )
    return checked(done.stdout) if code == 0 or document else done


def write_lines(path: Path, rows: list[Any]) -> Path:
    """A JSON Lines file."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def read_lines(path: Path) -> list[Any]:
    """The rows of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
