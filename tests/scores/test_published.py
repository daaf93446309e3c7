"""The papers' numbers, against sentences of the papers that hold whatever the table."""

import pytest

from judge.papers.engine.published import read_all_published, read_published


def values(paper: str, system: str, setting: str = "") -> dict[str, float]:
    return {p.measure: p.value for p in read_published(paper) if p.system == system and setting in p.setting}


def test_shares_are_fractions_and_say_where_they_come_from() -> None:
    for number in read_all_published():
        assert 0 < number.value < 1
        assert number.setting and number.by and number.where


def test_garage() -> None:
    systems = {p.system for p in read_published("garage")}
    assert len(systems) == 7
    for system in systems:
        result = values("garage", system)
        # Fewer passages can only take support away, and factuality asks for eligibility too.
        assert result["raf"] < result["factuality"] < result["eligibility"]
        if "attribution_f1" in result:
            p, r = result["attribution_precision"], result["attribution_recall"]
            # F1 is the harmonic mean of the printed aggregates, to the printed decimals.
            assert result["attribution_f1"] == pytest.approx(2 * p * r / (p + r), abs=0.001)
    assert values("garage", "Mistral")["deflection_true_positive_rate"] == 0.052


def test_raguard_every_model_is_worse_with_misleading_documents() -> None:
    for system in {p.system for p in read_published("raguard") if p.measure == "accuracy_zero"}:
        result = values("raguard", system)
        assert result["accuracy_misleading"] < result["accuracy_oracle"] < result["accuracy_zero"]
        assert len(result) == 5


def test_mirage() -> None:
    cells = values("mirage", "GPT-4o, NV-embed-v2")
    assert sum(cells.values()) == pytest.approx(1)
    # NV + CA is the oracle accuracy, which does not depend on the mixed context.
    oracle = values("mirage", "GPT-4o")["accuracy_oracle"]
    assert cells["noise_vulnerability"] + cells["context_acceptability"] == pytest.approx(oracle)
