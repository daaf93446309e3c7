"""judge compare: the same units, a sealed test, who errs where, and what it costs."""

import csv
import re
from pathlib import Path
from typing import Any

import pytest

from judge.store import Store
from tests.annotate.agreement_helpers import judge
from tests.cli.helpers import checked
from tests.split.worlds import LABELS, add_run, gold, looks, part, planted


def units(questions: int) -> dict[str, int]:
    return {f"study:{q:03}/0": q for q in range(questions)}


def wrong_on(every: int, questions: int) -> dict[str, str]:
    """Right but on every so-many-th question."""
    return {u: gold(q, 0) if q % every else LABELS[(q + 1) % 3] for u, q in units(questions).items()}


@pytest.fixture
def study(tmp_path: Path) -> tuple[Path, list[str]]:
    """60 units, 20 of each label; runs that err on 6 (every tenth), 20 (every third) and 30 (every second)."""
    db = planted(tmp_path, 60)
    prices = ((0.02, 4.0), (0.001, 1.0), (0.002, 0.5))
    runs = [
        add_run(db, f"scripted/every{n}", wrong_on(n, 60), cost=cost, latency=seconds)
        for n, (cost, seconds) in zip((10, 3, 2), prices, strict=True)
    ]
    return db, runs


def compared(db: Path, *options: str) -> Any:
    return checked(judge("compare", "stance", "-d", db, "--json", *options).stdout, "compare")


def test_differences_are_second_minus_first_on_the_same_units(study: tuple[Path, list[str]]) -> None:
    db, runs = study
    result = compared(db)
    assert [r["run"] for r in result["runs"]] == runs
    assert (result["units"], result["questions"], result["units_with_reference"]) == (60, 60, 60)
    assert [round(r["agreement"], 6) for r in result["runs"]] == [0.9, round(2 / 3, 6), 0.5]
    # Every tenth: two errors of each label (0, 30: support; 10, 40: refute; 20, 50: neutral), so its labels are as
    # frequent as gold's: chance 1/3, kappa (.9 - 1/3) / (2/3) = .85. Every third: all 20 support are called refute
    # (0, 40, 20), chance (0 + 20 x 40 + 20 x 20) / 3600 = 1/3, kappa (2/3 - 1/3) / (2/3) = .5.
    assert [round(r["kappa"], 9) for r in result["runs"][:2]] == [0.85, 0.5]
    first = result["pairs"][0]
    assert (
        first["difference"] == pytest.approx(-0.35) and first["low"] < first["difference"] < first["high"] < 0
    )
    assert first["shown"] and first["p"] < first["p_holm"] <= 3 * first["p"]
    # Both err on 0 and 30; the first alone on 10, 20, 40, 50; the second alone on the 18 other multiples of three.
    assert {e["label"]: e["both_wrong"] for e in first["errors"]} == {"support": 2, "refute": 0, "neutral": 0}
    assert [e["only_first_right"] for e in first["errors"]] == [18, 0, 0]
    assert [e["only_second_right"] for e in first["errors"]] == [0, 2, 2]


def test_cost_and_seconds_stand_beside_and_the_front_is_marked(
    study: tuple[Path, list[str]], tmp_path: Path
) -> None:
    db, _ = study
    result = compared(db)
    assert [r["cost_usd_per_unit"] for r in result["runs"]] == pytest.approx([0.02, 0.001, 0.002])
    assert [r["seconds_per_unit"] for r in result["runs"]] == pytest.approx([4.0, 1.0, 0.5])
    # The third is worse than the second and costs more, but is the quickest.
    assert [r["front"] for r in result["runs"]] == [["cost", "seconds"], ["cost", "seconds"], ["seconds"]]
    page = tmp_path / "page.html"
    options = ("--confidence", "0.9", "-o", page, "--units", tmp_path / "units.csv")
    told = judge("compare", "stance", "-d", db, *options).stdout
    assert told.count("90 % interval") == 2 and "intervals by question (90 %)" in page.read_text()
    assert "front: no other run reaches this kappa at a lower cost" in told and "-0.350" in told
    html = page.read_text("utf-8")
    assert "Kappa against US dollars per 1,000 units" in html and "Kappa against seconds" in html
    # The one script sorts tables, and the links lead to parts of the page.
    assert html.count("<script") == 1 and re.findall(r"src=|href=\"[^#]", html) == []
    rows = list(csv.DictReader((tmp_path / "units.csv").read_text("utf-8").splitlines()))
    assert len(rows) == 60 and rows[0]["unit_id"] == "study:000/0" and rows[0]["reference"] == "support"


def test_units_that_one_run_lacks_are_in_no_number_and_counted(tmp_path: Path) -> None:
    db = planted(tmp_path, 40)
    every = wrong_on(4, 40)
    add_run(db, "scripted/all", every)
    add_run(db, "scripted/half", {u: label for u, label in wrong_on(5, 40).items() if int(u[6:9]) < 20})
    result = compared(db)
    assert (result["units"], result["units_with_reference"]) == (20, 40)
    assert [(r["labelled"], r["asked"]) for r in result["runs"]] == [(40, 40), (20, 20)]
    # Of questions 0 to 19 the first errs on 0, 4, 8, 12, 16 and the second on 0, 5, 10, 15.
    assert [r["agreement"] for r in result["runs"]] == [0.75, 0.8]
    assert any(text.startswith("20 of 40 units with a reference") for text in result["notes"])
    assert any("scripted/half" in text and text.endswith(": 20 units") for text in result["notes"])


def test_runs_that_share_nothing_are_refused_with_what_each_has(tmp_path: Path) -> None:
    db = planted(tmp_path, 20)
    add_run(db, "scripted/low", {u: "support" for u, q in units(20).items() if q < 12})
    add_run(db, "scripted/high", {u: "support" for u, q in units(20).items() if q >= 12})
    told = judge("compare", "stance", "-d", db, code=2).stderr
    assert "from every run and from gold" in told and ": 12, " in told and ": 8" in told


def test_the_sealed_test_is_left_out_until_a_look_is_asked_for(study: tuple[Path, list[str]]) -> None:
    db, runs = study
    assert "judge split stance" in judge("compare", "stance", "--part", "test", "-d", db, code=2).stderr
    judge("split", "stance", "-d", db)
    opened = compared(db)
    assert looks(db) == []
    n_test = len(part(db, "test"))
    assert opened["part"] == "open" and opened["units"] == 60 - n_test and opened["look"] is None
    assert any("the sealed test is left out" in text for text in opened["notes"])
    first, second = compared(db, "--part", "test"), compared(db, "--part", "all")
    assert (first["look"], first["level"], first["units"]) == (1, 0.025, n_test)
    assert (second["look"], second["level"], second["units"]) == (2, 0.0125, 60)
    assert any("looked at 2 times" in text for text in second["notes"])
    # The same units, a stricter level: the interval is wider than the one at 95 %.
    assert [look.purpose for look in looks(db)] == ["compare", "compare"]
    # The same question, with the runs in any order, is the look that it was; other runs or other gold are another one.
    named = [word for run in reversed(runs) for word in ("--run", run)]
    again = compared(db, "--part", "test", *named)
    assert (again["look"], again["level"]) == (1, 0.025)
    assert {p["p"] for p in again["pairs"]} == {p["p"] for p in first["pairs"]}
    assert compared(db, "--part", "test", *named[:4])["look"] == 3
    with Store.open(db) as store:
        unit = f"{min(part(db, 'test'))}/0"
        store.conn.execute("UPDATE labels SET value = 'neutral' WHERE unit_id = ?", [unit])
    assert compared(db, "--part", "test")["look"] == 4


def test_a_look_is_logged_before_anything_is_computed(
    study: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    db, runs = study
    judge("split", "stance", "-d", db)
    import judge.improve.contest as module

    def killed(*args: object, **named: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "contest", killed)
    judge("compare", "stance", "--part", "test", "-d", db, code=130)
    [look] = looks(db)
    assert look.runs == tuple(runs) and look.reference == "gold"


def test_what_cannot_be_compared_is_refused(study: tuple[Path, list[str]], tmp_path: Path) -> None:
    db, runs = study
    for options, told in (
        (["--run", runs[0]], "--run must be given at least twice"),
        (["--reference", "nobody"], "has no labels from this reference"),
        (["-o", tmp_path / "page.pdf"], "use one of .html, .htm"),
        (["--field", "stanc"], "has no field 'stanc'"),
    ):
        assert told in judge("compare", "stance", "-d", db, *options, code=2).stderr


def test_markup_in_names_is_text_on_the_page(tmp_path: Path) -> None:
    db = planted(tmp_path, 20)
    add_run(db, "scripted/<script>alert(1)</script>", wrong_on(4, 20))
    add_run(db, "scripted/b", wrong_on(5, 20))
    judge("compare", "stance", "-d", db, "-o", tmp_path / "p.html")
    html = (tmp_path / "p.html").read_text("utf-8")
    assert "<script>alert" not in html and "&lt;script&gt;" in html


def test_without_names_runs_that_label_nothing_of_the_reference_are_left_out(tmp_path: Path) -> None:
    db = planted(tmp_path, 30)
    add_run(db, "scripted/a", wrong_on(4, 30))
    add_run(db, "scripted/b", wrong_on(5, 30))
    with Store.open(db) as store:
        store.conn.execute("DELETE FROM labels WHERE annotator_id = 'gold' AND unit_id < 'study:010'")
    other = add_run(db, "scripted/elsewhere", {u: "support" for u, q in units(30).items() if q < 10})
    result = compared(db)
    assert len(result["runs"]) == 2 and result["units"] == 20
    assert any("scripted/elsewhere" in text and "left out" in text for text in result["notes"])
    runs = [option for run in [*(r["run"] for r in result["runs"]), other] for option in ("--run", run)]
    assert "no unit has labels from every run" in judge("compare", "stance", "-d", db, *runs, code=2).stderr


def test_a_judge_made_of_others_costs_what_they_cost_together(study: tuple[Path, list[str]]) -> None:
    db, runs = study
    judge("panel", "stance", *(option for run in runs for option in ("--run", run)), "-d", db)
    result = compared(db)
    pooled = result["runs"][-1]
    assert pooled["run"] not in runs
    # .02 + .001 + .002 dollars and 4 + 1 + .5 seconds a unit.
    assert pooled["cost_usd_per_unit"] == pytest.approx(0.023) and pooled[
        "seconds_per_unit"
    ] == pytest.approx(5.5)
    # Most of three: wrong where two are: on multiples of 6, and of 10 and 30, which 2 and 3 or 2 and 10 share.
    wrong = {q for q in range(60) if (q % 10 == 0) + (q % 3 == 0) + (q % 2 == 0) >= 2}
    assert pooled["agreement"] == pytest.approx(1 - len(wrong) / 60)


def test_runs_are_named_by_their_models_or_names_too(study: tuple[Path, list[str]]) -> None:
    """A name comes first: one run in 32 has an id that ends in this letter."""
    db, runs = study
    named = add_run(db, runs[0][-1].lower(), wrong_on(4, 60), cost=0.001, latency=1.0)
    result = compared(db, "--run", "scripted/every3", "--run", runs[0][-1].lower())
    assert [r["run"] for r in result["runs"]] == [runs[1], named]
    with Store.open(db) as store:
        store.conn.execute("UPDATE runs SET model = 'scripted/every3' WHERE run_id = ?", [runs[2]])
    done = judge("compare", "stance", "-d", db, "--run", "scripted/every3", "--run", runs[0], code=2)
    assert "several runs are called 'scripted/every3'" in done.stderr


@pytest.mark.parametrize(
    ("option", "name", "endings"),
    [("--units", "units.xlsx", ".csv"), ("--units", "units", ".csv"), ("-o", "page.pdf", ".html, .htm")],
)
def test_a_file_of_another_format_is_a_usage_error_before_the_sealed_test_is_opened(
    study: tuple[Path, list[str]], tmp_path: Path, option: str, name: str, endings: str
) -> None:
    db, _ = study
    judge("split", "stance", "-d", db)
    done = judge("compare", "stance", "--part", "test", option, tmp_path / name, "-d", db, code=2)
    assert name in done.stderr and f"use one of {endings}" in done.stderr
    assert not (tmp_path / name).exists()
    assert looks(db) == []
