"""Distributions a column at a time are what JSON says, whatever the layout."""

import json

import numpy as np
import pytest

from judge.labels import masses

DOMAIN = ["yes", 'a "quoted": 1e5', "nein, ü%s"]


def text(row: dict[str, float]) -> str:
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))


def test_equal_and_mixed_layouts_are_read_alike() -> None:
    same = [{"yes": 0.5, DOMAIN[1]: 1e-05, DOMAIN[2]: 0.49999, "unassigned": 0.0}] * 3
    turned = [{DOMAIN[2]: 0.25, "yes": 0.75, "unassigned": 0.0}]
    plain = masses.read_distributions([text(r) for r in same], DOMAIN)
    assert plain.tolist() == [[0.5, 1e-05, 0.49999]] * 3
    mixed = masses.read_distributions([text(same[0]), None, text(turned[0])], DOMAIN)
    assert mixed[[0, 2]].tolist() == [[0.5, 1e-05, 0.49999], [0.75, 0.0, 0.25]]
    assert np.isnan(mixed[1]).all()


def test_written_distributions_are_json_and_can_be_read_back() -> None:
    p = np.array([[0.2, 0.3, 0.5], [np.nan] * 3, [1e-9, 0.0, 1.0]])
    written = masses.write(p, DOMAIN)
    assert written[1] is None and json.loads(written[0] or "") == {
        "yes": 0.2, DOMAIN[1]: 0.3, DOMAIN[2]: 0.5, "unassigned": 0,
    }  # fmt: skip
    assert masses.read_distributions(written, DOMAIN)[[0, 2]] == pytest.approx(p[[0, 2]])


def test_more_labels_than_marks() -> None:
    domain = [f"l{k}" for k in range(40)]
    row = dict.fromkeys(domain, 0.025)
    assert masses.read_distributions([text(row), text(row)], domain).tolist() == [[0.025] * 40] * 2
