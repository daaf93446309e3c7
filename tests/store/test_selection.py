"""A selection of everything is read lazily: it says the same as one that is fixed, and the kept counts agree."""

import asyncio
import random
from collections import Counter
from pathlib import Path

import pytest

from judge.prompts import load_task
from judge.providers import base
from judge.runner import Plan, RunReport, run_task
from judge.store import Store, selection
from judge.store.runs import start_run
from judge.types import Status
from tests.runner.helpers import make_study, numbered

STATUSES = [str(s) for s in Status]


def judged(store: Store, run: str, unit: str, attempt: int, status: str, repeat: int = 0) -> None:
    store.conn.execute(
        "INSERT INTO judgements (run_id, unit_id, repeat, attempt, status, reused, judged_at) VALUES (?, ?, ?, ?, ?, 0, '')",
        [run, unit, repeat, attempt, status],
    )


@pytest.mark.parametrize("seed", range(5))
def test_lazily_and_fixed_the_same_units_are_pending(tmp_path: Path, seed: int) -> None:
    task, draw = load_task("stance"), random.Random(seed)
    with Store.open(make_study(tmp_path / "study.db", numbered(700))) as store:
        run, _ = start_run(store, task, "m", {}, {})
        units = [u for (u,) in store.conn.execute("SELECT unit_id FROM units WHERE kind = 'passage'")]
        # A few that the task cannot show, judged and not.
        empty = draw.sample(units, 20)
        with store.transaction() as conn:
            for unit in empty:
                conn.execute("UPDATE passages SET text = '' WHERE passage_id = ?", [unit])
            for unit in draw.sample(units, 500):
                for attempt in draw.sample(range(1, 9), draw.randint(1, 3)):
                    judged(store, run, unit, attempt, draw.choice(STATUSES), attempt % 2)
        rows = store.conn.execute("SELECT unit_id, repeat, status FROM latest_judgements").fetchall()
        latest = {(unit, repeat): status for unit, repeat, status in rows}
        for repeat in (0, 1):
            counts = Counter(status for (_, r), status in latest.items() if r == repeat)
            kept = selection.run_statuses(store, run, repeat)
            assert +kept == counts
            # With all that is no label they are more than a page.
            for retry in ((), ("truncated", "refused"), ("truncated", "refused", "unparsed")):
                fixed_counts = selection.select(store, task, selection.Selection())
                fixed = [u.unit_id for u in selection.pending(store, task, run, repeat, retry)]
                selection.select_all(store, task)
                lazy = [u.unit_id for u in selection.pending(store, task, run, repeat, retry)]
                assert lazy == fixed
                assert selection.count_all(store, task) == fixed_counts == (len(units) - 20, 20)
                fresh = [u for u in fixed if (u, repeat) not in latest]
                assert fixed[: len(fresh)] == fresh
                wanted = {u for (u, r), s in latest.items() if r == repeat and s in ("failed", *retry)}
                assert sorted(fixed[len(fresh) :]) == sorted(wanted.difference(empty))


@pytest.mark.parametrize("first", [0, 20_000])
def test_a_study_that_is_counted_beside_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    monkeypatch.setattr("judge.runner.run.COUNTED_FIRST", first)

    def run(store: Store) -> RunReport:
        plan = Plan(load_task("stance"), "scripted/first", repeats=2)
        return asyncio.run(run_task(store, plan, base.get("scripted/first")))

    with Store.open(make_study(tmp_path / "study.db", numbered(60))) as store:
        store.conn.execute("UPDATE passages SET text = '' WHERE rowid <= 7")
        done, again = run(store), run(store)
        # 60 passages without the 7 that are empty, twice.
        for report, reused in ((done, 0), (again, 106)):
            assert (report.units, report.left_out, report.pending) == (106, 7, 0)
            assert (report.labelled, report.already_judged) == (106, reused)
