"""Draws: seeded, stratified, weighted, or by the judge's uncertainty (unbiased, narrower); who gets what in which order."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotate.batch_plan import BatchPlan
from annotate.drawing.frame import Candidate
from annotate.drawing.places import assign, sequence
from annotate.drawing.sample import (
    BLOCK,
    allocate,
    chances,
    draw,
    draw_questions,
    draw_queue,
    draw_uncertain,
    equal_parts,
    restore_order,
)
from judge.errors import UsageError
from judge.labels.batches import weights
from judge.stats import correct_mean
from judge.store import Store
from tests.annotate.agreement_helpers import annotate, framed
from tests.split.worlds import LABELS, add_run, gold, planted

POOL = [
    Candidate(f"u{i}", f"q{i // 5}", "rare" if i % 20 == 0 else "common", i / 100, place=i)
    for i in range(100)
]


@given(
    st.dictionaries(st.text(min_size=1, max_size=3), st.integers(1, 50), min_size=1, max_size=6),
    st.integers(1, 200),
)
def test_equal_parts_add_up_and_never_exceed_a_stratum(sizes: dict[str, int], n: int) -> None:
    got = equal_parts(sizes, n)
    assert sum(got.values()) == min(n, sum(sizes.values()))
    assert all(0 <= got[s] <= sizes[s] for s in sizes)


@given(
    st.dictionaries(st.text(min_size=1, max_size=3), st.integers(1, 90), min_size=1, max_size=6),
    st.integers(0, 9),
)
def test_blocks_are_in_proportion_to_the_strata_and_draw_everything(sizes: dict[str, int], seed: int) -> None:
    left = dict(sizes)
    for block in allocate(sizes, seed):
        total = sum(left.values())
        assert sum(block.values()) == min(BLOCK, total)
        # Of what is not a whole unit chance decides, up or down.
        assert all(
            abs(n - min(BLOCK, total) * left[s] / total) < 1 and n <= left[s] for s, n in block.items()
        )
        left = {s: left[s] - n for s, n in block.items()}
    assert not any(left.values())


@pytest.mark.parametrize("n", [1, 7, 60])
def test_every_unit_has_the_same_probability_however_small_its_stratum(n: int) -> None:
    # Strata of 1, 9 and 90 units. 4,000 seeds: the one unit of the first is drawn in n of 100, within 4 standard errors.
    pool = [
        Candidate(f"u{i}", f"u{i}", "a" if i == 0 else "b" if i < 10 else "c", place=i) for i in range(100)
    ]
    times = Counter(d.stratum for seed in range(4000) for d in draw(pool, n, seed))
    assert all(d.probability == n / 100 for d in draw(pool, n, 3))
    for stratum, size in (("a", 1), ("b", 9)):
        share = times[stratum] / 4000 / size
        assert abs(share - n / 100) < 4 * (n / 100 * (1 - n / 100) / 4000) ** 0.5


def test_a_larger_draw_begins_with_the_smaller_one_and_its_order_follows_from_the_seed() -> None:
    plan = BatchPlan("b", ("x",), 80, "label", seed=5, strata={"rare": 5, "common": 95})
    whole = draw(POOL, 80, 5)
    assert [d.unit_id for d in draw(POOL, 33, 5)] == [d.unit_id for d in whole[:33]]
    assert [d.unit_id for d in restore_order(whole[::-1], plan)] == [d.unit_id for d in whole]
    plain = draw([replace(c, stratum="all") for c in POOL], 80, 5)
    again = restore_order(plain[::-1], replace(plan, by=None, strata={}))
    assert [d.unit_id for d in again] == [d.unit_id for d in plain]


def test_weights_lead_back_to_the_frame() -> None:
    drawn = draw(POOL, 20, seed=17, equal=True)
    # 5 rare units, all taken: weight 1; 15 of the 95 common ones: weight 95 / 15.
    assert Counter(d.stratum for d in drawn) == {"rare": 5, "common": 15}
    assert sum(d.weight or 0 for d in drawn) == pytest.approx(100)
    # In proportion one is rare, and each stands for five.
    assert {d.weight for d in draw(POOL, 20, seed=17)} == {5.0}


def test_the_same_seed_gives_the_same_draw_whatever_the_order_of_rows() -> None:
    assert draw(POOL, 20, 1) == draw(POOL[::-1], 20, 1)
    assert draw(POOL, 20, 1) != draw(POOL, 20, 2)
    unsure = [replace(c, confidence=None) for c in POOL]
    assert [d.unit_id for d in draw(POOL, 20, 1)] == [d.unit_id for d in draw(unsure, 20, 1)]


def test_questions_stay_whole_or_give_equally_many() -> None:
    whole = draw_questions(framed(POOL), 4, 3)
    assert set(Counter(d.question_id for d in whole).values()) == {5} and len(whole) == 20
    part = draw_questions(framed(POOL), 10, 3, n=20)
    assert set(Counter(d.question_id for d in part).values()) == {2}
    assert sum(d.weight or 0 for d in part) == pytest.approx(100)
    with pytest.raises(UsageError, match="multiple"):
        draw_questions(framed(POOL), 3, 3, n=20)
    with pytest.raises(UsageError, match="only 20 questions"):
        draw_questions(framed(POOL), 21, 3)


def test_a_queue_takes_the_least_sure_and_has_no_weights() -> None:
    got = draw_queue(POOL, 3)
    assert [d.unit_id for d in got] == ["u0", "u1", "u2"] and all(d.weight is None for d in got)


def test_overlap_is_exact_and_work_is_even() -> None:
    drawn = draw(POOL, 30, 5)
    shares = assign(drawn, ["a", "b", "c"], 2, 5, together=False)
    times = Counter(u for blocks in shares.values() for block in blocks for u in block)
    assert set(times.values()) == {2} and len(times) == 30
    assert {len(blocks) for blocks in shares.values()} == {20}


def test_queues_differ_by_annotator_and_hold_repeats_late() -> None:
    shares = assign(draw(POOL, 40, 5), ["a", "b"], 2, 5, together=False)
    a = sequence(shares["a"], "a", 5, training=["t1", "t2"], attention=["x1"], repeats=0.1)
    b = sequence(shares["b"], "b", 5, training=["t1", "t2"], attention=["x1"], repeats=0.1)
    assert [p.unit_id for p in a] != [p.unit_id for p in b]
    assert Counter(p.role for p in a) == {"training": 2, "sample": 40, "repeat": 4, "attention": 1}
    assert [p.role for p in a[:2]] == ["training", "training"]
    place = {p.unit_id: i for i, p in enumerate(a) if p.role == "sample"}
    assert all(i > place[p.unit_id] for i, p in enumerate(a) if p.role == "repeat")


def test_a_question_is_seen_in_one_piece() -> None:
    drawn = draw_questions(framed(POOL), 6, 3)
    question = {d.unit_id: d.question_id for d in drawn}
    places = sequence(assign(drawn, ["a"], 1, 3, together=True)["a"], "a", 3)
    seen = [question[p.unit_id] for p in places]
    assert sum(a != b for a, b in itertools.pairwise(seen)) == 5


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
    result = probabilities(some, 100)
    assert sum(result.values()) == pytest.approx(100)
    by = {c.confidence: result[c.unit_id] for c in some}
    assert by[0.6] > by[0.95] > by[0.99] > 0
    # s = sqrt(c (1 - c)): .0995, .2179, .4899; sizes .25 + .75 s / mean are in the ratio of the probabilities.
    spread = {c: (c * (1 - c)) ** 0.5 for c in by}
    mean = np.mean([spread[c.confidence or 0] for c in some])
    assert by[0.6] / by[0.99] == pytest.approx(
        (0.25 + 0.75 * spread[0.6] / mean) / (0.25 + 0.75 * spread[0.99] / mean)
    )


def test_who_would_be_drawn_twice_is_drawn_for_certain() -> None:
    some = [Candidate(f"sure{i}", "q", confidence=0.999) for i in range(20)]
    some.append(Candidate("torn", "q", confidence=0.5))
    result = probabilities(some, 15)
    assert result["torn"] == 1.0 and sum(result.values()) == pytest.approx(15) and max(result.values()) == 1.0
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
            result = correct_mean(judged, human, weights=weight if drawn else None, bounds=(0.0, 1.0)).ppi
            assert result.value is not None and result.low is not None and result.high is not None
            values[way].append(result.value - truth.mean())
            widths[way].append(result.high - result.low)
    # 60 estimates with a standard error of about .025 each: three standard errors of their mean are .01.
    assert abs(np.mean(values["ppi"])) < 0.01
    assert np.mean(widths["ppi"]) < 0.93 * np.mean(widths["even"])
    assert np.std(values["ppi"]) < np.std(values["even"])


def test_a_batch_for_ppi_stores_its_probabilities_and_the_report_weighs_by_them(tmp_path: Path) -> None:
    db = planted(tmp_path, 120)
    rng = random.Random(5)
    labels = {f"study:{q:03}/0": gold(q, 0) if rng.random() < 0.8 else "neutral" for q in range(120)}
    sure = {unit: rng.choice([0.98, 0.5]) for unit in labels}
    masses = {u: [sure[u] if v == w else (1 - sure[u]) / 2 for v in LABELS] for u, w in labels.items()}
    add_run(db, "scripted/planted", labels, masses)
    new = ("batches", "new", "ppi", "stance", "-n", "30", "--draw", "ppi", "--annotators", "ann", "-d", db)
    made = json.loads(annotate(*new, "--json").stdout)
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
    assert f"{low:.3f} to {high:.3f}" in annotate("batches", "show", "ppi", "-d", db).stdout
    chance = {sure[unit]: p for unit, p, _ in rows}
    assert chance[0.5] > chance[0.98]
    assert own[rows[0][0]] / own[rows[1][0]] == pytest.approx(rows[0][2] / rows[1][2])
    told = annotate("batches", "extend", "ppi", "--to", "500", "-d", db, code=2).stderr
    assert "--draw ppi" in told


def test_for_ppi_needs_probabilities_and_takes_no_strata(tmp_path: Path) -> None:
    db = planted(tmp_path, 20)
    new = ("batches", "new", "b", "stance", "-n", "5", "--draw", "ppi", "--annotators", "ann", "-d", db)
    assert "--draw ppi needs a judge run" in annotate(*new, code=2).stderr
    add_run(db, "scripted/plain", {f"study:{q:03}/0": gold(q, 0) for q in range(20)})
    assert "stored distributions" in annotate(*new, code=2).stderr
    assert "do not apply" in annotate(*new, "--by", "dataset", code=2).stderr
