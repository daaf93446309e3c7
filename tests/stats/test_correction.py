"""PPI++."""

import numpy as np
import pytest
from scipy import stats

from judge.errors import BadInput
from judge.notes import Note, code_of
from judge.stats import correct_mean
from judge.stats.prevalence import rogan_gladen


def sample(n: int = 40, rest: int = 400, noise: float = 0.6) -> tuple[np.ndarray, np.ndarray]:
    """A judge that is .3 too high; people labelled the first n."""
    rng = np.random.default_rng(7)
    y = rng.normal(size=n + rest)
    f = y + rng.normal(scale=noise, size=n + rest) + 0.3
    y[n:] = np.nan
    return f, y


# ppi_py 0.2.3, ppi_mean_pointestimate and the half width of ppi_mean_ci(alpha=.05), on exactly this sample.
@pytest.mark.parametrize(
    ("lam", "value", "half", "used"),
    [
        (1.0, 0.06201903, (0.26200758 + 0.13796952) / 2, 1.0),
        (0.5, -0.16658307, (0.32060074 - 0.01256539) / 2, 0.5),
        (None, -0.16585653, (0.319756 - 0.01195705) / 2, 0.5015890931857138),
    ],
)
def test_the_estimate_equals_that_of_the_authors_package(
    lam: float | None, value: float, half: float, used: float
) -> None:
    f, y = sample()
    result = correct_mean(f, y, lam=lam)
    assert result.lam == pytest.approx(used, abs=1e-12)
    assert result.ppi.value == pytest.approx(value, abs=1e-8)
    # The package divides by n and takes normal quantiles; ours are g / (g - 1) and t(39).
    wider = np.sqrt(40 / 39) * stats.t.ppf(0.975, 39) / stats.norm.ppf(0.975)
    assert (result.ppi.high - result.ppi.low) / 2 == pytest.approx(half * wider, rel=1e-4)


def test_judge_only_human_only_and_ppi() -> None:
    f, y = sample()
    result = correct_mean(f, y)
    assert result.judge_only.value == pytest.approx(f.mean())
    assert result.human_only.value == pytest.approx(np.nanmean(y))
    # With units of their own the human interval is Student's.
    low, high = stats.t.interval(0.95, 39, np.nanmean(y), stats.sem(y[:40]))
    assert (result.human_only.low, result.human_only.high) == pytest.approx((low, high))
    assert result.ppi.high - result.ppi.low < high - low
    assert (result.judge_only.n_units, result.human_only.n_units, result.ppi.n_units) == (440, 40, 440)


@pytest.mark.parametrize(
    ("change", "note"),
    [
        (lambda f, y: (np.ones_like(f), y), "human only: the judge gives the same value everywhere"),
        (lambda f, y: (-f, y), "human only: the judge's values do not increase with the human labels"),
        (lambda f, y: (f[:40], y[:40]), "human only: every unit has a human label"),
    ],
)
def test_it_falls_back_to_human_only(change: object, note: str) -> None:
    result = correct_mean(*change(*sample()))  # type: ignore[operator]
    assert result.lam == 0.0
    assert result.ppi.notes == (note,)
    assert result.ppi.value == pytest.approx(result.human_only.value)
    assert result.ppi.low == pytest.approx(result.human_only.low)


def test_copies_of_units_in_a_question_add_nothing() -> None:
    f, y = sample()
    once = correct_mean(f, y, lam=0.5)
    copied = correct_mean(np.repeat(f, 6), np.repeat(y, 6), clusters=np.arange(440).repeat(6), lam=0.5)
    for name in ("judge_only", "human_only", "ppi"):
        first, second = getattr(once, name), getattr(copied, name)
        assert (second.value, second.low, second.high) == pytest.approx((first.value, first.low, first.high))
        assert second.n_clusters == first.n_clusters


@pytest.mark.parametrize("clustered", [False, True])
def test_intervals_cover(clustered: bool) -> None:
    rng = np.random.default_rng(1)
    hits = {"judge_only": 0, "human_only": 0, "ppi": 0}
    for _ in range(400):
        # 60 questions of 4 units; a question moves its units together. 15 questions are labelled.
        shared = rng.normal(scale=1.0 if clustered else 0.0, size=60).repeat(4)
        y = shared + rng.normal(size=240)
        f = 0.8 * y + rng.normal(scale=0.5, size=240) + 0.5
        y[60:] = np.nan
        result = correct_mean(f, y, clusters=np.arange(240) // 4)
        for name in hits:
            measure = getattr(result, name)
            hits[name] += measure.low <= 0.0 <= measure.high
    # 400 intervals: the share has a standard error of .011.
    assert 0.92 <= hits["human_only"] / 400 <= 0.98
    assert 0.91 <= hits["ppi"] / 400 <= 0.98
    assert hits["judge_only"] / 400 < 0.5  # the judge alone is .5 too high


def test_one_labelled_question_is_not_enough() -> None:
    f, y = sample(8, 80)
    result = correct_mean(f, y, clusters=np.arange(88) // 8)
    assert result.ppi.value is None
    assert result.ppi.reason == "fewer than two questions or units have a human label"
    assert result.human_only.value is not None
    assert result.human_only.low is None
    nobody = correct_mean(f, np.full(88, np.nan))
    assert nobody.human_only.reason == "no unit has a value"
    assert nobody.lam is None


def test_bad_arrays_are_refused() -> None:
    f, y = sample()
    with pytest.raises(BadInput, match="440 judge values, but 40 human values"):
        correct_mean(f, y[:40])
    with pytest.raises(BadInput, match="lambda must be from 0 to 1"):
        correct_mean(f, y, lam=1.5)
    with pytest.raises(BadInput, match="must be finite"):
        correct_mean(np.full(440, np.inf), y)
    with pytest.raises(BadInput, match="must be numbers"):
        correct_mean(["yes"] * 440, y)


def test_weights_by_hand() -> None:
    nan = np.nan
    f, y = [1, 1, 0, 0, 1, 0], [1, 0, 0, nan, nan, nan]
    result = correct_mean(f, y, weights=[1, 1, 4, nan, nan, nan], lam=0.5)
    # People: (1 + 0 + 4 x 0) / 6. The judge on these: (1 + 1 + 0) / 6, everywhere 3/6. Six units judged, three of
    # them without a label: 1/6 + 0.5 x 6/3 x (1/2 - 1/3).
    assert result.human_only.value == pytest.approx(1 / 6)
    assert result.ppi.value == pytest.approx(1 / 3)
    assert result.judge_only.value == 0.5
    # The weighted shares are the same in a rate: judge 1/2; sensitivity 1/1, specificity 4/5.
    rate = rogan_gladen(f, y, weights=[1, 1, 4, nan, nan, nan], interval=None)
    assert rate.value == pytest.approx((0.5 + 0.8 - 1) / (1 + 0.8 - 1))


def test_equal_weights_have_no_effect() -> None:
    f, y = sample()
    plain, weighted = correct_mean(f, y), correct_mean(f, y, weights=np.full(440, 11.0))
    assert weighted.lam == pytest.approx(plain.lam)
    assert weighted.ppi.value == pytest.approx(plain.ppi.value)
    assert weighted.human_only.low == pytest.approx(plain.human_only.low)
    # The judge's means differ a little in what they are centred on; so do the intervals.
    assert weighted.ppi.high - weighted.ppi.low == pytest.approx(plain.ppi.high - plain.ppi.low, rel=0.05)


def test_a_sample_with_equal_strata_needs_weights() -> None:
    rng = np.random.default_rng(3)
    values: dict[str, list[float]] = {"plain": [], "human": [], "ppi": []}
    covered = {"human": 0, "ppi": 0}
    for _ in range(300):
        # The judge says 1 on a fifth of 1,000 units, and is right on four of five; 60 of each label are labelled.
        f = (rng.random(1000) < 0.2).astype(float)
        truth = np.where(rng.random(1000) < 0.8, f, 1 - f)
        y, weights = np.full(1000, np.nan), np.full(1000, np.nan)
        for label in (0.0, 1.0):
            there = np.flatnonzero(f == label)
            drawn = rng.choice(there, 60, replace=False)
            y[drawn], weights[drawn] = truth[drawn], len(there) / 60
        result = correct_mean(f, y, weights=weights, bounds=(0, 1))
        values["plain"].append(correct_mean(f, y).human_only.value or 0)
        for name, measure in (("human", result.human_only), ("ppi", result.ppi)):
            assert measure.value is not None and measure.low is not None and measure.high is not None
            values[name].append(measure.value)
            covered[name] += measure.low <= 0.32 <= measure.high
    # The rate is .2 x .8 + .8 x .2 = .32; the sample without weights says (.8 + .2) / 2.
    assert np.mean(values["plain"]) == pytest.approx(0.5, abs=0.01)
    assert np.mean(values["human"]) == pytest.approx(0.32, abs=0.01)
    assert np.mean(values["ppi"]) == pytest.approx(0.32, abs=0.01)
    assert min(covered.values()) / 300 >= 0.91, covered  # .95 with a standard error of .013


def test_a_share_stays_in_its_bounds_and_has_the_exact_bound() -> None:
    f = np.array([0.0, 1.0] * 10)
    y = np.full(20, np.nan)
    y[:12] = 0.0
    result = correct_mean(f, y, bounds=(0, 1)).human_only
    # None in twelve: the exact bound is the share that shows none in twelve once in forty times.
    assert (result.value, result.low) == (0.0, 0.0)
    assert result.high == pytest.approx(1 - 0.025 ** (1 / 12))
    assert "all_same" in map(code_of, result.notes)
    without = correct_mean(f, y).human_only
    assert (without.low, without.high) == (None, None)
    assert "no interval: all values are the same" in without.notes
    y[:12] = [0] * 11 + [1]
    wide = correct_mean(f, y, bounds=(0, 1)).human_only
    assert 0 < wide.low < 1 / 12, (
        "Student's interval would start below 0; Wilson's does not, and one was seen"
    )


def test_bad_weights_are_refused() -> None:
    f, y = sample()
    with pytest.raises(BadInput, match="a weight above 0"):
        correct_mean(f, y, weights=np.where(np.arange(440) == 3, np.nan, 1.0))
    with pytest.raises(BadInput, match="39 weights for 440 units"):
        correct_mean(f, y, weights=np.ones(39))


def test_human_labels_of_units_that_the_judge_refused_count() -> None:
    # The judge refuses the units of which the label is 1: 20 of 60 labelled ones, 60 of 200 others.
    f = np.r_[np.full(20, np.nan), np.zeros(40), np.full(60, np.nan), np.zeros(140)]
    y = np.r_[np.ones(20), np.zeros(40), np.full(200, np.nan)]
    result = correct_mean(f, y, bounds=(0, 1))
    assert result.judge_only.value == 0.0 and result.judge_only.n_units == 180
    assert result.human_only.value == result.ppi.value == pytest.approx(1 / 3)
    assert (result.ppi.low, result.ppi.high) == (result.human_only.low, result.human_only.high)
    # A judge that tells units apart where it speaks: 0 on those 40 and on 100 others, 1 on 40 of the others.
    f[220:] = 1.0
    moved = correct_mean(f, y, lam=0.5)
    # Its mean is 40 / 180 and stands for what it refused: on the labelled units (20 m + 0) / 60 with m = 2/9, on the
    # others (60 m + 40) / 200.
    assert moved.ppi.value == pytest.approx(1 / 3 + 0.5 * ((60 * 2 / 9 + 40) / 200 - (20 * 2 / 9) / 60))
    assert Note("filled", n=80) in moved.ppi.notes
    silent = correct_mean(np.full(260, np.nan), y)
    assert silent.judge_only.value is None and silent.ppi.value == pytest.approx(1 / 3)
    assert "human only: the judge has no value" in silent.ppi.notes


@pytest.mark.parametrize(("share", "n"), [(0.02, 50), (0.05, 100), (0.05, 300)])
def test_a_rare_label_keeps_its_coverage_and_is_never_wider_than_people_alone(share: float, n: int) -> None:
    """Without two pseudo-residuals these cells covered .86 to .94. Of 120 studies .93 less two standard errors are .883."""
    rng = np.random.default_rng(11)
    covered = 0
    for _ in range(120):
        y = (rng.random(2000) < share).astype(float)
        f = np.where(y == 1, rng.random(2000) < 0.6, rng.random(2000) < 0.01).astype(float)
        human = np.full(2000, np.nan)
        drawn = rng.permutation(2000)[:n]
        human[drawn] = y[drawn]
        result = correct_mean(f, human, bounds=(0.0, 1.0))
        covered += result.ppi.low <= share <= result.ppi.high
        assert result.ppi.high - result.ppi.low <= result.human_only.high - result.human_only.low + 1e-12
    assert covered / 120 > 0.883
