"""Every reference value that is printed in a paper or by a reference program."""

import pytest

from judge.stats import Ratings, measures
from judge.stats.aggregate import dawid_skene_counts
from tests.stats.published import COHEN, dawid_skene_1979, fleiss_1971, krippendorff_2011, two_annotators


def value(ratings: Ratings, name: str) -> float:
    (result,) = measures(ratings, [name], interval=None)
    assert result.value is not None
    return result.value


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # Krippendorff 2011, section C prints .743 .815 .849 .797; the further digits are the package's. Nominal by hand:
        # 40 pairable values: 9 of 1, 13 of 2, 10 of 3, 5 of 4, 3 of 5 (the single 3 of the last unit has no partner).
        # Disagreeing pairs / (m - 1): 6/3 in (2 2 3 2), 12/3 in (1 2 3 4), 6/3 in (1 1 2 1), together 8.
        # Expected: 40^2 - (81 + 169 + 100 + 25 + 9) = 1216 pairs of 40 * 39. alpha = 1 - 39 * 8 / 1216 = .743421
        ("krippendorff_alpha:nominal", 0.743421),
        ("krippendorff_alpha:ordinal", 0.815388),
        ("krippendorff_alpha:interval", 0.849107),
        ("krippendorff_alpha:ratio", 0.797403),
        # irrCAC 0.4.4 on raw4raters, which is the same table.
        ("gwet_ac1", 0.77544),
        ("fleiss_kappa", 0.76117),
        ("gwet_ac2:quadratic", 0.91400),
    ],
)
def test_krippendorff_2011(name: str, expected: float) -> None:
    assert value(krippendorff_2011(), name) == pytest.approx(expected, abs=6e-6)


@pytest.mark.parametrize(
    ("name", "expected"),
    # Fleiss 1971, p. 381 prints .430; digits by irrCAC and krippendorff.
    [("fleiss_kappa", 0.430245), ("krippendorff_alpha:nominal", 0.43341), ("gwet_ac1", 0.44788)],
)
def test_fleiss_1971(name: str, expected: float) -> None:
    assert value(fleiss_1971(), name) == pytest.approx(expected, abs=6e-6)


@pytest.mark.parametrize(
    ("name", "expected"),
    # Observed .70, by chance .41: .29 / .59 = .491525. Linear and quadratic by scikit-learn.
    [("cohen_kappa", 0.29 / 0.59), ("cohen_kappa:linear", 0.473684), ("cohen_kappa:quadratic", 0.454545)],
)
def test_cohen(name: str, expected: float) -> None:
    assert value(two_annotators(COHEN, 2), name) == pytest.approx(expected, abs=6e-7)


@pytest.mark.parametrize(
    ("cells", "kappa", "ac1"),
    [
        # Shares .49/.46 and .51/.54: p_e = .2254 + .2754 = .5008; (.85 - .5008) / .4992 = .6995
        # AC1: share .475, p_e = 2 * .475 * .525 = .49875; (.85 - .49875) / .50125 = .7007
        (((40, 9), (6, 45)), 0.700, 0.701),
        # Shares .90/.85: p_e = .765 + .015 = .78; .07 / .22 = .318. AC1: share .875, p_e = .21875; .808
        (((80, 10), (5, 5)), 0.318, 0.808),
    ],
)
def test_prevalence_paradox(cells: tuple[tuple[int, int], ...], kappa: float, ac1: float) -> None:
    table = two_annotators(cells)
    assert value(table, "percent") == pytest.approx(0.85)
    assert value(table, "cohen_kappa") == pytest.approx(kappa, abs=5e-4)
    assert value(table, "gwet_ac1") == pytest.approx(ac1, abs=5e-4)
    # PABAK = 2 * .85 - 1, whatever the prevalence.
    assert value(table, "pabak") == pytest.approx(0.7)


def test_dawid_skene_1979() -> None:
    result = dawid_skene_counts(dawid_skene_1979())
    assert result.converged
    # Table 2 of the paper.
    assert result.prevalence.round(2).tolist() == [0.40, 0.42, 0.11, 0.07]
    # Table 2, observer 1, true class 1 and 2: .89 .11 0 0 / .07 .88 .05 0.
    assert result.confusion[0, :2].round(2).tolist() == [[0.89, 0.11, 0, 0], [0.07, 0.88, 0.05, 0]]
    # Table 4: patient 3 is class 2 for sure although observers 1 and 3 mostly said 1.
    assert result.posterior[2].round(3).tolist() == [0, 1, 0, 0]
