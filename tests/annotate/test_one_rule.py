"""One rule for every source: no command raises a judge's share of the level, no coverage under nine tenths is trusted, and
the same labels get the same verdict by every door. All with the real commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from annotate.store import open_study
from judge.derive import Made, keep, read_runs
from judge.errors import UsageError
from judge.prompts import load_task
from judge.store.corrections import mark_outdated
from judge.store.study import get_time
from tests.annotate.agreement_helpers import annotate, judge
from tests.annotate.looks_helpers import draw, judges_tested, label, world
from tests.annotate.report_helpers import U, add_run, study

OTHER = {"support": "refute", "refute": "support"}
PEOPLE = ("ann", "bob", "cyd")


def labels(n: int, errors: dict[str, float], seed: int = 1) -> tuple[list[str], dict[str, list[str]]]:
    """The truth of n units, and the labels of annotators with these rates of errors."""
    rng = np.random.default_rng(seed)
    truth = ["support" if x < 0.5 else "refute" for x in rng.random(n)]
    return truth, {
        name: [OTHER[t] if x < e else t for t, x in zip(truth, rng.random(n), strict=True)]
        for name, e in errors.items()
    }


def by_import(folder: Path, given: dict[str, list[str | None]], judges: tuple[str, ...]) -> Path:
    """A study with these labels: those of people are imported, and each judge is a run."""
    made = []
    for i in range(len(next(iter(given.values())))):
        row = {name: column[i] for name, column in given.items() if column[i] is not None}
        people = {name: row[name] for name in row if name not in judges}
        runs = {name: row[name] for name in row if name in judges}
        made.append(U(people=people, judges=runs, claim=f"Claim {i}."))  # type: ignore[arg-type]
    return study(folder / "s.db", made)


def by_table(folder: Path, given: dict[str, list[str | None]]) -> Path:
    """The same labels as a wide table."""
    table = folder / "t.csv"
    rows = [
        ",".join([f"u{i}", *(x or "" for x in row)])
        for i, row in enumerate(zip(*given.values(), strict=True))
    ]
    table.write_text("\n".join([",".join(["unit", *given]), *rows]) + "\n", encoding="utf-8")
    return table


def verdicts(*args: str | Path) -> dict[str, dict[str, Any]]:
    document = json.loads(annotate("report", *args, "--json").stdout)
    return {v["judge"]: v for v in document["verdicts"]}


def of_table(
    table: Path, given: dict[str, list[str | None]], judges: tuple[str, ...]
) -> dict[str, dict[str, Any]]:
    named = [part for name in judges for part in ("--judge", name)]
    return verdicts(table, "--annotators", ",".join(given), *named)


def confidence(verdict: dict[str, Any]) -> float:
    """The confidence of the deciding interval: the higher it is, the smaller is the judge's share of the level."""
    found: float = next(c["confidence"] for c in verdict["conditions"] if c["name"] == "non_inferiority")
    return found


@pytest.mark.parametrize("missing", ["nobody", "judge", "people"])
def test_no_coverage_under_nine_tenths_is_trusted_by_any_door(tmp_path: Path, missing: str) -> None:
    # The judge has no label on 241 of 600 units, or all people skip 241 units.
    _, given = labels(600, {**dict.fromkeys(PEOPLE, 0.08), "gpt": 0.06})
    columns: dict[str, list[str | None]] = {name: list(column) for name, column in given.items()}
    for name in {"nobody": (), "judge": ("gpt",), "people": PEOPLE}[missing]:
        columns[name][:241] = [None] * 241
    imported = verdicts("-d", by_import(tmp_path, columns, ("gpt",)))["gpt"]
    tabled = of_table(by_table(tmp_path, columns), columns, ("gpt",))["gpt"]
    for verdict in (imported, tabled):
        assert verdict["decision"] == ("trust" if missing == "nobody" else "undecided")
        assert verdict["sentence"].startswith("If these units are a random sample: ")
        row = next(c for c in verdict["conditions"] if c["name"] == "coverage")
        assert row["value"] == pytest.approx(1.0 if missing == "nobody" else 359 / 600)
    assert ("only 60% of these units have labels" in tabled["sentence"]) == (missing != "nobody")
    assert imported["conditions"] == tabled["conditions"]


@pytest.mark.parametrize("late", [True, False], ids=["after the judge", "before the judge"])
def test_texts_that_are_corrected_cost_the_look_at_imported_labels(tmp_path: Path, late: bool) -> None:
    # Somebody could correct the texts on which people and the judge differ, and have them labelled until they agree.
    truth, given = labels(300, {**dict.fromkeys(PEOPLE, 0.08), "m/good": 0.06})
    columns: dict[str, list[str | None]] = {
        p: list(given[p]) for p in (*PEOPLE, *(("m/good",) if late else ()))
    }
    db = by_import(tmp_path, columns, ("m/good",))
    units = [f"study:{i}/p" for i in range(30)]
    with open_study(db) as store:
        with store.transaction() as conn:
            conn.execute(
                "UPDATE passages SET text = text || '!' WHERE passage_id IN (SELECT value FROM json_each(?))",
                [json.dumps(units)],
            )
            mark_outdated(conn, units, get_time())
            if late:
                conn.execute(
                    "INSERT INTO labels (unit_id, field, annotator_id, value) SELECT unit_id, field, annotator_id, value "
                    "FROM labels WHERE layer = 'old_text' AND annotator_id IN (SELECT run_id FROM runs)"
                )
        if not late:
            answers = {f"study:{i}/p": x for i, x in enumerate(given["m/good"])}
            add_run(store, load_task("stance"), "m/good", answers)
    rows = [
        {"unit": u, "annotator": p, "field": "stance", "label": truth[i], "at": get_time()}
        for i, u in enumerate(units)
        for p in PEOPLE
    ]
    (tmp_path / "again.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    annotate("import", tmp_path / "again.jsonl", "--from", "jsonl", "--blind", "-d", db)
    verdict = verdicts("-d", db)["m/good"]
    assert next(c for c in verdict["conditions"] if c["name"] == "coverage")["value"] == 1
    assert verdict["decision"] == ("undecided" if late else "trust")
    assert ("texts were corrected" in verdict["sentence"]) == late


def test_opening_a_sealed_test_raises_no_share_of_the_level(tmp_path: Path) -> None:
    judges = tuple(f"m/{i}" for i in range(10))
    _, given = labels(200, {**dict.fromkeys(PEOPLE, 0.08), **dict.fromkeys(judges, 0.1)})
    columns: dict[str, list[str | None]] = {name: list(column) for name, column in given.items()}
    # The labels of a judge that covers less than half of the units count in the number of judges, too.
    columns["m/9"][:150] = [None] * 150
    db = by_import(tmp_path, columns, judges)
    first = verdicts("-d", db)
    assert all("one of 10 judges" in v["sentence"] for v in first.values())
    tabled = of_table(by_table(tmp_path, columns), columns, judges)
    assert [(v["decision"], v["conditions"]) for v in tabled.values()] == [
        (v["decision"], v["conditions"]) for v in first.values()
    ]
    judge("split", "stance", "-d", db)
    closed = verdicts("-d", db)
    # The test is closed for every judge, so that less than nine tenths of the units have a judge's label.
    assert {v["decision"] for v in closed.values()} == {"undecided"}
    judge("compare", "stance", "--part", "test", "-d", db)
    opened = verdicts("-d", db)
    alone = verdicts("-d", db, "--judge", "m/3")
    for name, verdict in {**opened, "alone": alone["m/3"]}.items():
        before = first["m/3" if name == "alone" else name]
        assert confidence(verdict) >= confidence(before) - 1e-12
        assert (verdict["decision"], verdict["conditions"]) == (before["decision"], before["conditions"])


def test_short_runs_on_imported_labels_share_the_level(tmp_path: Path) -> None:
    # Ten judges on less than half of the units each: the best of them could be chosen and finished.
    judges = tuple(f"m/{i}" for i in range(10))
    _, given = labels(300, {**dict.fromkeys(PEOPLE, 0.08), **dict.fromkeys(judges, 0.1)})
    columns: dict[str, list[str | None]] = {name: list(column) for name, column in given.items()}
    for name in judges:
        columns[name][140:] = [None] * 160
    found = verdicts("-d", by_import(tmp_path, columns, judges))
    assert all("one of 10 judges" in v["sentence"] and v["decision"] == "undecided" for v in found.values())


def test_the_draw_fixes_the_judges_and_no_command_changes_them(tmp_path: Path) -> None:
    db, truth = world(tmp_path)
    annotate("batches", "new", "one", "stance", "-n", "100", "--annotators", "ann,bob", "-d", db)
    with open_study(db) as store:
        assert judges_tested(store, "one") == ["m/one"]
        label(store, "one", truth, 0, 100)
    before = verdicts("-d", db)["m/one"]
    with open_study(db) as store:
        run = add_run(store, load_task("stance"), "m/late", truth)
    for command in (
        ("report", "-d", db),
        ("report", "-d", db, "--judge", "m/late"),
        ("agreement", "--field", "stance", "-d", db),
        ("plan", "-d", db, "--field", "stance", "--verdict"),
        ("view", "-o", tmp_path / "page.html", "-d", db),
        ("batches", "show", "one", "-d", db),
        ("batches", "extend", "one", "--to", "150", "-d", db),
    ):
        annotate(*command)
        found = verdicts("-d", db)
        assert confidence(found["m/one"]) == confidence(before)
        assert found["m/late"]["decision"] == "undecided" and not found["m/late"]["is_tested"]
    # The command that the sentence prints draws units for the other judge.
    assert f"--judges {run}" in found["m/late"]["sentence"]
    annotate(
        "batches", "new", "two", "stance", "-n", "100", "--annotators", "ann,bob", "--judges", run, "-d", db
    )
    with open_study(db) as store:
        assert judges_tested(store, "two") == ["m/late"]
        draw(store, "three", 10, judges=["m/one", "m/late"])
    found = verdicts("-d", db)
    assert confidence(found["m/one"]) > confidence(before), "one of two judges from now on"


def test_a_condition_on_labels_gives_no_verdict(tmp_path: Path) -> None:
    """Such a condition could leave out the units that the judge could not label, and they would not count as missing."""
    db, _ = world(tmp_path)
    with open_study(db) as store:
        for where in (
            "unit_id IN (SELECT unit_id FROM judgements WHERE status = 'ok')",
            "EXISTS (SELECT 1 FROM labels AS l WHERE l.unit_id = t.unit_id)",
            "EXISTS (SELECT 1 FROM labels JOIN units AS u USING (unit_id) WHERE u.unit_id = t.unit_id)",
            "EXISTS (SELECT 1 FROM units AS u NATURAL JOIN judgements WHERE u.unit_id = t.unit_id)",
            "unit_id IN (SELECT unit_id FROM latest_judgements)",
            "unit_id NOT IN (WITH x AS (SELECT unit_id FROM batch_labels) SELECT unit_id FROM x)",
        ):
            with pytest.raises(UsageError, match="--where"):
                draw(store, "one", 50, where=where)
            # Other draws give no verdict, so they can use any condition.
            draw(store, f"queue{len(where)}", 50, where=where, by="label", equal_parts=True)
        draw(store, "two", 50, where="claim <> '' AND item_id IN (SELECT item_id FROM items)")


def test_the_units_of_a_routed_run_give_no_verdict(tmp_path: Path) -> None:
    """A routed run has only the units that its judge is sure of. The runs from which it was made have all of them."""
    db, truth = world(tmp_path)
    with open_study(db) as store:
        run = add_run(store, load_task("stance"), "m/sure", truth)
        table = read_runs(store, [run])
        sure = np.arange(len(table.units)) % 2 == 0
        codes = np.zeros(len(table.units), dtype=np.int64)
        routed, _ = keep(store, table, "routed", "sure", {"stance": Made(codes)}, only=sure)
    words = ("stance", "-n", "50", "--annotators", "ann,bob", "-d", db)
    failed = annotate("batches", "new", "one", *words, "--units-of", routed, code=2)
    assert f"--units-of {routed}" in failed.stderr and f"--units-of {run}" in failed.stderr
    annotate("batches", "new", "one", *words, "--units-of", run)
    # A draw by stratum gives no verdict.
    annotate(
        "batches", "new", "queue", *words, "--by", "label", "--draw", "equal-parts", "--units-of", routed
    )


def test_a_draw_with_another_condition_says_that_it_is_another_study(tmp_path: Path) -> None:
    db, _ = world(tmp_path)
    with open_study(db) as store:
        assert not any("another frame" in note for note in draw(store, "one", 50))
        assert not any("another frame" in note for note in draw(store, "two", 50, seed=2))
        (told,) = [n for n in draw(store, "three", 50, seed=3, where="n > 50") if "another frame" in n]
        assert "'one'" in told and "5 %" in told


def test_a_batch_tests_at_most_five_judges(tmp_path: Path) -> None:
    db, truth = world(tmp_path)
    with open_study(db) as store:
        runs = [add_run(store, load_task("stance"), f"m/{i}", truth) for i in range(6)]
    options = ("-n", "50", "--annotators", "ann,bob", "-d", db)
    failed = annotate("batches", "new", "one", "stance", "--judges", ",".join(runs), *options, code=2)
    assert "--judges: 6 judges are too many" in failed.stderr
    annotate("batches", "new", "one", "stance", "--judges", ",".join(runs[:5]), *options)


def long_table(folder: Path, given: dict[str, list[str]]) -> Path:
    """The labels as a long table."""
    table = folder / "long.csv"
    rows = [f"u{i},{name},{x}" for name, column in given.items() for i, x in enumerate(column)]
    table.write_text("\n".join(["unit,annotator,label", *rows]) + "\n", encoding="utf-8")
    return table


@pytest.mark.parametrize("table_of", [long_table, by_table], ids=["long", "wide"])
def test_leaving_people_out_of_a_table_leaves_no_verdict(
    table_of: Callable[[Path, Any], Path], tmp_path: Path
) -> None:
    _, given = labels(300, {"ann": 0.05, "bob": 0.05, "cyd": 0.3, "gpt-5": 0.05})
    table = table_of(tmp_path, given)
    part = verdicts(table, "--judge", "gpt-5", "--annotators", "ann,bob,gpt-5")["gpt-5"]
    assert part["decision"] == "undecided" and "cyd" in part["because"]


@pytest.mark.parametrize("table_of", [long_table, by_table], ids=["long", "wide"])
def test_leaving_judges_out_of_a_table_raises_no_share(
    table_of: Callable[[Path, Any], Path], tmp_path: Path
) -> None:
    """A table knows the judges that are left out by the kind that it gives, or by their names."""
    _, given = labels(300, {"ann": 0.05, "bob": 0.05, "gpt-5": 0.05, "claude-haiku": 0.1})
    table = table_of(tmp_path, given)
    every = ("--annotators", "ann,bob,gpt-5,claude-haiku")
    both = verdicts(table, "--judge", "gpt-5", "--judge", "claude-haiku", *every)["gpt-5"]
    one = verdicts(table, "--judge", "gpt-5", "--annotators", "ann,bob,gpt-5")["gpt-5"]
    levels = [
        {c["confidence"] for c in found["conditions"] if c["name"] == "non_inferiority"}
        for found in (one, both)
    ]
    assert levels[0] == levels[1] and one["decision"] == both["decision"]
    assert levels[0] != {0.95}, "two judges share the level"


def test_a_column_of_a_wide_table_that_has_no_labels_is_nobody(tmp_path: Path) -> None:
    truth, given = labels(300, {"ann": 0.05, "bob": 0.05, "gpt-5": 0.05})
    extra = {"origin": [f"t{i % 9}" for i in range(300)], "majority": truth, "note": [""] * 300}
    table = by_table(tmp_path, {**given, **extra})
    found = verdicts(table, "--judge", "gpt-5", "--annotators", "ann,bob,gpt-5")["gpt-5"]
    assert found["decision"] == "trust"
