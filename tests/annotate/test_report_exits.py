"""annotate report --fail-under: exit 5, and the report is written all the same."""

import json
from pathlib import Path

import pytest

from tests.annotate.agreement_helpers import annotate
from tests.annotate.report_helpers import U, study

S, R = "support", "refute"


@pytest.fixture(scope="module")
def trusted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Gold, half of each label; the judge is wrong on 10 of 200: kappa .9 with about .84 to .96, above .667."""
    made = [
        U(S if i % 2 else R, {}, {"m/judge": (S if i % 2 else R) if i % 20 > 0 else S}) for i in range(200)
    ]
    return study(tmp_path_factory.mktemp("exits") / "trusted.db", made)


@pytest.fixture(scope="module")
def in_part(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three people who agree on 192 of 200 units, and the judge with them; the task's third label is on 6 units."""
    made = []
    for i in range(200):
        truth, wrong = (S, R) if i % 2 else (R, S)
        if 10 <= i < 16:
            truth = "neutral"
        people = {name: wrong if i % 50 == place else truth for place, name in enumerate(("a", "b"))}
        made.append(U(None, {**people, "c": truth}, {"m/judge": wrong if i % 50 == 3 else truth}))
    return study(tmp_path_factory.mktemp("exits") / "part.db", made)


def test_trust_is_what_is_asked_for(trusted: Path, tmp_path: Path) -> None:
    annotate("report", "-d", trusted, "--fail-under", "verdict=trust", "--fail-under", "cohen_kappa=0.8")
    out = tmp_path / "r.json"
    limits = ("--threshold", "0.95", "--fail-under", "verdict=trust")
    failed = annotate("report", "-d", trusted, *limits, "-o", out, code=5).stderr
    # .9 with its interval up to .96 or so: neither above nor below .95.
    assert "failed: m/judge: undecided" in failed
    assert json.loads(out.read_text())["verdicts"][0]["decision"] == "undecided"


def test_trust_in_part_will_do_where_it_is_allowed(in_part: Path) -> None:
    failed = annotate("report", "-d", in_part, "--fail-under", "verdict=trust", code=5).stderr
    assert "failed: m/judge: trust in part" in failed
    shown = annotate("report", "-d", in_part, "--fail-under", "verdict=part", "--json")
    (ruling,) = json.loads(shown.stdout)["verdicts"]
    assert {row["label"]: (row["state"], row["n_units"]) for row in ruling["labels"]}["neutral"] == (
        "not shown",
        6.0,
    )
    assert "open for 'neutral'" in ruling["sentence"]


def test_a_measure_below_its_limit_is_named_with_its_value(trusted: Path, in_part: Path) -> None:
    failed = annotate("report", "-d", trusted, "--fail-under", "cohen_kappa=0.95", code=5).stderr
    assert "cohen_kappa of m/judge is 0.9000 < 0.95" in failed
    # The judge differs from a majority on 4 of 200, a and b too: all agreement lies above .9, and the gap near 0.
    limits = ("--fail-under", "pooled_kappa=0.9", "--fail-under", "pooled_kappa_difference=-0.05")
    annotate("report", "-d", in_part, *limits)
    # The report of several people also has the agreement with their majority.
    annotate("report", "-d", in_part, *limits, "--fail-under", "cohen_kappa=0.9")
    failed = annotate("report", "-d", in_part, "--fail-under", "cohen_kappa=0.99", code=5).stderr
    assert "failed: cohen_kappa of m/judge is 0.96" in failed
    failed = annotate("report", "-d", trusted, *limits[:2], code=5).stderr
    assert failed.strip().endswith("pooled_kappa of m/judge is not in this verdict; available: cohen_kappa")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--fail-under", "verdict=distrust"), "write it as verdict=trust, verdict=part or MEASURE=0.6"),
        (("--fail-under", "kappa=0.6"), "verdict=part or MEASURE=0.6; measures are pooled_kappa"),
        (("--fail-under", "pooled_kappa=nan"), "verdict=part or MEASURE=0.6"),
        (("--fail-under", "pooled_kappa"), "verdict=part or MEASURE=0.6"),
    ],
)
def test_what_cannot_be_asked_for(trusted: Path, args: tuple[str, ...], message: str) -> None:
    assert message in annotate("report", "-d", trusted, *args, code=2).stderr


def test_no_verdict_is_no_trust(tmp_path: Path) -> None:
    made = [U(S if i % 2 else R, {"ann": S}, {}) for i in range(12)]
    db = study(tmp_path / "study.db", made)
    failed = annotate(
        "report", "-d", db, "--fail-under", "verdict=trust", "--fail-under", "pooled_kappa=0.1", code=5
    ).stderr
    assert "No judge labelled this field" in failed and "pooled_kappa: there is no verdict" in failed
