"""Each branch of the verdict's rule, on labels whose numbers are worked out beside them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from annotate.report import FORMATS, ReportOptions
from annotate.report.model import Ruling
from annotate.report.rulings import rule
from annotate.report.subject import load
from judge.store import Store
from judge.types import Status
from tests import words
from tests.annotate.report_helpers import U, report_of, study

S, R = "support", "refute"


def other(label: str) -> str:
    return R if label == S else S


def truth(i: int) -> str:
    """Balanced: half of any even number of units each."""
    return S if i % 2 else R


def units(
    n: int, judge: Callable[[int], bool], gold: bool = False, **people: Callable[[int], bool]
) -> list[U]:
    """n units with a judge and people; each is wrong where the function says so."""

    def label(i: int, wrong: Callable[[int], bool]) -> str:
        return other(truth(i)) if wrong(i) else truth(i)

    return [
        U(
            gold=truth(i) if gold else None,
            people={name: label(i, wrong) for name, wrong in people.items()},
            judges={"m/judge": label(i, judge)},
        )
        for i in range(n)
    ]


def ruled(folder: Path, made: list[U], name: str = "study", **asked: Any) -> list[Ruling]:
    """The rulings alone, without the rest of a report."""
    with Store.open(study(folder / f"{name}.db", made), create=False) as store:
        result = rule(store, load(store, ReportOptions(**asked)))[0]
        for one in result:
            assert words.count(one.sentence) <= words.MOST, one.sentence
        return result


def never(_: int) -> bool:
    return False


def test_what_is_asked_of_the_alt_test_reaches_it(tmp_path: Path) -> None:
    made = units(40, never, gold=True, ann=never, bob=lambda i: i < 4, cem=lambda i: i >= 36)
    with Store.open(study(tmp_path / "s.db", made), create=False) as store:
        _, tests, _ = rule(store, load(store, ReportOptions(epsilon=0.05)))
    assert [t.epsilon for t, _ in tests.values()] == [0.05]


def wrong_in(start: int) -> Callable[[int], bool]:
    """Wrong on two of twenty units, one of each label, at its own place."""
    return lambda i: i % 20 in (start, start + 1)


# Gold alone: kappa = (po - 1/2) / (1/2), its standard error about sqrt(po (1 - po) / n) / (1/2).
# People: the judge's pooled kappa with them minus theirs, against -0.1; kappa = 1 - 2 x share that differ.
RULES: dict[str, tuple[list[U], dict[str, float], str, str]] = {
    # Wrong on 80 of 200: po = .6, kappa .2, error .069, so about .06 to .34: below .667, and above 0.
    "gold, below": (units(200, lambda i: i < 80, gold=True), {}, "do not trust", "is 0.200 (0.0"),
    "gold, above": (units(200, lambda i: i < 80, gold=True), {"threshold": 0.0}, "trust", "is 0.200 (0.0"),
    # Eight units, all right: kappa 1, but fewer than 10 clusters; 30 are needed, so 22 more.
    "few questions": (units(8, never, gold=True), {}, "undecided", "8 questions"),
    "few shared": (units(8, never, ann=never, bob=never, cy=never), {}, "undecided", "8 questions"),
    # Wrong on 10 of 200, as above.
    "one person": (units(200, lambda i: i < 10, ann=never), {}, "trust", "agreement with 'ann'"),
    # Judge always right, each person wrong on another tenth: .8 and .8 with the judge, .6 with each other: +.2.
    "two, above": (units(300, never, ann=wrong_in(0), bob=wrong_in(10)), {}, "trust", "is 0.200 ("),
    # ann right, bob wrong on a tenth: .8. Judge wrong on three other tenths: .4 with ann, .2 with bob: .3 - .8 = -.5.
    "two, below": (
        units(300, lambda i: i % 20 < 6, ann=never, bob=wrong_in(10)),
        {},
        "do not trust",
        "is -0.500 (",
    ),
    # The judge errs on every second pair of units, people on 1 in 50.
    "three, below": (
        units(
            200, lambda i: i % 4 < 2, ann=lambda i: i < 4, bob=lambda i: 4 <= i < 8, cy=lambda i: 8 <= i < 12
        ),
        {},
        "do not trust",
        "the margin is -0.1",
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_the_rule(name: str, tmp_path: Path) -> None:
    made, limits, decision, because = RULES[name]
    (ruling,) = ruled(tmp_path, made, **limits)
    assert ruling.decision == decision and because in ruling.because
    people = len(made[0].people)
    assert ruling.ceiling_known is (people > 1)
    assert ruling.more_units == (22 if name.startswith("few") else None)
    if people > 1:
        assert ruling.rule.startswith(f"The judge is compared with {people} people.")


def test_gold_only_trust(tmp_path: Path) -> None:
    # Wrong on 10 of 200, five of each label: po = .95, kappa .9, error .031, so about .84 to .96: above .667.
    (ruling,) = ruled(tmp_path, units(200, lambda i: i < 10, gold=True))
    assert ruling.decision == "trust" and not ruling.ceiling_known
    assert ruling.sentence == (
        "If these units are a random sample: trust m/judge on 'stance', because it agrees above the threshold 0.667 (how well "
        "people would agree is unknown). m/judge agrees with 'gold' at kappa 0.90, on 200 units with imported labels."
    )
    assert ruling.draw in ruling.sentence and ruling.next_place is None
    assert ruling.because.startswith("The judge's chance-corrected agreement with 'gold' is 0.900 (0.8")
    assert "how well people would agree is unknown." in ruling.rule and "0.667" in ruling.rule
    (kappa,) = ruling.measures
    assert (kappa.n_units, kappa.coverage) == (200, 1.0)


def test_gold_only_undecided_names_the_units_still_needed(tmp_path: Path) -> None:
    # Wrong on 10 of 100: kappa .8, error .06, so about .68 to .92 around the threshold .7: more units decide it.
    (ruling,) = ruled(tmp_path, units(100, lambda i: i < 10, gold=True), threshold=0.7)
    assert ruling.decision == "undecided"
    assert ruling.more_units is not None and 20 < ruling.more_units < 1000
    assert ruling.sentence.endswith(f"About {ruling.more_units:,} more would decide with a chance of 80 %.")
    assert ruling.chances[0].decided < 0.8 <= ruling.chances[-1].decided
    # At the threshold itself hardly any number would do.
    near = ruled(tmp_path, units(50, lambda i: i < 8, gold=True), name="b", threshold=0.68)[0]
    assert near.more_units is None and "More labels may not decide it" in near.sentence


def test_a_judge_with_one_label_is_not_trusted_and_warned_of(tmp_path: Path) -> None:
    made = [U(gold=truth(i), judges={"m/judge": S}) for i in range(60)]
    (ruling,) = ruled(tmp_path, made)
    assert ruling.decision == "do not trust" and ruling.more_units is None
    assert ruling.because == "The judge gives only one label (n = 60 units of 60 questions)"
    assert ruling.warnings == (
        "m/judge gave the label 'support' to 60 of 60 units, so it hardly distinguishes units.",
    )


def test_units_without_a_label_are_warned_of_and_lower_the_coverage(tmp_path: Path) -> None:
    made = units(200, lambda i: i < 10, gold=True)
    for u in made[:20]:
        u.judges = {"m/judge": Status.UNPARSED}
    (ruling,) = ruled(tmp_path, made)
    assert ruling.warnings == ("m/judge has no label on 20 of 200 units that it was asked about.",)
    assert ruling.measures[0].coverage == 0.9


def test_two_people_undecided(tmp_path: Path) -> None:
    # Of 40 units bob is wrong on 4, the judge on 2 others: .9 with ann, .7 with bob, .8 between them: 0. The
    # judge's errors move it by .1 each time two units change, so -.1 is inside the interval.
    made = units(40, lambda i: i in (0, 1), ann=never, bob=lambda i: 10 <= i < 14)
    (ruling,) = ruled(tmp_path, made)
    assert ruling.measures[0].value == pytest.approx(0, abs=1e-9)
    assert ruling.decision == "undecided" and ruling.more_units and ruling.more_units > 0
    assert "agrees with 2 people at kappa 0.80, they with each other at 0.80" in ruling.sentence
    (ruling,) = ruled(tmp_path / "b", made, margin=-0.5) if (tmp_path / "b").mkdir() is None else ()
    assert ruling.decision == "trust"


# Three or more people: the alternative annotator test beside the same.


def test_three_people_trust(tmp_path: Path) -> None:
    # Judge always right. Where a person errs (1 in 10) the judge is closer, where another does both are equally
    # close: the judge is at least as close on all units, a person on .9: difference -.1 against epsilon .2. People
    # differ on a fifth: kappa .6 with each other, and .8 with the judge.
    made = units(100, never, ann=wrong_in(0), bob=wrong_in(2), cy=wrong_in(4))
    (ruling,) = ruled(tmp_path, made)
    assert ruling.decision == "trust" and ruling.ceiling_known  # nobody says 'neutral'
    assert (
        "'support': recall shown (50 units), precision shown (50 units); 'refute': recall" in ruling.because
    )
    # (b) and (c) decide only where near labels count in part.
    assert not {"skill", "alt_test"} & {c.name for c in ruling.conditions} and "epsilon" not in ruling.rule
    assert [row.state for row in ruling.labels] == ["shown"] * 4 + ["not shown"] * 2


def test_three_people_undecided(tmp_path: Path) -> None:
    # The judge errs on 6 of 40 units, nobody else does: kappa .7 against 1, and -.3 lies below the margin -.1 by
    # 1.8 standard errors of .114; a person is closer by .15, which is less than epsilon .2, but not significantly.
    made = units(40, lambda i: i < 6, ann=never, bob=never, cy=never)
    (ruling,) = ruled(tmp_path, made)
    assert ruling.decision == "undecided" and ruling.more_units and ruling.more_units > 5
    assert {c.name: c.state for c in ruling.conditions} == {
        "evidence": "holds",
        "coverage": "holds",
        "non_inferiority": "open",
        "people_agree": "holds",
        "lone_annotator": "holds",
    }


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ([U(people={"ann": S, "bob": truth(i)}) for i in range(12)], "No judge labelled this field"),
        ([U(judges={"m/judge": S})] * 3, "only judges labelled"),
    ],
    ids=["no judge", "only a judge"],
)
def test_without_a_judge_or_without_people_there_is_no_verdict(
    made: list[U], message: str, tmp_path: Path
) -> None:
    document = report_of(tmp_path, made, field="stance")
    assert not document.rulings and message in document.no_verdict
    assert {s.key: s.absent for s in document.sections}["judges"]


def test_several_judges_have_a_verdict_each(tmp_path: Path) -> None:
    made = units(200, lambda i: i < 10, gold=True)
    for i, u in enumerate(made):
        u.judges = {**u.judges, "m/worse": other(truth(i)) if i < 80 else truth(i)}
    document = report_of(tmp_path, made)
    assert [(r.judge, r.decision) for r in document.rulings] == [
        ("m/judge", "trust"),
        ("m/worse", "do not trust"),
    ]


def test_labels_that_are_missing_for_one_class_are_told(tmp_path: Path) -> None:
    # Sixty of each label; the judge refuses all that are 'refute' and 6 of 'support', and is right on the rest.
    made = units(120, never, gold=True)
    refused = [u for u in made if u.gold == R] + [u for u in made if u.gold == S][:6]
    for u in refused:
        u.judges = {"m/judge": Status.REFUSED}
    result = ruled(tmp_path, made)[0]
    message = " ".join(result.warnings)
    assert "no label on 66 of 120 units" in message
    assert "10% of 'support', 100% of 'refute'" in message


def test_people_who_agree_by_chance_are_told(tmp_path: Path) -> None:
    # ann and bob agree on half of 200 units, as two coins do.
    made = units(200, never, ann=lambda i: i % 4 > 1, bob=lambda i: i % 8 > 3)
    (ruling,) = ruled(tmp_path, made)
    assert any("due to chance" in text for text in ruling.warnings)
    assert ruling.decision == "undecided"
    clear = ruled(tmp_path, units(200, never, ann=lambda i: i == 50, bob=lambda i: i < 10), name="b")[0]
    assert clear.warnings == ()


def test_a_reference_asked_for_by_name_decides_where_there_is_one_person(tmp_path: Path) -> None:
    made = units(200, lambda i: i < 10, gold=True, ann=lambda i: i < 60)
    by_person = ruled(tmp_path, made)[0]
    assert "('ann')" in by_person.rule and by_person.measures[0].annotators == ("m/judge", "ann")
    by_gold = ruled(tmp_path, made, name="b", reference="gold")[0]
    assert "('gold')" in by_gold.rule and by_gold.measures[0].annotators == ("m/judge", "gold")


def test_the_chances_of_an_undecided_verdict_are_drawn(tmp_path: Path) -> None:
    # As above, one judge of 60 units wrong on 8: kappa .73, about .56 to .91 around .667.
    result = report_of(tmp_path, units(60, lambda i: i < 8, gold=True))
    [ruling] = result.rulings
    assert ruling.decision == "undecided" and ruling.chances
    section = next(s for s in result.sections if s.key == "power")
    [table] = section.tables()
    assert [row[0] for row in table.rows] == [c.more_units for c in ruling.chances]
    assert all(row[2] == pytest.approx(row[3] + row[4]) for row in table.rows)
    page = FORMATS["html"](result)
    assert "Chance of a verdict on m/judge with more labels" in page and page.count("<svg") >= 1
    # A verdict that is made has none.
    decided = report_of(tmp_path, units(200, lambda i: i < 100 and i % 10 == 0, gold=True), name="decided")
    assert not any(s.key == "power" for s in decided.sections)
