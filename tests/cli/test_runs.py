"""judge runs: list, show, export."""

import csv
import io
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.helpers import Judge, checked, script, write_rows

# Gold of the four units is support, neutral, refute, neutral; these answers agree on the first three.
REPLIES = [
    ("natural satellite", '{"stance": "support"}'),
    ("Mars", '{"stance": "neutral"}'),
    ("South America", '{"stance": "refute"}'),
    ("Italy grows", '{"stance": "support"}'),
]


@pytest.fixture(autouse=True)
def judged(judge: Judge, tmp_path: Path) -> None:
    judge("items", "import", "jsonl", write_rows(tmp_path / "pairs.jsonl"))
    replies = script(tmp_path / "s.jsonl", REPLIES)
    judge("run", "stance", "-m", "scripted/file", "--option", f"script={replies}")


def test_list(judge: Judge) -> None:
    judge("run", "stance", "-m", "scripted/refuse", "-n", "1", code=4)
    rows = checked(judge("runs", "list", "--json").out, "runs")["rows"]
    assert [(r["model"], r["units"], r["ok"], r["refused"]) for r in rows] == [
        ("scripted/file", 4, 4, 0),
        ("scripted/refuse", 1, 0, 1),
    ]
    assert rows[0]["options"]["temperature"] == 0.0
    assert rows[0]["provider"]["script"] == "file"
    assert "scripted/refuse" in judge("runs", "list").out


def test_show_compares_with_gold(judge: Judge) -> None:
    document = checked(judge("runs", "show", "--json").out, "run_show")
    [field] = document["fields"]
    assert field["labels"] == {"support": 2, "refute": 1, "neutral": 1}
    assert field["n_gold"] == 4
    measures = {m["measure"]: m for m in field["measures"]}
    # Three of four agree. Chance: gold shares .25 .25 .5, judge shares .5 .25 .25 (support, refute,
    # neutral): .125 + .0625 + .125 = .3125, so kappa = (.75 - .3125) / (1 - .3125) = 7/11.
    assert measures["percent"]["value"] == pytest.approx(0.75)
    assert measures["cohen_kappa"]["value"] == pytest.approx(7 / 11)
    # alpha: 8 values, support 3, refute 2, neutral 3: Do = 1/4, De = 1 - (3*2 + 2*1 + 3*2) / (8*7) = 3/4,
    # so alpha = 1 - (1/4) / (3/4) = 2/3.
    assert measures["krippendorff_alpha"]["value"] == pytest.approx(2 / 3)
    assert {(m["n_units"], m["n_clusters"], m["coverage"]) for m in measures.values()} == {(4, 2, 1.0)}
    text = judge("runs", "show").out
    assert "stance (nominal): support 2, refute 1, neutral 1" in text
    assert "0.750" in text
    assert "0.636" in text


def test_units_without_a_label_lower_the_coverage(judge: Judge, tmp_path: Path) -> None:
    replies = script(tmp_path / "half.jsonl", [*REPLIES[:2], ("", "no idea")])
    judge("run", "stance", "-m", "scripted/file", "--option", f"script={replies}", "--seed", "2", code=4)
    [field] = checked(judge("runs", "show", "--json").out, "run_show")["fields"]
    assert field["n_gold"] == 4, "they are not dropped"
    percent = field["measures"][0]
    assert (percent["value"], percent["n_units"], percent["coverage"]) == (1.0, 2, 0.5)


def test_a_run_is_found_by_a_part_of_its_name(judge: Judge) -> None:
    name = json.loads(judge("runs", "show", "--json").out)["run_id"]
    for part in (name, name[:12], name[-6:], name.lower(), "last"):
        assert json.loads(judge("runs", "show", part, "--json").out)["run_id"] == name
    # A shell variable that is not set must not select the only run.
    assert "no run is called ''" in judge("runs", "show", "", code=2).err
    judge("run", "stance", "-m", "scripted/hash", "-n", "1")
    assert "several runs are called '0'" in judge("runs", "show", "0", code=2).err
    missing = judge("runs", "export", "zzz", code=2).err
    assert "no run is called 'zzz'; available runs: " in missing
    assert name in missing


def test_no_runs_yet(judge: Judge, tmp_path: Path) -> None:
    judge("items", "import", "jsonl", tmp_path / "pairs.jsonl", "-d", "new.db")
    assert checked(judge("runs", "list", "--json", "-d", "new.db").out, "runs")["rows"] == []
    assert "no runs yet" in judge("runs", "show", "-d", "new.db", code=2).err
    assert judge("runs", "list", "-d", "new.db").out.startswith("run_id")


def test_label_maps_are_printed_with_the_results(judge: Judge, tmp_path: Path) -> None:
    rows = [{"id": "1", "claim": "c", "passages": [{"text": "t", "gold": {"stance": "SUP", "other": "X"}}]}]
    maps = ["--map-label", "stance:SUP=support", "--map-label", "other:X=y"]
    judge("items", "import", "jsonl", write_rows(tmp_path / "m.jsonl", rows), *maps)
    assert checked(judge("runs", "show", "--json").out, "run_show")["label_maps"] == {
        "stance": {"SUP": "support"}
    }
    assert "labels for 'stance' were mapped on import: {'SUP': 'support'}" in judge("runs", "show").out


def test_gold_outside_the_task_is_left_out_and_said(judge: Judge, tmp_path: Path) -> None:
    rows = [{"id": "1", "claim": "c", "passages": [{"text": "t", "gold": {"stance": "SUP"}}]}]
    judge("items", "import", "jsonl", write_rows(tmp_path / "m.jsonl", rows))
    judge("run", "stance", "-m", "scripted/first")
    [field] = checked(judge("runs", "show", "--json").out, "run_show")["fields"]
    assert (field["n_gold"], field["gold_outside_domain"]) == (4, {"SUP": 1})
    assert "left out: {'SUP': 1}" in judge("runs", "show").err


# --- export


def test_export_as_json_lines(judge: Judge, tmp_path: Path) -> None:
    done = judge("runs", "export")
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert [(r["unit_id"], r["status"], r["labels"]) for r in rows] == [
        ("pairs:moon/a", "ok", {"stance": "support"}),
        ("pairs:moon/b", "ok", {"stance": "neutral"}),
        ("pairs:tomato/a", "ok", {"stance": "refute"}),
        ("pairs:tomato/b", "ok", {"stance": "support"}),
    ]
    assert rows[0]["reply"] == '{"stance": "support"}'
    assert rows[0]["item_id"] == "pairs:moon"
    assert done.err == "4 rows\n"
    assert judge("runs", "export", "-o", "labels.jsonl").out == ""
    assert (tmp_path / "labels.jsonl").read_text("utf-8") == done.out


def test_export_as_csv(judge: Judge, tmp_path: Path) -> None:
    text = judge("runs", "export", "--format", "csv").out
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [r["stance"] for r in rows] == ["support", "neutral", "refute", "support"]
    assert [r["stance.distribution"] for r in rows] == [""] * 4
    assert rows[0]["reply"] == '{"stance": "support"}'
    judge("runs", "export", "-o", "labels.csv")
    assert (tmp_path / "labels.csv").read_text("utf-8") == text, "the name says the format"
    judge("runs", "export", "-o", "labels.txt", "--format", "jsonl")
    assert (tmp_path / "labels.txt").read_text("utf-8").startswith("{"), (
        "or an option where the name says none"
    )


def test_distributions_are_exported(judge: Judge) -> None:
    judge("run", "stance", "-m", "scripted/hash", "--option", "logprobs=1")
    row = json.loads(judge("runs", "export").out.splitlines()[0])
    cell = next(csv.DictReader(io.StringIO(judge("runs", "export", "--format", "csv").out)))
    assert json.loads(cell["stance.distribution"]) == row["distributions"]["stance"]


def test_an_export_of_nothing_has_a_header(judge: Judge, tmp_path: Path) -> None:
    with closing(sqlite3.connect("study.db")) as conn, conn:
        conn.execute("DELETE FROM judgements")
    done = judge("runs", "export", "--format", "csv")
    assert done.out.startswith("run,task,model,unit_id,")
    assert done.out.rstrip().endswith(",stance,stance.distribution")
    assert (done.out.count("\n"), done.err) == (1, "0 rows\n")


def test_an_export_that_fails_leaves_no_file_and_the_old_one_alone(judge: Judge, tmp_path: Path) -> None:
    out = tmp_path / "labels.jsonl"
    out.write_text("old\n")
    bad = write_rows(tmp_path / "bad.jsonl", [{"id": "moon"}, {"no": "id"}])
    done = judge("results", "--join", bad, "-o", out, code=1)
    assert done.err == f"judge: {bad}:2: field 'id': missing\n"
    assert out.read_text() == "old\n"
    assert not list(tmp_path.glob("*.part"))


def test_where_an_export_can_go(judge: Judge, tmp_path: Path) -> None:
    assert (
        "no/such/x.csv.part: No such file or directory"
        in judge("runs", "export", "-o", "no/such/x.csv", code=1).err
    )
    target = tmp_path / "real.jsonl"
    target.write_text("")
    link = tmp_path / "link.jsonl"
    link.symlink_to(target)
    judge("runs", "export", "-o", link)
    assert link.is_symlink(), "a link stays one"
    assert target.read_text("utf-8").count("\n") == 4
    judge("runs", "export", "-o", "/dev/null")
    assert Path("/dev/null").is_char_device(), "and a device too"


def test_a_spreadsheet_does_not_run_what_a_model_writes(judge: Judge, tmp_path: Path) -> None:
    """Formulas get an apostrophe, control characters are escaped; numbers and JSON lines stay as they are."""
    replies = [
        ("satellite", "=HYPERLINK(1)"),
        ("Mars", "\x1b[31mred\x1b[0m"),
        ("South", "-1.5"),
        ("", "@SUM(A1)"),
    ]
    words = ["-m", "scripted/file", "--option", f"script={script(tmp_path / 'f.jsonl', replies)}"]
    judge("run", "stance", *words, code=4)
    rows = list(csv.DictReader(judge("runs", "export", "--format", "csv").out.splitlines()))
    assert [row["reply"] for row in rows] == ["'=HYPERLINK(1)", "\\x1b[31mred\\x1b[0m", "-1.5", "'@SUM(A1)"]
    lines = judge("runs", "export").out.splitlines()
    assert [json.loads(line)["reply"] for line in lines] == [reply for _, reply in replies]


def test_export_parquet(judge: Judge, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    judge("run", "stance", "-m", "scripted/hash", "--option", "logprobs=1")
    judge("runs", "export", "last", "-o", "labels.parquet")
    judge("runs", "export", "last", "-o", "labels.jsonl")
    lines = [json.loads(line) for line in Path("labels.jsonl").read_text("utf-8").splitlines()]
    found = pq.read_table("labels.parquet").to_pylist()
    assert len(found) == len(lines) == 4
    for row, line in zip(found, lines, strict=True):
        assert row["stance"] == line["labels"]["stance"]
        assert row["stance.distribution"] == line["distributions"]["stance"]
        rest = set(line) - {"labels", "distributions"}
        assert {name: row[name] for name in rest} == {name: line[name] for name in rest}
    assert str(pq.read_schema("labels.parquet").field("latency").type) == "double"
    assert not list(tmp_path.glob("*.part"))


def test_parquet_is_written_in_row_groups_and_nothing_of_it_is_escaped(
    judge: Judge, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import pyarrow.parquet as pq

    from judge.cli import run_export

    monkeypatch.setattr(run_export, "ROWS", 3)
    replies = script(
        tmp_path / "f.jsonl", [("Mars", '=1+1 {"stance": "neutral"}'), ("", '{"stance": "refute"}')]
    )
    judge("run", "stance", "-m", "scripted/file", "--option", f"script={replies}", code=None)
    judge("runs", "export", "last", "--to", "parquet", "-o", "labels.pq")
    file = pq.ParquetFile("labels.pq")
    assert [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)] == [3, 1]
    assert next(r for r in file.read().column("reply").to_pylist() if "Mars" in r or "=" in r).startswith(
        "=1+1"
    )


@pytest.mark.parametrize(
    ("words", "endings"),
    [
        (
            ("runs", "export", "-o", "labels.xlsx"),
            ".jsonl, .csv, .parquet, .qrels, or set the format with --to",
        ),
        (("runs", "export", "-o", "labels"), ".jsonl, .csv, .parquet, .qrels"),
        (("distractors", "export", "-o", "questions.xlsx"), ".json, .jsonl"),
        (
            ("score", "garage", "-m", "a", "-m", "b", "--judges", "each", "-o", "board.xlsx"),
            ".html, .md, .tex, .csv",
        ),
        (("compare", "stance", "-o", "page.xlsx"), ".html, .htm"),
        (("route", "stance", "--run", "last", "--agree", "0.9", "-o", "page.xlsx"), ".html, .xml, .md"),
        (("improve", "stance", "-m", "scripted/hash", "-o", "page.xlsx"), ".html, .yaml"),
    ],
    ids=lambda v: v[0] if isinstance(v, tuple) else "",
)
def test_a_file_whose_ending_names_no_format_is_refused(
    judge: Judge, tmp_path: Path, words: tuple[str, ...], endings: str
) -> None:
    """Each of these wrote its own format under a name that says another."""
    done = judge(*words, code=2)
    told = f"{words[-1]}: unknown file extension", f"{words[-1]}: the file extension must be"
    assert any(text in done.err for text in told) and endings in done.err
    assert not (tmp_path / words[-1]).exists()


def test_an_ending_and_an_option_that_differ_are_refused(judge: Judge) -> None:
    assert "-o" in judge("runs", "export", "--to", "parquet", code=2).err
    done = judge("runs", "export", "--to", "jsonl", "-o", "labels.csv", code=2)
    assert "--to is jsonl" in done.err
