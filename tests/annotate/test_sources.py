"""What each way of labelling says stays: a batch, an import, votes and decisions do not touch each other's labels."""

import csv
import json
from pathlib import Path

import pytest

from annotate.sitting.desk import Desk
from annotate.store import open_study
from tests.annotate.agreement_helpers import annotate
from tests.cli.helpers import Done
from tests.tui.studies import rows_of


@pytest.fixture
def study(judge: object, tmp_path: Path) -> Path:
    """One item with two passages, whose stance alice labelled in a pilot that was imported."""
    item = {
        "id": "q",
        "claim": "Tea is hot.",
        "passages": [{"id": "a", "text": "It is."}, {"id": "b", "text": "No."}],
    }
    (tmp_path / "items.jsonl").write_text(json.dumps(item) + "\n")
    done: Done = judge("items", "import", "items.jsonl", "--dataset", "d")  # type: ignore[operator]
    assert done.code == 0
    sheet(tmp_path / "pilot.csv", [("d:q/a", "support"), ("d:q/b", "refute")])
    annotate("import", "pilot.csv", "--task", "stance", "--blind", "--new-people")
    return tmp_path / "study.db"


def sheet(path: Path, rows: list[tuple[str, str]], who: str = "alice", **more: str) -> Path:
    """A CSV sheet of stances; `more` are columns that all rows share."""
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["unit", "annotator", "field", "label", *more])
        out.writerows([unit, who, "stance", label, *more.values()] for unit, label in rows)
    return path


def labels(study: Path) -> list[tuple[str, ...]]:
    query = "SELECT unit_id, value, layer, sources FROM labels WHERE annotator_id = 'alice' ORDER BY 1"
    return [
        (*row[:3], ", ".join(s.split(":")[0] for s in json.loads(row[3]))) for row in rows_of(study, query)
    ]


PILOT = [("d:q/a", "support", "first", "import"), ("d:q/b", "refute", "first", "import")]


def test_a_note_and_an_undo_in_a_batch_leave_imported_labels(study: Path) -> None:
    annotate("batches", "new", "main", "stance", "-n", "2", "--annotators", "bob")
    with study.with_name("notes.csv").open("w") as file:
        file.write("unit,annotator,note\nd:q/a,alice,odd\n")
    annotate("import", "notes.csv", "--from", "csv", "--batch", "main", "--new-people")
    assert labels(study) == PILOT
    with open_study(study) as store, Desk.open(store, "main", "alice") as desk:
        position = desk.positions()[0] if hasattr(desk, "positions") else 1
        desk.label(position, "stance", "neutral")
        desk.undo()
    assert labels(study) == PILOT
