"""The proof of a search: today's task and the winner on the sealed test, in one logged look."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from judge.improve.bench import PURPOSE, Bench
from judge.improve.recipe import Recipe
from judge.labels.scope import Scope, read
from judge.stats.parts import detectable
from judge.store.runs import adopt
from judge.store.splits import level_of
from judge.suites import contest
from judge.suites.contest import Contest


async def prove(bench: Bench, winner: Recipe) -> None:
    """Both on the sealed test: all units are judged first, then one look is taken."""
    found = bench.found
    found.winner = winner
    runs = []
    for recipe in (bench.first, winner):
        plain = replace(recipe, calibration=None)
        run = await bench.ask(plain, [*bench.units["tune"], *bench.units["test"]], reserve=False)
        runs.append(run if recipe.calibration is None else bench.kept(run, recipe))
    panel = read(bench.store, Scope(bench.field, bench.task.name, runs=tuple(runs)), opened=True)
    proof = contest.compare(bench.store, panel, bench.word, split=bench.split, part="test", purpose=PURPOSE)
    duel = proof.duels[0]
    sign = 1.0 if proof.contenders[duel.first].run_id == runs[0] else -1.0
    d = duel.kappa.difference
    found.proof, found.level = proof, proof.level
    if d.value is None:
        found.notes.append("the difference on the sealed test is undefined")
        return
    ends = sorted((sign * d.low, sign * d.high)) if d.low is not None and d.high is not None else [None, None]
    found.difference = sign * d.value, ends[0], ends[1]
    found.needed = _needed(bench, proof)
    if found.proved:
        with bench.store.transaction() as conn:
            adopt(conn, bench.runs[replace(winner, calibration=None).text()])


def _needed(bench: Bench, proof: Contest) -> int | None:
    """Labelled test units at which the difference seen would be found with a chance of 80 % at the next look."""
    found = bench.found.difference
    if found is None or found[1] is None or found[2] is None or not found[0] > 0 or proof.n_clusters < 3:
        return None
    from scipy.special import stdtrit

    error = (found[2] - found[1]) / 2 / float(stdtrit(proof.n_clusters - 1, 1 - bench.found.level / 2))
    spread = error * proof.n_clusters**0.5
    least = detectable(spread, proof.n_clusters, level_of(len(bench.split.looks) + 1))
    return int(np.ceil(proof.n_shared * (least / found[0]) ** 2))
