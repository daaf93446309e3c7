"""Adjusted p-values against scipy and the definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from judge.stats.multiple import benjamini_yekutieli, holm

P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=12)


def test_holm_by_hand() -> None:
    # Sorted .01 .02 .03 .04, times 4 3 2 1: .04 .06 .06 .04, made monotone .04 .06 .06 .06.
    assert holm([0.03, 0.01, 0.04, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])


@given(p=P_VALUES)
def test_benjamini_yekutieli_equals_scipy(p: list[float]) -> None:
    assert benjamini_yekutieli(p) == pytest.approx(false_discovery_control(p, method="by"), abs=1e-12)


@given(p=P_VALUES)
def test_holm_rejects_what_its_steps_reject(p: list[float]) -> None:
    order = np.argsort(p, kind="stable")
    rejected = np.zeros(len(p), dtype=bool)
    for step, i in enumerate(order):
        if p[i] * (len(p) - step) > 0.05:
            break
        rejected[i] = True
    assert ((holm(p) <= 0.05) == rejected).all()
