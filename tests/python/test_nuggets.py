"""Study.nuggets: rows, a DataFrame and a file give the same study, with the same errors."""

from pathlib import Path

import pandas as pd
import pytest

from adjudge import Study
from judge.errors import BadInput, NothingToScore, UsageError
from judge.store import Store

ITEMS = [{"id": "1", "question": "Which river runs through Ulm?"}, {"id": "2", "question": "And Bonn?"}]
ROWS = [
    {"id": "1", "nugget": "the Danube", "importance": "vital", "system": "a", "assignment": "support"},
    {"id": "2", "nugget": "the Rhine", "importance": "okay", "system": "a", "assignment": "not_support"},
]


def study(folder: Path) -> Study:
    made = Study(folder / "x.db")
    made.items(ITEMS, dataset="rivers")
    made.answers([{"id": "1", "system": "a", "text": "The Danube."}, {"id": "2", "system": "a", "text": "?"}])
    return made


def stored(made: Study) -> list[tuple[str, str, str]]:
    with Store.open(made.path) as store:
        query = "SELECT item_id, text, importance FROM nuggets ORDER BY 1"
        return [tuple(row) for row in store.conn.execute(query)]


@pytest.mark.parametrize("kind", ["rows", "frame", "file"])
def test_three_ways_in(kind: str, tmp_path: Path) -> None:
    made = study(tmp_path)
    frame = pd.DataFrame(ROWS)
    file = tmp_path / "n.csv"
    frame.to_csv(file, index=False)
    done = made.nuggets({"rows": ROWS, "frame": frame, "file": file}[kind], annotator="ann")
    assert done.title.startswith("2 new nuggets")
    assert stored(made) == [("rivers:1", "the Danube", "vital"), ("rivers:2", "the Rhine", "okay")]
    assert sorted(made.labels("nugget_assignment")["value"]) == ["not_support", "support"]
    # A second time brings nothing.
    assert made.nuggets({"rows": ROWS, "frame": frame, "file": file}[kind], annotator="ann").title.startswith(
        "0 new"
    )


def test_nuggets_of_a_frame_without_assignments(tmp_path: Path) -> None:
    made = study(tmp_path)
    frame = pd.DataFrame(ROWS).assign(assignment=[None, float("nan")])
    made.nuggets(frame)
    scores = made.suite("nuggets", model="scripted/hash", systems=["a"], progress=False)
    assert "nugget_vital_strict" in set(scores["measure"])


def test_records_of_nuggetizer(tmp_path: Path) -> None:
    made = study(tmp_path)
    made.nuggets([{"qid": "1", "nuggets": [{"text": "the Danube", "importance": "vital"}]}])
    assert stored(made) == [("rivers:1", "the Danube", "vital")]


def test_errors_name_the_row_and_the_argument(tmp_path: Path) -> None:
    made = study(tmp_path)
    bad = [ROWS[0], {**ROWS[1], "importance": "huge"}]
    with pytest.raises(BadInput, match="rows:2: field 'importance': 'huge' must be vital or okay"):
        made.nuggets(bad, judge="m")
    assert stored(made) == []
    with pytest.raises(UsageError, match="pass judge="):
        made.nuggets(ROWS)
    with pytest.raises(UsageError, match="judge= or annotator="):
        made.nuggets(ROWS, judge="m", annotator="ann")
    with pytest.raises(NothingToScore, match=r"study\.nuggets\('FILE'\)"):
        made.scores("nuggets", system="a")
    assert made.nuggets(bad, judge="m", skip_bad=True).notes == [
        "skipped: rows:2: field 'importance': 'huge' must be vital or okay"
    ]
