"""A panel as a recipe: written from runs, asked by the ordinary runner under one budget, pooled once, resumed for nothing."""

import json
from pathlib import Path
from typing import Any

import yaml

from judge.store import Store
from tests.annotate.agreement_helpers import checked, judge
from tests.derive import worlds

SCRIPTED = ("-m", "scripted/hash", "--option", "logprobs=1")
N = 40


def labels(path: Path, run: str) -> dict[str, str]:
    with Store.open(path) as store:
        rows = store.conn.execute("SELECT unit_id, value FROM labels WHERE annotator_id = ?", [run])
        return dict(rows.fetchall())


def counts(path: Path) -> tuple[int, int]:
    """Judgements of asked runs, and pooled runs."""
    with Store.open(path) as store:
        query = "SELECT count(*) FROM judgements JOIN runs USING (run_id) WHERE derived_from IS NULL"
        [asked] = store.conn.execute(query).fetchone()
        [pooled] = store.conn.execute("SELECT count(*) FROM runs WHERE derived_from IS NOT NULL").fetchone()
        return asked, pooled


def fresh(path: Path) -> Path:
    worlds.study(path, worlds.draw(N, seed=1)).close()
    return path


def test_a_panel_is_written_from_runs_and_asked_again_elsewhere(tmp_path: Path) -> None:
    first, file = fresh(tmp_path / "a.db"), tmp_path / "panel.yaml"
    runs = [
        json.loads(judge("run", "stance", *SCRIPTED, *more, "-d", first, "--json").stdout)["run"]
        for more in ((), ("--label-order", "reversed"), ("--guidelines", "--seed", "3"))
    ]
    members = [word for run in runs for word in ("--run", run)]
    made = checked(judge("panel", "stance", *members, "--recipe", file, "-d", first, "--json").stdout)
    given = yaml.safe_load(file.read_text())
    asked = [own["recipe"] for own in given["panel"]["members"]]
    assert [own["label_order"] for own in asked] == ["declared", "reversed", "declared"]
    assert [(own["guidelines"], own["seed"]) for own in asked] == [(False, None), (False, None), (True, 3)]
    for own in given["panel"]["members"]:
        own["option"] = {"logprobs": 1}  # which no run tells of
    file = tmp_path / "panel.json"
    file.write_text(json.dumps(given))

    second = fresh(tmp_path / "b.db")
    # A third of what the three need: the budget is that of all, and ends the run in the middle.
    dry = judge("run", "stance", *SCRIPTED, "--estimate", "-d", second).stdout
    tokens = int(dry.split("about ")[1].split(" in,")[0].replace(",", ""))
    ended = judge(
        "run", "stance", "--recipe", file, "--max", f"{tokens * 3 // 2}tokens", "-d", second, code=4
    )
    assert "units to go" in ended.stderr
    spent, pooled = counts(second)
    assert 0 < spent < 3 * N and pooled == 0

    again = judge("run", "stance", "--recipe", file, "-d", second, "--json")
    document = checked(again.stdout)
    assert counts(second) == (3 * N, 1)  # nothing was asked twice, and one panel kept
    assert labels(second, document["run_id"]) == labels(first, made["run_id"])
    assert document["known"] is False
    assert checked(judge("run", "stance", "--recipe", file, "-d", second, "--json").stdout)["known"] is True
    assert counts(second) == (3 * N, 1)
    assert "majority of 3 judges" in judge("run", "stance", "--recipe", file, "-d", second).stdout


def test_a_calibrated_member_is_calibrated_again(tmp_path: Path) -> None:
    first, file = fresh(tmp_path / "a.db"), tmp_path / "panel.yaml"
    with Store.open(first) as store:
        store.conn.execute("DELETE FROM labels")  # gold would show that a judge which guesses has no signal
    for more in ((), ("--label-order", "reversed")):
        judge("run", "stance", *SCRIPTED, *more, "-d", first)
    document = checked(
        judge("calibrate", "stance", "--method", "batch", "--prior", "uniform", "-d", first, "--json").stdout
    )
    with Store.open(first) as store:
        query = "SELECT run_id FROM runs WHERE derived_from IS NULL ORDER BY started LIMIT 1"
        [plain] = store.conn.execute(query).fetchone()
    own = ("--run", plain, "--run", document["run_id"])
    made = checked(
        judge("panel", "stance", "--method", "mean", *own, "--recipe", file, "-d", first, "--json").stdout
    )
    given = yaml.safe_load(file.read_text())
    for member in given["panel"]["members"]:
        member["option"] = {"logprobs": 1}
    file.write_text(yaml.safe_dump(given))
    second = fresh(tmp_path / "b.db")
    found = checked(judge("run", "stance", "--recipe", file, "-d", second, "--json").stdout)
    assert labels(second, found["run_id"]) == labels(first, made["run_id"])
    assert counts(second) == (2 * N, 2)  # the calibrated member, and the panel


def test_what_is_no_panel_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    study, file = fresh(tmp_path / "a.db"), tmp_path / "panel.yaml"
    one: dict[str, Any] = {"model": "scripted/hash"}
    from judge.prompts import load_task

    good = {"recipe": 1, "task": "stance.v2", "task_sha256": load_task("stance").sha256, "field": "stance"}
    two = [one, {"model": "scripted/first"}]
    cases: list[tuple[dict[str, Any], tuple[str, ...], str]] = [
        ({"method": "majority", "members": [one]}, (), "panel.members"),
        ({"method": "majority", "members": [one, dict(one)]}, (), "panel.members.1"),
        ({"method": "loudest", "members": two}, (), "panel.method"),
        ({"method": "majority", "members": [one, {"model": "hash"}]}, (), "panel.members.1.model"),
        ({"method": "majority", "members": [one, {**one, "recipe": "gone.yaml"}]}, (), "gone.yaml"),
        # Its size is 0, and it has no end.
        (
            {"method": "majority", "members": [one, {**one, "recipe": "/dev/zero"}]},
            (),
            "/dev/zero: not a recipe",
        ),
        (
            {"method": "majority", "members": [one, {**one, "recipe": {"recipe": 1}}]},
            (),
            "members.1.recipe.task",
        ),
        (
            {"method": "majority", "members": two},
            ("-m", "scripted/hash"),
            "-m: cannot be used with a panel's recipe",
        ),
        (
            {"method": "majority", "members": two},
            ("--answers", "json"),
            "--answers: cannot be combined with --recipe",
        ),
        (
            {"method": "majority", "members": two},
            ("--base-url", "http://127.0.0.1:1"),
            "--base-url: cannot be combined with --recipe",
        ),
    ]
    for panel, more, told in cases:
        file.write_text(yaml.safe_dump({**good, "panel": panel}))
        refused = judge("run", "stance", "--recipe", file, "-d", study, *more, code=2 if more else 1)
        assert told in refused.stderr and refused.stderr.count("\n") == 1, (panel, refused.stderr)
    file.write_text(
        yaml.safe_dump({**good, "field": "verdict", "panel": {"method": "majority", "members": two}})
    )
    assert (
        "stance.v2 has the fields stance"
        in judge("run", "stance", "--recipe", file, "-d", study, code=2).stderr
    )
    judge("run", "stance", "-d", study, code=2)  # no model and no recipe
    assert counts(study) == (0, 0)
