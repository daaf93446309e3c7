"""The bootstrap: the law of its resamples, BCa, its fallbacks, its settings."""

import krippendorff
import numpy as np
import pytest
from scipy import stats

from judge.errors import BadInput
from judge.stats import METRICS, Ratings, mean, measures
from judge.stats.bootstrap import IntervalOptions, IntervalSettings, bootstrap, resample
from judge.stats.metrics import estimate
from judge.stats.patterns import Tally, canonical, collapse, tally_units

RNG = np.random.default_rng(11)


def table(n: int = 120, per_cluster: int = 1) -> Ratings:
    truth = RNG.integers(0, 3, n)
    codes = np.where(RNG.random((n, 3)) < 0.6, truth[:, None], RNG.integers(0, 3, (n, 3)))
    codes[RNG.random(codes.shape) < 0.1] = -1
    return Ratings.from_codes(codes, list("abc"), list("xyz"), clusters=np.arange(n) // per_cluster)


@pytest.mark.parametrize("per_cluster", [1, 6])
def test_resamples_have_the_distribution_of_a_loop_over_the_package(per_cluster: int) -> None:
    ratings = table(120, per_cluster)
    estimated = estimate(METRICS["krippendorff_alpha:nominal"], ratings, collapse(ratings.counts))
    drawn = estimated.value(resample([estimated.tally], IntervalSettings(replicates=4000, seed=3))[0])
    rng = np.random.default_rng(4)
    # The loop draws what we draw: clusters that have a unit with two labels.
    counts = ratings.counts[ratings.counts.sum(axis=1) >= 2]
    clusters = ratings.clusters[ratings.counts.sum(axis=1) >= 2]
    groups = [counts[clusters == c] for c in np.unique(clusters)]
    loop = []
    for _ in range(1500):
        sample = np.concatenate([groups[i] for i in rng.integers(0, len(groups), len(groups))])
        loop.append(krippendorff.alpha(value_counts=sample, level_of_measurement="nominal"))
    # The error of a mean of 1,500 is sd / 39, of a standard deviation about sd / 55.
    assert drawn.mean() == pytest.approx(np.mean(loop), abs=4 * np.std(loop) / 39)
    assert drawn.std() == pytest.approx(np.std(loop), rel=0.08)
    assert stats.ks_2samp(drawn, loop).pvalue > 1e-3


def test_many_clusters_drawn_in_blocks_have_the_same_distribution() -> None:
    # 20,000 clusters: a skewed number x that belongs to its size m, and a mark on three of them.
    rng = np.random.default_rng(8)
    m = rng.integers(1, 6, 20_000).astype(float)
    x = m * rng.exponential(1.0, 20_000)
    marked = np.zeros(20_000)
    marked[[17, 9_000, 9_001]] = 1
    rows = np.column_stack([x, m, marked])
    tally = Tally(rows, np.ones(20_000, dtype=np.int64), b"")
    (sums,) = resample([tally], IntervalSettings(replicates=4000))
    # The law of 20,000 draws: each sum's mean is its total, their covariance 20,000 times that of the rows. Blocks by
    # lot cost the spread 1 / sqrt(2 * 4096) = 1.1 % and 4,000 replicates the same; four of both together are 6 %.
    assert sums[:, :2].mean(axis=0) == pytest.approx(rows.sum(axis=0)[:2], rel=1e-3)
    ratio = sums[:, 0] / sums[:, 1]
    residual = (x - x.sum() / m.sum() * m) / m.mean()
    assert ratio.std() == pytest.approx(residual.std() / np.sqrt(20_000), rel=0.065)
    # Marks are Poisson(3): none at all in e^-3 = 0.0498 of the draws, whose error is sqrt(.05 * .95 / 4000) = .0034.
    assert (sums[:, 2] == 0).mean() == pytest.approx(np.exp(-3), abs=4 * 0.0034)
    # The mark's third central moment is Poisson's, 3, over 3^1.5: skewness 0.58.
    assert stats.skew(sums[:, 2]) == pytest.approx(3**-0.5, abs=0.2)


def test_counts_of_distinct_rows_are_drawn_in_blocks_too() -> None:
    # 6,000 distinct values twice each are 12,000 things drawn, not 6,000: the mean's error is sd / sqrt(12,000).
    x = np.random.default_rng(9).normal(size=6_000)
    tally = Tally(np.column_stack([x, np.ones(6_000)]), np.full(6_000, 2, dtype=np.int64), b"")
    (sums,) = resample([tally], IntervalSettings(replicates=4000))
    assert (sums[:, 0] / sums[:, 1]).std() == pytest.approx(x.std() / np.sqrt(12_000), rel=0.065)


def test_both_ways_of_drawing_have_the_same_distribution() -> None:
    # 5 distinct rows: multinomial; the same rows told apart by a hair: index draws.
    values = RNG.integers(0, 5, 400).astype(float)
    rows, count = np.unique(values, return_counts=True)
    few = Tally(np.column_stack([rows, np.ones(5)]), count, b"")
    many = Tally(np.column_stack([values, np.ones(400)]), np.ones(400, dtype=int), b"")
    half = Tally(np.column_stack([np.repeat(rows, 20), np.ones(100)]), np.tile([1, 7], 50), b"")
    for tally in (few, many, half):
        (sums,) = resample([tally], IntervalSettings(replicates=5000))
        assert (sums[:, 1] == tally.n_clusters).all()
        centre, spread = (
            tally.total[0],
            np.sqrt(tally.count @ (tally.rows[:, 0] - tally.total[0] / tally.n_clusters) ** 2),
        )
        assert sums[:, 0].mean() == pytest.approx(centre, abs=4 * spread / np.sqrt(5000))
        assert sums[:, 0].std() == pytest.approx(spread, rel=0.05)


def test_bca_formula() -> None:
    # Efron & Tibshirani 1993, eq. 14.10-14.15, step by step on the same resamples.
    values = np.array([1.0, 2.0, 2.5, 4.0, 9.0, 1.5, 3.0, 20.0])
    tally = Tally(np.column_stack([values, np.ones(8)]), np.ones(8, dtype=int), b"")

    def average(sums: np.ndarray) -> np.ndarray:
        return sums[:, 0] / sums[:, 1]

    result = bootstrap(tally, average, IntervalSettings(replicates=999, seed=8))
    drawn = average(resample([tally], IntervalSettings(replicates=999, seed=8))[0])
    theta = values.mean()
    z0 = stats.norm.ppf(((drawn < theta).sum() + (drawn == theta).sum() / 2) / 999)
    jack = np.array([np.delete(values, i).mean() for i in range(8)])
    d = jack.mean() - jack
    a = (d**3).sum() / (6 * (d**2).sum() ** 1.5)
    # Few values carry the variance, so the quantiles are those of Student's t with one less degree of freedom, at least 3.
    freedom = max(3.0, (d**2).sum() ** 2 / (d**4).sum() - 1)
    levels = [
        stats.norm.cdf(z0 + (z0 + t) / (1 - a * (z0 + t))) for t in stats.t.ppf([0.025, 0.975], freedom)
    ]
    assert [result.low, result.high] == pytest.approx(np.quantile(drawn, levels).tolist())


def test_percentile_is_the_quantile_of_the_resamples() -> None:
    values = np.arange(20.0)
    result = mean(values, interval="percentile", confidence=0.8)
    tally = Tally(np.column_stack([values, np.ones(20)]), np.ones(20, dtype=int), b"")
    (sums,) = resample([tally], IntervalSettings())
    # Kish's effective number of squared deviations from 9.5: (sum d^2)^2 / sum d^4 = 665^2 / 39,733.
    freedom = 665.0**2 / float(((values - 9.5) ** 4).sum()) - 1
    levels = stats.norm.cdf(stats.t.ppf([0.1, 0.9], freedom))
    assert (result.low, result.high) == pytest.approx(tuple(np.quantile(sums[:, 0] / 20, levels)))
    assert result.confidence == 0.8


def test_many_undefined_resamples_leave_no_interval() -> None:
    # One unit holds the second label: leaving it out leaves nothing to correct for chance.
    codes = np.array([[0, 0]] * 60 + [[1, 1]])
    result = measures(Ratings.from_codes(codes, ["a", "b"], ["x", "y"]), ["krippendorff_alpha"])[0]
    assert result.value == 1.0
    # About 37 % of the resamples miss that unit and have one label only.
    assert any("of the resamples are undefined" in note for note in result.notes)
    assert result.low is None


def test_bca_falls_back_to_percentile_with_a_note() -> None:
    def undefined_without_one(sums: np.ndarray) -> np.ndarray:
        return np.where(sums.sum(axis=1) < 50, np.nan, sums[:, 0])

    pair = Tally(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([20, 30]), b"")
    fallen = bootstrap(pair, undefined_without_one, IntervalSettings())
    assert "percentile interval: the BCa correction is undefined here" in fallen.notes
    plain = bootstrap(pair, undefined_without_one, IntervalSettings(interval="percentile"))
    assert (fallen.low, fallen.high) == (plain.low, plain.high)
    assert plain.notes == ()


def test_the_same_seed_gives_the_same_interval() -> None:
    ratings = table(80, 4)
    first = measures(ratings, ["krippendorff_alpha"], seed=1)[0]
    assert measures(ratings, ["krippendorff_alpha"], seed=1)[0] == first
    assert measures(ratings, ["krippendorff_alpha"], seed=2)[0] != first


def test_an_interval_does_not_depend_on_other_measures() -> None:
    ratings = table(80, 4)
    alone = measures(ratings, ["krippendorff_alpha"])[0]
    together = {m.measure: m for m in measures(ratings, ["percent", "krippendorff_alpha", "gwet_ac1"])}
    assert together["krippendorff_alpha"].low == pytest.approx(alone.low, abs=1e-12)
    assert together["krippendorff_alpha"].high == pytest.approx(alone.high, abs=1e-12)


def test_a_higher_confidence_gives_a_wider_interval() -> None:
    ratings = table()
    narrow = measures(ratings, ["krippendorff_alpha"], confidence=0.8)[0]
    wide = measures(ratings, ["krippendorff_alpha"], confidence=0.99)[0]
    assert wide.low < narrow.low < narrow.value < narrow.high < wide.high
    bare = measures(ratings, ["krippendorff_alpha"], interval=None)[0]
    assert (bare.low, bare.high, bare.value) == (None, None, narrow.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"interval": "normal"}, "unknown interval 'normal'"),
        ({"confidence": 1.0}, "confidence must be between 0 and 1"),
        ({"confidence": 95}, "confidence must be between 0 and 1"),
        ({"replicates": 50}, "from 100 to 1,000,000, not 50"),
        ({"replicates": 100_000_000}, "from 100 to 1,000,000, not 100,000,000"),
        ({"seed": -1}, "seed"),
    ],
)
def test_settings_out_of_range_are_refused(options: IntervalOptions, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        measures(table(), **options)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(BadInput, match="unknown measure 'kappa'; available: percent, cohen_kappa"):
        measures(table(), ["kappa"])
    with pytest.raises(BadInput, match="unknown level 'rank'"):
        measures(table(), level="rank")


def test_collapse_keeps_every_row() -> None:
    for high in (2, 50, 10**9):  # counting table, sort of keys, sort of rows
        rows = RNG.integers(-1, high, (300, 5 if high < 100 else 9))
        result = collapse(rows)
        assert (result.rows[result.of_unit] == rows).all()
        assert result.rows.tolist() == np.unique(rows, axis=0).tolist()
        assert result.count.sum() == 300


def test_single_precision_changes_no_sum() -> None:
    # Whole numbers whose sums stay below 2^24 go by single precision; their halves, some of them odd, do not. Halving
    # is exact, so both give the same sums, and the last table, whose sums pass 2^24, must not be rounded either.
    rows = RNG.integers(0, 4000, (400, 6)).astype(float)
    for table_rows in (rows, rows * 4096 + 1):
        (whole,) = resample(
            [Tally(table_rows, np.ones(400, dtype=int), b"")], IntervalSettings(replicates=300)
        )
        (half,) = resample(
            [Tally(table_rows / 2, np.ones(400, dtype=int), b"")], IntervalSettings(replicates=300)
        )
        assert (whole == np.rint(whole)).all()
        assert (whole == 2 * half).all()


def test_sums_by_cluster_do_not_depend_on_the_number_of_patterns() -> None:
    features = RNG.normal(size=(5, 3))
    of_unit, clusters = RNG.integers(0, 5, 300), RNG.integers(0, 40, 300)
    few = tally_units(features, of_unit, clusters)  # 40 x 5 cells for 300 units: counted
    many = tally_units(features[of_unit], np.arange(300), clusters)  # 40 x 300 cells: column by column
    assert few.key == many.key
    assert few.rows == pytest.approx(many.rows, abs=1e-12)


@pytest.mark.parametrize("count", [[1] * 7, [3, 1, 5]])
def test_every_resample_draws_the_units_with_replacement_for_each_measure_alike(count: list[int]) -> None:
    rows = np.arange(2.0 * len(count)).reshape(-1, 2)
    order = canonical(rows, np.array(count))
    units, rng = np.repeat(rows[order], np.array(count)[order], axis=0), np.random.default_rng(4)
    drawn = [rng.integers(0, len(units), len(units), dtype=np.uint16) for _ in range(100)]
    tally, settings = Tally(rows, np.array(count), b""), IntervalSettings(replicates=100, seed=4)
    for _ in ("one measure", "the next"):
        [sums] = resample([tally], settings)
        assert sums.tolist() == [units[draw].sum(axis=0).tolist() for draw in drawn]
