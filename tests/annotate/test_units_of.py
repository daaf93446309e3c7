"""Judge and batch know each other: a batch says which labels its judge lacks, and either can name the other's units."""

import json
import shlex
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from annotate.report import ReportOptions, build
from judge.store import Store
from tests.annotate.agreement_helpers import annotate
from tests.cli.helpers import Judge, write_rows


@pytest.fixture
def study(judge: Judge, tmp_path: Path) -> Path:
    rows = [{"id": f"q{n}", "claim": f"Claim {n}.", "passages": [f"Text {n}."]} for n in range(30)]
    judge("items", "import", write_rows(tmp_path / "d.jsonl", rows))
    judge("run", "stance", "-m", "scripted/hash", "-n", "10")
    return tmp_path / "study.db"


def select(db: Path, query: str, *values: Any) -> list[Any]:
    with closing(sqlite3.connect(db)) as conn:
        return conn.execute(query, values).fetchall()


def test_a_batch_names_the_labels_that_its_judge_lacks_and_the_judge_adds_them(
    judge: Judge, study: Path
) -> None:
    drawn = annotate("batches", "new", "pilot", "stance", "-n", "20", "--annotators", "me", "-d", study)
    lacking = "SELECT count(*) FROM batch_units AS b WHERE NOT EXISTS (SELECT 1 FROM labels AS l WHERE l.unit_id = b.unit_id)"
    ((n,),) = select(study, lacking)
    assert n > 0, "20 of 30 units were drawn, and 10 have a label"
    assert f"scripted/hash has no label for {n} of the 20 drawn units" in drawn.stderr
    command = next(line for line in drawn.stderr.splitlines() if "--units-of" in line)
    assert "judge run stance" in command and "--units-of pilot" in command
    judge("run", "stance", "-m", "scripted/hash", "--units-of", "pilot")
    assert select(study, lacking) == [(0,)]
    # Nothing else was labelled: ten units of before, and those of the batch.
    ((labelled,),) = select(study, "SELECT count(DISTINCT unit_id) FROM labels")
    assert labelled == 10 + n


def test_the_command_repeats_the_settings_of_the_tested_run(judge: Judge, study: Path) -> None:
    """Another setting would make another run, and the tested judge would still lack its labels."""
    judge("run", "stance", "-m", "scripted/hash", "--as", "strict", "--label-order", "reversed", "-n", "3")
    drawn = annotate("batches", "new", "pilot", "stance", "-n", "20", "--annotators", "me", "-d", study)
    line = next(line for line in drawn.stderr.splitlines() if "to label them: judge " in line)
    words = shlex.split(line.partition("to label them: judge ")[2])
    assert ("--as" in words, "--label-order" in words) == (True, True)
    judge(*words)
    runs = "SELECT count(*) FROM runs"
    assert select(study, runs) == [(2,)]
    lacking = (
        "SELECT count(*) FROM batch_units AS b JOIN batch_judges AS t USING (batch) WHERE NOT EXISTS "
        "(SELECT 1 FROM labels AS l WHERE l.unit_id = b.unit_id AND l.annotator_id = t.run_id)"
    )
    assert select(study, lacking) == [(0,)]


def test_the_units_of_a_run_are_a_frame_with_its_failures(judge: Judge, study: Path) -> None:
    with closing(sqlite3.connect(study)) as conn, conn:
        # Three units were asked about and got no label.
        conn.execute("DELETE FROM labels WHERE unit_id IN (SELECT unit_id FROM labels LIMIT 3)")
    out = annotate(
        "batches", "new", "pilot", "stance", "-n", "5", "--annotators", "me", "--units-of", "last", "--json", "-d", study
    )  # fmt: skip
    assert json.loads(out.stdout)["frame"] == 10
    asked = "SELECT count(*) FROM batch_units WHERE unit_id NOT IN (SELECT unit_id FROM judgements)"
    assert select(study, asked) == [(0,)]
    both = ("--units-of", "last", "--where", "1")
    failed = annotate(
        "batches", "new", "two", "stance", "-n", "5", "--annotators", "me", *both, "-d", study, code=2
    )
    assert "--units-of and --where" in failed.stderr


@pytest.mark.parametrize("words", [("--units-of", "nope"), ("--units-of", "x' OR 1 --")])
def test_an_unknown_batch_is_named(judge: Judge, study: Path, words: tuple[str, str]) -> None:
    assert f"no batch '{words[1]}'" in judge("run", "stance", "-m", "scripted/hash", *words, code=2).err


def test_a_report_says_which_labels_the_judge_lacks(judge: Judge, study: Path, tmp_path: Path) -> None:
    annotate("batches", "new", "pilot", "stance", "-n", "20", "--annotators", "me", "-d", study)
    units = [unit for (unit,) in select(study, "SELECT unit_id FROM batch_units")]
    table = tmp_path / "mine.csv"
    table.write_text("unit,annotator,label\n" + "".join(f"{unit},me,support\n" for unit in units), "utf-8")
    annotate("import", table, "--field", "stance", "--batch", "pilot", "--blind", "-d", study)
    with Store.open(study, create=False) as store:
        (box,) = build(store, ReportOptions(batch="pilot")).boxes
    ((lacking,),) = select(
        study,
        "SELECT count(*) FROM batch_units AS b WHERE NOT EXISTS (SELECT 1 FROM labels AS l WHERE l.unit_id = b.unit_id "
        "AND l.annotator_id IN (SELECT run_id FROM runs))",
    )
    assert f"{lacking} of the 20 units" in box.steps[0].text
    assert "--units-of pilot" in box.steps[0].command
