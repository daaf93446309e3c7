"""What resampling cannot see: total agreement, none at all, and intervals that may not leave the scale."""

import numpy as np
import pytest

from judge.notes import code_of
from judge.stats import Ratings, class_scores, compare, measures
from judge.stats.bootstrap import NO_WIDTH

# The largest share of 40 trials that may still hide when none was seen: 1 - .025^(1/40) = .08810.
UNSEEN = 1 - 0.025 ** (1 / 40)


def pair(codes: list[list[int]], domain: str = "ab", clusters: np.ndarray | None = None) -> Ratings:
    return Ratings.from_codes(np.array(codes), list(domain), ["x", "y"], clusters=clusters)


def test_total_agreement_in_three_questions_stays_on_the_scale() -> None:
    # 3 questions x 10 units, all equal, one of ten "b": 1 - .025^(1/3) = .708 over the chance of .18 would
    # reach down to -2.93, and no kappa lies below -1.
    table = pair([[0, 0]] * 9 * 3 + [[1, 1]] * 3, clusters=np.array([*np.repeat(range(3), 9), 0, 1, 2]))
    for result in measures(table, ["cohen_kappa", "fleiss_kappa", "krippendorff_alpha"]):
        assert (result.value, result.low, result.high) == (1.0, -1.0, 1.0)
        assert any("possible value -1" in note for note in result.notes)
    # AC1: chance 1 - 2 * .1 * .9 = .82 leaves room: 1 - .708 / .82 = .137.
    percent, ac1, pabak = measures(table, ["percent", "gwet_ac1", "pabak"])
    share = 1 - 0.025 ** (1 / 3)
    assert percent.low == pytest.approx(1 - share)
    assert ac1.low == pytest.approx(1 - share / 0.82)
    assert pabak.low == pytest.approx(1 - share / 0.5)
    assert not any("cut" in note for m in (percent, ac1, pabak) for note in m.notes)


def test_a_difference_of_zero_has_no_interval() -> None:
    codes = np.array(([[0, 0, 0]] * 9 + [[1, 1, 1]]) * 3)
    table = Ratings.from_codes(codes, ["a", "b"], list("xyz"), clusters=np.arange(30) // 10)
    for measure in ("cohen_kappa", "percent"):
        [result] = compare(table, ["x", "z"], "y", measure)
        assert (result.difference.value, result.difference.low, result.difference.high) == (0.0, None, None)
        assert code_of(result.difference.notes[0]) == "same_everywhere"
        assert result.p_value == result.adjusted == 1.0


def test_no_agreement_has_the_exact_upper_bound() -> None:
    # 40 units, never equal, two labels with margins one half each.
    table = pair([[0, 1], [1, 0]] * 20)
    result = {
        m.measure: m
        for m in measures(table, ["percent", "pabak", "gwet_ac1", "fleiss_kappa", "krippendorff_alpha"])
    }
    assert (result["percent"].value, result["percent"].low) == (0.0, 0.0)
    assert result["percent"].high == pytest.approx(UNSEEN)
    # On the scale of the coefficients a share of agreement counts twice: chance is 1/2.
    for name in ("pabak", "gwet_ac1", "fleiss_kappa"):
        assert (result[name].value, result[name].low) == pytest.approx((-1.0, -1.0))
        assert result[name].high == pytest.approx(-1 + 2 * UNSEEN)
        assert any("exact binomial bound" in note for note in result[name].notes)
    # Alpha: De = 2 * 40 * 40 / (80 * 79) = .50633, 1 - 1 / .50633 = -.975.
    assert result["krippendorff_alpha"].high == pytest.approx(-0.975 + UNSEEN / 0.5063291)
    accuracy = class_scores(table, "x", "y")[0]
    assert (accuracy.low, accuracy.high) == pytest.approx((0.0, UNSEEN))


def test_kappa_without_any_agreement_has_the_exact_upper_bound_too() -> None:
    # Here margins vary from resample to resample, so kappa has a width, but agreement never occurs.
    (result,) = measures(pair([[0, 1]] * 10 + [[1, 0]] * 30), ["cohen_kappa"])
    # Margins (1/4, 3/4) against (3/4, 1/4): disagreement by chance 10/16, kappa = 1 - 1.6 = -.6.
    assert result.value == pytest.approx(-0.6)
    assert result.high is not None and result.high >= -0.6 + UNSEEN / 0.625
    assert result.low is not None and -1.0 <= result.low < -0.8


def test_equal_questions_keep_the_note_that_no_resample_differs() -> None:
    # 12 questions, each 8 units agreed on and 2 not: every resample of questions gives the same value, which is
    # no end of the scale, so nothing exact can be said and the note must stay.
    pairs = [[0, 0]] * 4 + [[1, 1]] * 4 + [[0, 1], [1, 0]]
    table = pair(pairs * 12, clusters=np.arange(120) // 10)
    for result in measures(table, ["percent", "cohen_kappa", "krippendorff_alpha"]):
        assert result.low == result.high == pytest.approx(result.value)
        assert NO_WIDTH in result.notes
