"""Rogan and Gladen's corrected rate, and its interval: by hand, and by how often it holds the truth."""

import numpy as np
import pytest

from judge.errors import BadInput
from judge.notes import code_of
from judge.stats import correct_mean
from judge.stats.correction import effective_share
from judge.stats.prevalence import lang_reiczigel, rogan_gladen


def test_by_hand() -> None:
    # z = 1.959964, z^2 = 3.841459. P' = (100 .6 + 1.920729) / 103.841459 = .596301; Se' = 9/12, Sp' = 10/12.
    # Youden .583333; p = (.596301 + .833333 - 1) / .583333 = .736516.
    # Se'(1 - Se') / 12 = .015625, Sp'(1 - Sp') / 12 = .011574; P'(1 - P') / 103.841459 = .0023182.
    # s^2 = (.0023182 + .542456 .015625 + .069424 .011574) / .340278 = .034082; s = .184613.
    # d = 2 3.841459 (.736516 .015625 - .263484 .011574) = .064985.
    low, high = lang_reiczigel((0.6, 100), (0.8, 10), (0.9, 10))
    assert (low, high) == (pytest.approx(0.736516 + 0.064985 - 1.959964 * 0.184613, abs=2e-4), 1.0)
    # The judge tells nothing: the whole range.
    assert lang_reiczigel((0.6, 100), (0.3, 40), (0.4, 40)) == (0.0, 1.0)


def test_equal_units_of_a_cluster_count_as_one() -> None:
    # Every value four times, in a cluster: 50 clusters are worth 50 units (but for g / (g - 1)).
    values = np.repeat((np.arange(50) % 5 == 0).astype(float), 4)
    share, n = effective_share(values, np.ones(200), np.arange(200) // 4)
    assert share == pytest.approx(0.2)
    assert n == pytest.approx(49)
    assert effective_share(values, np.ones(200), np.arange(200))[1] == pytest.approx(199)
    assert effective_share(np.ones(200), np.ones(200), np.arange(200) // 4) == (1.0, 50.0)


@pytest.mark.parametrize(("rate", "se", "sp"), [(0.05, 0.8, 0.95), (0.1, 0.7, 0.9), (0.4, 0.85, 0.8)])
def test_the_interval_covers_the_true_rate(rate: float, se: float, sp: float) -> None:
    # 1,000 units judged, 100 labelled, drawn at random. A bootstrap covered .67 to .86 of such studies.
    rng = np.random.default_rng(round(100 * rate))
    covered = defined = 0
    for _ in range(300):
        truth = rng.random(1000) < rate
        judge = np.where(truth, rng.random(1000) < se, rng.random(1000) > sp).astype(float)
        human = np.where(np.arange(1000) < 100, truth, np.nan)
        result = rogan_gladen(judge, human)
        if result.value is not None:
            defined += 1
            covered += result.low <= rate <= result.high
    assert defined > 250
    # .95 less three standard errors of .0126.
    assert covered / defined > 0.912


def test_a_share_has_wilsons_bounds() -> None:
    # 5 of 100, by the formula with t(99) = 1.984217 on 99 effective units (n - 1, as the variance divides by it):
    # t^2 = 3.937117; (.05 + .019884 -+ 1.984217 sqrt(.05 .95 / 99 + 3.937117 / (4 99^2))) / 1.039769 = .02124 and .11318.
    values = np.array([1.0] * 5 + [0.0] * 95)
    result = correct_mean(values, values, bounds=(0, 1)).human_only
    assert (result.low, result.high) == (pytest.approx(0.02124, abs=1e-5), pytest.approx(0.11318, abs=1e-5))


def test_the_interval_of_a_rare_share_covers_it() -> None:
    # p = .05, 100 units: the standard error's interval covered .894.
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(400):
        values = (rng.random(100) < 0.05).astype(float)
        result = correct_mean(values, values, bounds=(0, 1)).human_only
        covered += result.low <= 0.05 <= result.high
    assert covered / 400 > 0.95 - 3 * 0.011


def test_rogan_gladen_by_hand() -> None:
    # On the people's 20: sensitivity 8/10, specificity 9/10. The judge says 1 on 60 of all 100: (.6 + .9 - 1) / .7
    y = np.array([1.0] * 10 + [0.0] * 10 + [np.nan] * 80)
    f = np.array([1.0] * 8 + [0.0] * 2 + [0.0] * 9 + [1.0] + [1.0] * 51 + [0.0] * 29)
    result = rogan_gladen(f, y)
    assert result.value == pytest.approx(0.5 / 0.7)
    assert result.low < 0.5 / 0.7 < result.high
    assert result.n_units == 100


def test_a_corrected_rate_is_clipped_to_its_range() -> None:
    y = np.array([1.0] * 10 + [0.0] * 10 + [np.nan] * 80)
    f = np.array([1.0] * 10 + [0.0] * 5 + [1.0] * 5 + [0.0] * 80)
    result = rogan_gladen(f, y)
    # p = .15, specificity .5: (.15 + .5 - 1) / .5 = -.7
    assert result.value == 0.0
    assert any("-0.700" in note for note in result.notes)


@pytest.mark.parametrize(
    ("f", "y", "reason"),
    [
        (
            [1, 0, 1, 0],
            [1, 1, np.nan, np.nan],
            "no unit has the human label 0, so the specificity is unknown",
        ),
        (
            [1, 0, 1, 0],
            [0, 0, np.nan, np.nan],
            "no unit has the human label 1, so the sensitivity is unknown",
        ),
        ([1, 0, 1, 0], [1, 1, 0, 0], "sensitivity + specificity is not above 1"),
        ([np.nan] * 4, [1, 1, 0, 0], "the judge labelled no unit"),
    ],
)
def test_a_rate_that_cannot_be_corrected_has_a_reason(f: list[float], y: list[float], reason: str) -> None:
    result = rogan_gladen(np.array(f, dtype=float), np.array(y, dtype=float))
    assert result.value is None
    assert (result.reason or "").startswith(reason)


def test_a_rate_needs_zeros_and_ones() -> None:
    with pytest.raises(BadInput, match="human must contain only 0, 1 and nan"):
        rogan_gladen(np.array([1.0]), np.array([0.5]))


def test_rogan_gladen_notes_how_few_units_its_shares_have() -> None:
    f, y = np.tile([1.0, 0.0], 200), np.full(400, np.nan)
    y[:60] = np.arange(60) % 3 == 0
    f[100] = np.nan
    result = rogan_gladen(f, y, interval=None)
    notes = {code_of(note): note.parameters for note in result.notes}
    assert notes == {"few_for_rates": {"ones": 20, "zeros": 40, "least": 50}, "left_out": {"n": 1}}
