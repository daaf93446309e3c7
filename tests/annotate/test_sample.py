"""Draws: seeded, stratified, weighted; who gets what in which order."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotate.drawing.frame import Candidate
from annotate.drawing.sample import allocate, assign, draw, draw_questions, draw_queue, sequence
from judge.errors import UsageError
from tests.annotate.agreement_helpers import framed

POOL = [
    Candidate(f"u{i}", f"q{i // 5}", "rare" if i % 20 == 0 else "common", i / 100, place=i)
    for i in range(100)
]


@given(
    st.dictionaries(st.text(min_size=1, max_size=3), st.integers(1, 50), min_size=1, max_size=6),
    st.integers(1, 200),
    st.booleans(),
)
def test_allocation_adds_up_and_never_exceeds_a_stratum(
    sizes: dict[str, int], n: int, proportional: bool
) -> None:
    got = allocate(sizes, n, proportional=proportional)
    assert sum(got.values()) == min(n, sum(sizes.values()))
    assert all(0 <= got[s] <= sizes[s] for s in sizes)
    if n >= len(sizes):
        assert all(got[s] >= 1 for s in sizes)


def test_weights_lead_back_to_the_frame() -> None:
    drawn = draw(POOL, 20, seed=17)
    # 5 rare units, all taken: weight 1; 15 of the 95 common ones: weight 95 / 15.
    assert Counter(d.stratum for d in drawn) == {"rare": 5, "common": 15}
    assert sum(d.weight or 0 for d in drawn) == pytest.approx(100)


def test_the_same_seed_gives_the_same_draw_whatever_the_order_of_rows() -> None:
    assert draw(POOL, 20, 1) == draw(POOL[::-1], 20, 1)
    assert draw(POOL, 20, 1) != draw(POOL, 20, 2)
    assert {d.unit_id for d in draw(POOL, 20, 1)} == {
        d.unit_id for d in draw([replace(c, confidence=None) for c in POOL], 20, 1)
    }


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
