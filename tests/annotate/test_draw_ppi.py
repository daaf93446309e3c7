"""Drawing by the judge's uncertainty: known probabilities, unbiased corrected numbers, and narrower ones."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from annotate.drawing.frame import Candidate
from annotate.drawing.sample import chances, draw_uncertain
from judge.labels.batches import weights
from judge.stats import corrected_mean
from judge.store import Store
from tests.annotate.agreement_helpers import annotate, framed
from tests.split.worlds import LABELS, add_run, gold, planted


def candidates(n: int, seed: int = 0) -> list[Candidate]:
    rng = random.Random(seed)
    return [
        Candidate(f"u{i:04}", f"q{i}", confidence=rng.choice([0.99, 0.95, 0.6]), place=i) for i in range(n)
    ]


def probabilities(some: list[Candidate], n: int) -> dict[str, float]:
    chance = chances(some, n)
    return {c.unit_id: chance(c) for c in some}


def test_probabilities_sum_to_n_and_rise_with_uncertainty() -> None:
    some = candidates(500)
    found = probabilities(some, 100)
    assert sum(found.values()) == pytest.approx(100)
    by = {c.confidence: found[c.unit_id] for c in some}
    assert by[0.6] > by[0.95] > by[0.99] > 0
    # s = sqrt(c (1 - c)): .0995, .2179, .4899; sizes .25 + .75 s / mean are in the ratio of the probabilities.
    spread = {c: (c * (1 - c)) ** 0.5 for c in by}
    mean = np.mean([spread[c.confidence or 0] for c in some])
    assert by[0.6] / by[0.99] == pytest.approx(
        (0.25 + 0.75 * spread[0.6] / mean) / (0.25 + 0.75 * spread[0.99] / mean)
    )


def test_who_would_be_drawn_twice_is_drawn_for_certain() -> None:
    some = [Candidate("sure" + str(i), "q", confidence=0.999) for i in range(20)] + [
        Candidate("torn", "q", confidence=0.5)
    ]
    found = probabilities(some, 15)
    assert found["torn"] == 1.0 and sum(found.values()) == pytest.approx(15) and max(found.values()) == 1.0
    assert sum(probabilities(some, 21).values()) == pytest.approx(21)


def test_n_units_are_drawn_each_as_often_as_its_probability_says() -> None:
    some = candidates(40, 3)
    wanted, frame = probabilities(some, 12), framed(some)
    times = dict.fromkeys(wanted, 0)
    for seed in range(800):
        drawn = draw_uncertain(frame, 12, seed)
        assert len(drawn) == 12 and len({d.unit_id for d in drawn}) == 12
        for d in drawn:
            assert d.probability == pytest.approx(wanted[d.unit_id])
            times[d.unit_id] += 1
    # 800 draws: four standard errors of a share are at most 4 sqrt(.25 / 800) = .071.
    assert all(abs(times[u] / 800 - p) < 0.071 for u, p in wanted.items())


def test_corrected_numbers_stay_unbiased_and_get_narrower() -> None:
    # 2,000 units, the judge's confidence is right: sure on two thirds, torn on the rest. 200 labels, 60 draws each way.
    rng = np.random.default_rng(4)
    sure = rng.choice([0.99, 0.6], 2000, p=[0.67, 0.33])
    truth = rng.random(2000) < 0.4
    judged = np.where(rng.random(2000) < sure, truth, ~truth).astype(float)
    some = framed(Candidate(f"u{i:04}", f"q{i}", confidence=float(c), place=i) for i, c in enumerate(sure))
    values, widths = {"even": [], "ppi": []}, {"even": [], "ppi": []}
    for seed in range(60):
        for way in values:
            drawn = draw_uncertain(some, 200, seed) if way == "ppi" else None
            places = [int(d.unit_id[1:]) for d in drawn] if drawn else rng.choice(2000, 200, replace=False)
            human, weight = np.full(2000, np.nan), np.full(2000, np.nan)
            human[places] = truth[places]
            if drawn:
                weight[places] = [d.weight for d in drawn]
            found = corrected_mean(judged, human, weights=weight if drawn else None, bounds=(0.0, 1.0)).ppi
            assert found.value is not None and found.low is not None and found.high is not None
            values[way].append(found.value - truth.mean())
            widths[way].append(found.high - found.low)
    # 60 estimates with a standard error of about .025 each: three standard errors of their mean are .01.
    assert abs(np.mean(values["ppi"])) < 0.01
    assert np.mean(widths["ppi"]) < 0.93 * np.mean(widths["even"])
    assert np.std(values["ppi"]) < np.std(values["even"])


def test_a_batch_for_ppi_stores_its_probabilities_and_the_report_weighs_by_them(tmp_path: Path) -> None:
    db = planted(tmp_path, 120)
    rng = random.Random(5)
    labels = {f"study:{q:03}/0": gold(q, 0) if rng.random() < 0.8 else "neutral" for q in range(120)}
    sure = {unit: rng.choice([0.98, 0.5]) for unit in labels}
    masses = {
        u: [sure[u] if v == label else (1 - sure[u]) / 2 for v in LABELS] for u, label in labels.items()
    }
    add_run(db, "scripted/planted", labels, masses)
    made = json.loads(
        annotate(
            "batches",
            "new",
            "ppi",
            "stance",
            "-n",
            "30",
            "--for",
            "ppi",
            "--annotators",
            "ann",
            "-d",
            db,
            "--json",
        ).stdout
    )
    assert made["units"] == 30 and made["frame"] == 120
    with Store.open(db) as store:
        rows = store.conn.execute("SELECT unit_id, probability, weight FROM batch_units").fetchall()
        purpose = store.conn.execute("SELECT purpose FROM batches").fetchone()[0]
        own = weights(store, None, "stance")
    assert purpose == "validation" and len(rows) == 30
    assert all(weight == pytest.approx(1 / p) for _, p, weight in rows)
    # A unit stands for as many as its probability says: no one weight is that of all.
    low, high = (f(w for _, _, w in rows) for f in (min, max))
    stratum = made["strata"]["all"]
    assert stratum["weight"] is None
    assert (stratum["weight_low"], stratum["weight_high"]) == pytest.approx((low, high), abs=1e-4)
    assert f"{low:.3f} … {high:.3f}" in annotate("batches", "show", "ppi", "-d", db).stdout
    chance = {sure[unit]: p for unit, p, _ in rows}
    assert chance[0.5] > chance[0.98]
    assert own[rows[0][0]] / own[rows[1][0]] == pytest.approx(rows[0][2] / rows[1][2])
    told = annotate("batches", "extend", "ppi", "-n", "5", "-d", db, code=2).stderr
    assert "drawn once for all" in told


def test_for_ppi_needs_probabilities_and_takes_no_strata(tmp_path: Path) -> None:
    db = planted(tmp_path, 20)
    new = ("batches", "new", "b", "stance", "-n", "5", "--for", "ppi", "--annotators", "ann", "-d", db)
    assert "--for ppi needs a judge run" in annotate(*new, code=2).stderr
    add_run(db, "scripted/plain", {f"study:{q:03}/0": gold(q, 0) for q in range(20)})
    assert "stored distributions" in annotate(*new, code=2).stderr
    assert "do not apply" in annotate(*new, "--by", "dataset", code=2).stderr
