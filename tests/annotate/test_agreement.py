"""annotate agreement on tables and studies: published values, undefined ones, what is printed."""

import csv
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from annotate.cli.agreement import agreement
from judge.stats import METRICS, Ratings
from tests.annotate.agreement_helpers import (
    EVERYBODY,
    VOTES,
    annotate,
    document,
    judge,
    make_study,
    values,
    write_csv,
)
from tests.real import require
from tests.stats.published import COHEN, krippendorff_2011, two_annotators

NONE = ("--interval", "none")


def wide(path: Path, ratings: Ratings) -> tuple[str, ...]:
    """The arguments for a table written from Ratings."""
    rows = [
        [unit, *("" if code < 0 else ratings.domain[code] for code in codes)]
        for unit, codes in zip(ratings.units, ratings.codes.tolist(), strict=True)
    ]
    write_csv(path, [["id", *ratings.annotators], *rows])
    return (str(path), "--annotators", ",".join(ratings.annotators))


def labels_of_two(folder: Path, labels: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """The arguments for a table of the labels that a and b gave, one unit a row."""
    rows = [("unit", "a", "b"), *((str(i), *both) for i, both in enumerate(labels))]
    return (str(write_csv(folder / "t.csv", rows)), "--annotators", "a,b")


def measure(outcome: Any, name: str, *annotators: str) -> dict[str, Any]:
    """The first measure of this name, of exactly these annotators."""
    listed: list[dict[str, Any]] = outcome["measures"]
    return next(m for m in listed if m["measure"] == name and m["annotators"] == list(annotators))


# statistics.md, "Reference values".
@pytest.mark.parametrize(
    ("options", "alpha"),
    [
        ((), 0.743421),
        (("--level", "ordinal:1,2,3,4,5"), 0.815388),
        (("--level", "interval"), 0.849107),
        (("--level", "ratio"), 0.797403),
    ],
)
def test_krippendorffs_table(tmp_path: Path, options: tuple[str, ...], alpha: float) -> None:
    table = wide(tmp_path / "t.csv", krippendorff_2011())
    outcome = document("agreement", *table, *options, *NONE)
    assert values(outcome, "A", "B", "C", "D")["krippendorff_alpha"] == pytest.approx(alpha, abs=1e-6)


def test_cohens_table_plain_and_weighted(tmp_path: Path) -> None:
    table = wide(tmp_path / "t.csv", two_annotators(COHEN, 2))
    names = ("cohen_kappa", "cohen_kappa:linear", "cohen_kappa:quadratic")
    asked = [word for name in names for word in ("--measure", name)]
    outcome = values(document("agreement", *table, *asked, *NONE, "--level", "ordinal:a,b,c"), "x", "y")
    assert outcome["cohen_kappa"] == pytest.approx(0.491525, abs=1e-6)
    assert outcome["cohen_kappa (linear)"] == pytest.approx(0.473684, abs=1e-6)
    assert outcome["cohen_kappa (quadratic)"] == pytest.approx(0.454545, abs=1e-6)


def test_the_alphabet_is_not_an_order(tmp_path: Path) -> None:
    # low-mid and mid-high are neighbours, low-high is not; alphabetically high < low < mid.
    table = labels_of_two(tmp_path, [("low", "mid"), ("mid", "high"), ("high", "high"), ("low", "low")])
    asked = ("--measure", "cohen_kappa:linear", *NONE)
    right = document("agreement", *table, *asked, "--level", "ordinal:low,mid,high")
    # Disagreement by |i - j| / 2: observed (1/2 + 1/2) / 4 = 1/4. Margins a: low 2, mid 1, high 1; b: low 1, mid 1,
    # high 2. Expected: (2 (0 + 1/2 + 2) + 1 (1/2 + 0 + 1) + 1 (1 + 1/2 + 0)) / 16 = 8/16. kappa = 1 - (1/4)/(1/2).
    assert values(right, "a", "b")["cohen_kappa (linear)"] == pytest.approx(0.5)
    refused = annotate("agreement", *table, *asked, code=2).stderr
    assert "cohen_kappa:linear needs ordered labels" in refused
    assert "ordinal:LOW,...,HIGH" in annotate("agreement", *table, "--level", "ordinal", code=2).stderr


def test_everything_about_the_example(tmp_path: Path) -> None:
    outcome = document("agreement", VOTES, "--judge", "gpt")
    (field,) = outcome["fields"]
    kinds = {row["annotator"]: row["kind"] for row in field["annotators"]}
    assert kinds == {"ann": "human", "bob": "human", "cyd": "human", "gpt": "judge", "majority": "majority"}
    assert field["reference"] == "majority" and (field["n_units"], field["n_clusters"]) == (40, 20)
    assert [g["title"] for g in field["groups"]] == ["people", "people and judges"]
    compared = {tuple(m["annotators"]) for m in outcome["measures"] if m["measure"] == "cohen_kappa"}
    people = {("ann", "bob"), ("ann", "cyd"), ("bob", "cyd")}
    assert compared == people | {("gpt", who) for who in ("ann", "bob", "cyd", "majority")}
    # By hand from the file: gpt has no label on two units, and cyd was not asked about six.
    pair = measure(outcome, "percent", "gpt", "cyd")
    rows = list(csv.DictReader(VOTES.read_text("utf-8").splitlines()))
    by_hand = {(r["unit"], r["annotator"]): r["label"] for r in rows}
    shared = [u for u, who in by_hand if who == "cyd"]
    both = [u for u in shared if by_hand[u, "gpt"]]
    assert pair["n_units"] == len(both) and pair["coverage"] == len(both) / len(shared)
    assert pair["value"] == sum(by_hand[u, "gpt"] == by_hand[u, "cyd"] for u in both) / len(both)
    (matrix,) = field["confusions"]
    assert (matrix["reference"], matrix["predicted"]) == ("majority", "gpt")
    kappa = measure(outcome, "cohen_kappa", "gpt", "majority")
    cells = np.array(matrix["matrix"])
    p_o, p_e = np.trace(cells) / cells.sum(), cells.sum(0) @ cells.sum(1) / cells.sum() ** 2
    assert kappa["value"] == pytest.approx((p_o - p_e) / (1 - p_e))
    assert kappa["low"] < kappa["value"] < kappa["high"] and kappa["n_clusters"] == 20
    assert any("with fewer than 50" in note for note in kappa["notes"])


def test_clusters_widen_the_interval(tmp_path: Path) -> None:
    # Ten questions of twenty units: within a question both agree on all or on none of them.
    rows = [("unit", "question", "a", "b")]
    for i in range(200):
        label = "xy"[i % 2]
        rows.append((f"{i:03}", str(i // 20), label, label if i // 20 % 3 else "yx"[i % 2]))
    table = (write_csv(tmp_path / "t.csv", rows), "--annotators", "a,b", "--measure", "percent")

    def width(*options: str) -> float:
        percent = measure(document("agreement", *table, *options), "percent", "a", "b")
        return float(percent["high"] - percent["low"])

    assert width() > 3 * width("--cluster", "none"), "question is a usual name"
    assert width("--confidence", "0.8") < width() == width("--cluster", "question")


def test_both_kinds_of_interval_can_be_asked_for() -> None:
    def bounds(*options: str) -> list[tuple[float | None, float | None]]:
        outcome = document("agreement", VOTES, *EVERYBODY, *options)["measures"]
        return [(m["low"], m["high"]) for m in outcome if m["measure"] == "krippendorff_alpha"]

    assert bounds() != bounds("--interval", "percentile")
    assert set(bounds(*NONE)) == {(None, None)}


UNDEFINED = {
    "one class": ([("x", "x"), ("x", "x")], "every label is 'x'", 1.0),
    "no overlap": ([("x", ""), ("", "y")], "no unit is labelled by both 'a' and 'b'", None),
    "a constant annotator": ([("x", "x"), ("x", "y")], "'a' used only the label 'x'", 0.5),
}


@pytest.mark.parametrize("case", UNDEFINED)
def test_what_is_undefined_has_its_reason_in_words(tmp_path: Path, case: str) -> None:
    rows, reason, percent = UNDEFINED[case]
    table = (*labels_of_two(tmp_path, rows), "--level", "nominal:x,y")
    outcome = {m["measure"]: m for m in document("agreement", *table)["measures"]}
    assert outcome["cohen_kappa"]["value"] is None and outcome["cohen_kappa"]["low"] is None
    assert outcome["cohen_kappa"]["reason"].startswith(reason)
    assert outcome["percent"]["value"] == percent
    printed = annotate("agreement", *table).stdout
    assert f"undefined: {reason}" in printed
    assert "nan" not in printed.casefold()
    failed = annotate("agreement", *table, "--fail-under", "cohen_kappa=-1", code=5)
    assert "cohen_kappa between a and b on 'label' is undefined: " in failed.stderr
    assert failed.stdout == printed, "the numbers come first, then the failure"


def test_the_label_nan_is_a_label(tmp_path: Path) -> None:
    table = labels_of_two(tmp_path, [("nan", "nan"), ("NA", "NA"), ("None", "nan"), ("", "nan")])
    outcome = document("agreement", *table, *NONE)
    assert outcome["fields"][0]["labels"] == ["NA", "None", "nan"]
    assert outcome["measures"][0]["value"] == pytest.approx(2 / 3)  # units 1, 2, 3


def test_a_transposed_table_is_pointed_out(tmp_path: Path) -> None:
    rows = [("who", "unit", "label"), *((f"u{i}", who, "xy"[i % 2]) for i in range(9) for who in "ab")]
    path = write_csv(tmp_path / "t.csv", rows)
    swapped = annotate("agreement", path, *NONE)
    assert "more annotators (9) than units (2)" in swapped.stdout


def test_an_unused_label_changes_only_what_counts_labels(tmp_path: Path) -> None:
    table = (*labels_of_two(tmp_path, ["xx", "yy", "xy", "yy"]), *NONE)
    two, three = (
        values(document("agreement", *table, "--level", f"nominal:{order}"), "a", "b")
        for order in ("x,y", "x,y,z")
    )
    assert {n for n in two if two[n] != three.get(n)} == {"gwet_ac1", "pabak"}
    # pabak = (q p_o - 1) / (q - 1), p_o = 3/4.
    assert two["pabak"] == pytest.approx(0.5) and three["pabak"] == pytest.approx(0.625)


def test_continuous_scores_are_not_counted_like_labels(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    truth = rng.normal(size=1500)
    scores = np.column_stack([truth + rng.normal(scale=0.5, size=1500) for _ in range(3)])
    rows = [("unit", "a", "b", "c"), *((f"{i:04}", *map(repr, row)) for i, row in enumerate(scores.tolist()))]
    table = (str(write_csv(tmp_path / "t.csv", rows)), "--annotators", "a,b,c")
    outcome = document("agreement", *table, "--level", "interval")
    # One-way: D_o = 2 MS within, D_e = 2 variance, on 3 complete columns.
    within = scores.var(axis=1, ddof=1).mean()
    alpha = pytest.approx(1 - within / scores.var(ddof=1))
    assert values(outcome, "a", "b", "c") == {"krippendorff_alpha": alpha}
    assert outcome["fields"][0]["labels"] is None and len(outcome["measures"]) == 4
    assert "4,500 different numbers" in annotate("agreement", *table, "--level", "interval", *NONE).stdout
    assert "4,500 different labels" in annotate("agreement", *table, code=1).stderr
    only = "above 200, only krippendorff_alpha with --level interval"
    assert only in annotate("agreement", *table, "--level", "interval", "--measure", "percent", code=1).stderr
    write_csv(tmp_path / "t.csv", [rows[0], *((u, *(v.lstrip("-") for v in row)) for u, *row in rows[1:])])
    assert only in annotate("agreement", *table, "--level", "ratio", code=1).stderr


def test_a_study_with_people_gold_and_two_runs(tmp_path: Path) -> None:
    db = make_study(tmp_path, runs=2)
    outcome = document("agreement", "-d", db, "--field", "stance")
    (field,) = outcome["fields"]
    names = [row["annotator"] for row in field["annotators"]]
    assert [n for n in names if "scripted" not in n] == ["ann", "bob", "gold", "majority"]
    assert field["task"] == "stance.v2" and field["labels"] == ["support", "refute", "neutral"]
    assert field["reference"] == "gold"
    runs = [n for n in names if "scripted" in n]
    pairs = [tuple(m["annotators"]) for m in outcome["measures"] if m["measure"] == "cohen_kappa"]
    expected = [("ann", "bob"), *((r, o) for r in runs for o in ("ann", "bob", "majority", "gold"))]
    expected += [("ann", "gold"), ("bob", "gold"), ("majority", "gold"), tuple(runs)]
    assert sorted(pairs) == sorted(expected), "every pair once"
    # Both runs follow one script and agree on the five units that have a label; one of six has none.
    both = measure(outcome, "percent", *runs)
    assert (both["value"], both["n_units"], both["coverage"]) == (1.0, 5, 5 / 6)
    only = document("agreement", "-d", db, "--annotators", "ann,bob", *NONE)
    assert [row["annotator"] for row in only["fields"][0]["annotators"]] == ["ann", "bob", "majority"]
    one = document("agreement", "-d", db, "--task", "stance", "--judge", "last", *NONE)
    assert [row["kind"] for row in one["fields"][0]["annotators"]].count("judge") == 1


def test_all_fields_of_a_study_and_what_is_left_out(tmp_path: Path) -> None:
    data = tmp_path / "mine.jsonl"
    votes = {"stance": {"ann": "support", "bob": "refute"}, "tone": {"ann": "kind", "bob": "kind"}}
    gold = {"lonely": "yes"}
    rows = [
        {"id": str(i), "claim": "c", "passages": [{"id": "a", "text": f"t{i}", "votes": votes, "gold": gold}]}
        for i in range(3)
    ]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    db = tmp_path / "study.db"
    judge("items", "import", "jsonl", data, "-d", db)
    outcome = document("agreement", "-d", db, *NONE)
    assert [field["field"] for field in outcome["fields"]] == ["stance", "tone"]
    assert {m["field"] for m in outcome["measures"]} == {"stance", "tone"}
    alone = annotate("agreement", "-d", db, "--field", "lonely", code=1)
    assert "no field has labels from at least two annotators; available: lonely (gold)" in alone.stderr
    ordered = document("agreement", "-d", db, "--field", "tone", "--level", "ordinal:rude,kind", *NONE)
    assert ordered["fields"][0]["labels"] == ["rude", "kind"]


def test_gold_that_the_task_does_not_know_is_said(tmp_path: Path) -> None:
    db = make_study(tmp_path)
    import sqlite3

    with closing(sqlite3.connect(db)) as conn, conn:
        conn.execute("UPDATE labels SET value = 'SUPPORTS' WHERE annotator_id = 'gold' AND value = 'support'")
    printed = annotate("agreement", "-d", db, *NONE).stdout
    assert (
        "labels of 'gold' were left out, because they are not among the labels of 'stance': 'SUPPORTS' (1)"
        in printed
    )


def test_the_printed_page_has_its_sections_and_each_note_once(tmp_path: Path) -> None:
    args = ("agreement", VOTES, "--judge", "gpt", "--measure", "dawid_skene", "--measure", "alt_test")
    printed = annotate(*args).stdout
    for section in (
        "human (3): ann, bob, cyd",
        "people with each other:\n",
        "gpt with people",
        "gpt with majority",
        "label by label",
        "shares of the labels",
        "confusion: rows majority, columns gpt",
        "alt-test: gpt wins against 3 of 3 people",
        "Epsilon is 0.2, the false discovery rate 0.05",
        "Dawid-Skene: the latent true labels",
    ):
        assert section in printed, section
    assert printed.count("with fewer than 50") == 1 and "95 % interval" in printed
    assert "90 % interval" in annotate(*args, "--confidence", "0.9").stdout
    assert max(len(line) for line in printed.splitlines()) < 210


def test_hostile_names_reach_the_terminal_as_text(tmp_path: Path) -> None:
    names = ("a\x1b]0;x\x07", "b")
    rows = [("unit", "who", "label"), *((str(i), who, "\x1b[31mred") for i in range(3) for who in names)]
    path = write_csv(tmp_path / "t.csv", rows)
    result = annotate("agreement", path, "--fail-under", "percent=2", code=5)
    assert "\x1b" not in result.stdout + result.stderr and "\x07" not in result.stdout + result.stderr


def test_csv_has_every_measure_in_full(tmp_path: Path) -> None:
    args = ("agreement", VOTES, "--judge", "gpt", *NONE)
    annotate(*args, "-o", tmp_path / "a.csv")
    rows = list(csv.DictReader((tmp_path / "a.csv").read_text().splitlines()))
    measures = document(*args)["measures"]
    assert len(rows) == len(measures)
    for row, measure in zip(rows, measures, strict=True):
        assert row["measure"] == measure["measure"] and row["annotators"] == " | ".join(measure["annotators"])
        assert (float(row["value"]) if row["value"] else None) == measure["value"]


def test_precision_recall_and_f1_when_asked(tmp_path: Path) -> None:
    rows = [("unit", "gold", "gpt"), *((str(i), g, p) for i, (g, p) in enumerate(["xx", "xy", "yy", "yy"]))]
    table = (write_csv(tmp_path / "t.csv", rows), "--annotators", "gold,gpt", "--judge", "gpt", *NONE)
    outcome = values(document("agreement", *table, "--measure", "per_class"), "gpt", "gold")
    # x: predicted 1, right 1, in gold 2. y: predicted 3, right 2, in gold 2.
    assert outcome["precision:x"] == 1.0 and outcome["recall:x"] == 0.5
    assert outcome["f1:x"] == pytest.approx(2 / 3)
    assert outcome["precision:y"] == pytest.approx(2 / 3) and outcome["recall:y"] == 1.0
    assert outcome["accuracy"] == 0.75
    assert "accuracy" not in values(document("agreement", *table), "gpt", "gold")


def test_dawid_skene_finds_who_is_right(tmp_path: Path) -> None:
    # a, b and c follow the truth, d says the opposite of it.
    rows = [("unit", "a", "b", "c", "d", "gold")]
    for i in range(40):
        label, other = ("xy"[i % 2], "yx"[i % 2])
        rows.append((f"{i:02}", label, other if i == 7 else label, label, other, label))
    table = (write_csv(tmp_path / "t.csv", rows), "--annotators", "a,b,c,d,gold", *NONE)
    latent = document("agreement", *table, "--measure", "dawid_skene")["fields"][0]["dawid_skene"]
    right = {row["annotator"]: row["accuracy"] for row in latent["annotators"]}
    assert right["a"] == pytest.approx(1, abs=1e-6) and right["d"] == pytest.approx(0, abs=1e-6)
    assert right["b"] == pytest.approx(39 / 40, abs=1e-6)
    assert latent["prevalence"] == pytest.approx([0.5, 0.5], abs=1e-6) and latent["converged"]
    assert [m["value"] for m in latent["against_reference"]] == [1.0, 1.0]
    assert set(right) == {"a", "b", "c", "d"}, "gold is not an annotator of its own"


def test_the_alt_test_needs_a_judge_and_people(tmp_path: Path) -> None:
    base = ("agreement", VOTES, *NONE, "--measure", "alt_test")
    assert "--measure alt_test requires a judge" in annotate(*base, *EVERYBODY, code=2).stderr
    (test,) = document(*base, "--judge", "gpt")["fields"][0]["alt_tests"]
    assert test["judge"] == "gpt" and test["epsilon"] == 0.2
    assert {row["annotator"] for row in test["compared"]} == {"ann", "bob", "cyd"}


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        ((VOTES, "--field", "label"), "--field is for a study"),
        (("--cluster", "question"), "--cluster is for a table"),
        ((VOTES, "--annotators", "ann,zoe"), "--annotators zoe: no such column or annotator"),
        ((VOTES, "--measure", "kapa"), "--measure kapa: unknown measure"),
        ((VOTES, *EVERYBODY, "--reference", "gold"), "--reference gold: 'label' has no"),
        ((VOTES, "--judge", "gpt", "--reference", "gpt"), "--reference gpt:"),
        ((VOTES, "--judge", "gpt-5"), "no such annotator; the annotators are ann, bob, cyd, gpt"),
        (("no-such.csv",), "no-such.csv: does not exist"),
        ((".",), ".: is a folder, not a table"),
        ((VOTES, "--level", "odd"), "odd"),
        ((VOTES, "--interval", "none", "--on", "lower"), "--on lower requires intervals"),
    ],
)
def test_usage_errors_end_with_2(args: tuple[str, ...], complaint: str) -> None:
    failed = annotate("agreement", *args, code=2).stderr
    assert complaint in failed and len(failed.splitlines()) == 1


def test_bad_data_ends_with_1(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "t.csv", [("unit", "annotator", "label"), ("u", "a", "x"), ("u", "a", "y")])
    failed = annotate("agreement", path, code=1)
    message = f"annotate: {path}:3: a second label from 'a' for unit 'u' (the first is on line 2)\n"
    assert failed.stderr == message
    assert "no such study" in annotate("agreement", "-d", tmp_path / "no.db", code=1).stderr


@pytest.mark.parametrize("command", ["agreement", "plan", "annotators set", "annotators list"])
def test_every_help_has_an_example(command: str) -> None:
    message = annotate(*command.split(), "--help").stdout
    assert f"  annotate {command} " in message or f"  annotate {command}\n" in message


def test_the_help_names_every_measure() -> None:
    message = str(agreement.help)
    # Levels and weights stand in brackets there.
    assert [name for name in METRICS if name.partition(":")[0] not in message] == []


def test_help_is_there_at_once() -> None:
    code = "import sys\nfrom annotate.cli import main\ntry: main(['agreement', '--help'])\nexcept SystemExit: pass\n"
    code += "print(sorted({'numpy', 'pandas', 'scipy', 'sqlite_utils', 'pydantic'} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.real
def test_the_real_crowd_of_rte(tmp_path: Path) -> None:
    votes = require("shared-data") / "rte_crowd" / "votes.jsonl"
    rows: list[tuple[str, str, object]] = [("unit", "annotator", "label")]
    for line in votes.read_text().splitlines():
        unit = json.loads(line)
        rows += [(unit["id"], who, label) for who, label in unit["votes"].items()]
        rows.append((unit["id"], "gold", unit["label"]))
    path = write_csv(tmp_path / "rte.csv", rows)
    outcome = document("agreement", path, "--measure", "dawid_skene")
    people = next(m for m in outcome["measures"] if m["measure"] == "krippendorff_alpha")
    # SOURCE.md: nominal alpha 0.241 over 800 units, 10 votes each, 164 workers.
    assert len(people["annotators"]) == 164 and people["n_units"] == 800
    assert people["value"] == pytest.approx(0.241, abs=5e-4) and people["low"] < 0.241 < people["high"]
    summaries = {(row["title"], row["measure"]): row for row in outcome["fields"][0]["pair_summaries"]}
    each = summaries["people with each other", "percent"]
    assert each["n_pairs"] == 164 * 163 // 2 and each["n_sharing"] == each["n_defined"] == 1254
    # Every unit has ten votes, so the mean over pairs by units is the mean over units.
    percent = next(m for m in outcome["measures"] if m["measure"] == "percent")
    assert each["weighted_mean"] == pytest.approx(percent["value"], abs=1e-12)
    printed = annotate("agreement", path).stdout
    assert len(printed.splitlines()) < 80, "164 workers fit on a page"


def test_decisions_count_with_what_people_agree_on(tmp_path: Path) -> None:
    # Ann and bob differ on two of six units; a lead decides these, and the judge is wrong on them alone.
    rows = ["unit,who,label"]
    for n in range(6):
        label = "yes" if n % 2 else "no"
        other = "no" if n % 2 else "yes"
        rows += [f"u{n},ann,{label}", *(f"u{n},{who},{other if n < 2 else label}" for who in ("bob", "gpt"))]
        rows += [f"u{n},adjudicated,{label}"] if n < 2 else []
    table = tmp_path / "votes.csv"
    table.write_text("\n".join(rows) + "\n")
    outcome = document("agreement", table, "--judge", "gpt", *NONE)
    (field,) = outcome["fields"]
    assert field["reference"] == "decided"
    (note,) = [n for n in field["notes"] if "2 units were adjudicated" in n]
    assert "on 4 other units" in note
    # Right on four of six, where the decided units alone would give none of two.
    assert measure(outcome, "percent", "gpt", "decided")["value"] == pytest.approx(4 / 6)
