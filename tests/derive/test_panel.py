"""A panel is a judge of its own: its labels by hand, what pooling is worth on a planted world, and one way to vote."""

from pathlib import Path

import numpy as np
import pytest

from judge import derive
from judge.derive.pool import pool
from judge.errors import UsageError
from judge.store import Store
from judge.types import Status
from tests.annotate.agreement_helpers import annotate, checked, judge
from tests.derive import worlds

S, R, N = 0, 1, 2


def plain(store: Store, name: str, codes: list[int], missing: dict[int, Status] | None = None) -> str:
    """A judge with these labels and no probabilities."""
    return worlds.judged(store, name, np.eye(3)[codes], missing=missing, plain=True)


@pytest.fixture
def three(tmp_path: Path) -> tuple[Store, list[str]]:
    """Five units: two of three; all; all differ; one has none, the others differ; two have none."""
    store = worlds.study(tmp_path / "w.db", np.array([S, R, N, S, R]))
    runs = [
        plain(store, "a", [S, R, S, S, R], {4: Status.REFUSED}),
        plain(store, "b", [S, R, R, R, R], {4: Status.REFUSED}),
        plain(store, "c", [N, R, N, S, R], {3: Status.UNPARSED}),
    ]
    return store, runs


def test_a_majority_by_hand(three: tuple[Store, list[str]]) -> None:
    store, runs = three
    table = derive.read_runs(store, runs)
    pooled = pool(table, "stance", "majority")
    at = [table.places[u] for u in worlds.units(5)]
    # S S N; R R R; S R N tie; S R (c has none) tie; only c says R.
    assert pooled.made.codes[at].tolist() == [S, R, -1, -1, R]
    assert (pooled.n_tied, pooled.n_full, pooled.unanimous) == (2, 3, 1)
    run, _ = derive.keep(store, table, "pooled", "majority", {"stance": pooled.made}, only=pooled.only)
    ended = "SELECT unit_id, status, reason FROM judgements WHERE run_id = ? AND status <> 'ok'"
    assert store.conn.execute(ended, [run]).fetchall() == [
        ("w:0/p2", "unparsed", "tied"),
        ("w:0/p3", "unparsed", "tied"),
    ]


def test_a_mean_by_hand_and_who_has_no_say(tmp_path: Path) -> None:
    store = worlds.study(tmp_path / "w.db", np.array([S, R]))
    a = worlds.judged(store, "a", np.array([[0.6, 0.4, 0.0], [0.5, 0.3, 0.2]]))
    b = worlds.judged(store, "b", np.array([[0.1, 0.7, 0.2], [0.2, 0.7, 0.1]]), missing={1: Status.REFUSED})
    pooled = pool(derive.read_runs(store, [a, b]), "stance", "mean")
    assert pooled.made.probabilities is not None
    assert pooled.made.probabilities == pytest.approx(np.array([[0.35, 0.55, 0.1], [0.5, 0.3, 0.2]]))
    assert pooled.made.codes.tolist() == [R, S]
    assert f"not calibrated: {a}, {b}" in pooled.notes[0]
    c = plain(store, "c", [S, R])
    with pytest.raises(UsageError, match="has no label probabilities"):
        pool(derive.read_runs(store, [a, c]), "stance", "mean")


def test_units_that_a_member_was_not_asked_about_are_left_out(tmp_path: Path) -> None:
    store = worlds.study(tmp_path / "w.db", worlds.draw(10))
    a = plain(store, "a", [S] * 10)
    b = plain(store, "b", [S] * 5)
    done = judge("panel", "stance", "--run", a, "--run", b, "-d", store.path)
    assert "on 5 units of stance.v2" in done.stdout
    assert "5 units are left out, because not every member has judged them" in done.stderr


@pytest.mark.parametrize("method", ["majority", "mean", "dawid-skene"])
def test_three_independent_judges_are_better_together(method: str, tmp_path: Path) -> None:
    truth = worlds.draw(300)
    store = worlds.study(tmp_path / "w.db", truth)
    runs = [
        worlds.judged(store, f"j/{seed}", worlds.softmax(1.5 * worlds.logits(truth, 1.5, seed=seed)))
        for seed in (11, 12, 13)
    ]
    named = [word for run in runs for word in ("--run", run)]
    words = ("panel", "stance", *named, "--method", method, "-d", store.path)
    found = checked(judge(*words, "--json").stdout)
    *members, panel = [m["value"] for m in found["agreement"]]
    # Signal 1.5 in three independent judges is 2.6 in their sum: kappa rises from about .5 to about .75.
    assert panel > max(members) + 0.05
    assert found["reference"] == "gold" and found["members"] == runs
    assert checked(judge(*words, "--json").stdout)["known"]
    report = annotate(
        "report", "-d", store.path, "--judge", found["run_id"], "-o", tmp_path / "r.html"
    ).stderr
    page = (tmp_path / "r.html").read_text()
    assert "unexpected" not in report and f"pooled ({method}) from" in page and "erdict" in page


def test_the_sealed_test_is_not_counted(tmp_path: Path) -> None:
    truth = worlds.draw(200)
    store = worlds.study(tmp_path / "w.db", truth)
    runs = [worlds.judged(store, f"j/{s}", worlds.softmax(worlds.logits(truth, 2.0, seed=s))) for s in (1, 2)]
    judge("split", "stance", "-d", store.path)
    done = judge("panel", "stance", "--run", runs[0], "--run", runs[1], "-d", store.path, "--json")
    found = checked(done.stdout)
    # 20 + 20 % of 40 questions of five units.
    assert found["agreement"][0]["n_units"] == 80
    assert store.conn.execute("SELECT count(*) FROM split_looks").fetchone() == (0,)


@pytest.mark.parametrize(
    ("words", "told"),
    [(("--run", "last"), "at least two judges"), (("--run", "last", "--run", "last"), "named twice")],
)
def test_what_is_no_panel_is_refused(
    words: tuple[str, ...], told: str, three: tuple[Store, list[str]]
) -> None:
    store, _ = three
    assert told in judge("panel", "stance", *words, "-d", store.path, code=2).stderr
