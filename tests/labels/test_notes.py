"""Notes are codes with parameters; their words are made in one place."""

from __future__ import annotations

import copy
import re

import pytest

from judge.notes import GENERAL, WORDS, Note, code_of, general
from judge.stats import Ratings, measures
from tests.real import ROOT

EXAMPLES = {
    "few_questions": {"n": 1, "least": 30},
    "few_units": {"n": 12, "least": 50},
    "few_labelled": {"n": 3, "noun": "question", "least": 30},
    "rare_labels": {"least": 10, "labels": (("a (b)", 3), ("c", 4))},
    "undefined_left_out": {"share": 0.0004},
    "undefined_no_interval": {"share": 0.4},
    "no_width": {},
    "percentile": {},
    "nothing_wrong_seen": {"cut": 0.0},
    "none_seen": {"cut": True},
    "no_value": {"requested": 9, "missing": {"refused": 2, "failed": 1}},
    "one_cluster": {},
    "same_everywhere": {},
    "weighted": {"n_eff": 81.6},
    "jackknife": {},
    "cut": {"least": 0, "most": 1, "value": 1.25},
    "all_same": {"bounded": True},
    "human_only": {"why": "no_judge"},
    "filled": {"n": 4},
    "left_out": {"n": 4},
    "few_for_rates": {"ones": 4, "zeros": 7, "least": 10},
    "least_others": {"n": 2},
    "signed_rank": {"n": 2, "of": 3, "fewest": 12, "least": 30, "noun": "question"},
    "by_question": {},
    "by_unit": {},
    "small_pilot": {"n": 12, "least": 30},
    "few_planned": {"least": 30},
    "side_open": {"threshold": 0.667, "confidence": 0.95},
    "tied": {"n": 3, "of": 40},
    "ruled": {"who": "decided", "n": 40, "agreed": 200},
    "models_as_people": {"who": ("gpt-4o", "gemini")},
    "outside": {"who": "ann", "field": "stance", "labels": (("maybe", 3),)},
    "no_task": {"field": "stance", "level": "nominal"},
    "other_labels": {"field": "stance", "tasks": ("stance.v1", "stance.v2")},
    "origin": {"who": "m/judge", "text": "imported from labels.csv"},
    "in_conflict": {"n": 2, "who": ("alice", "bob")},
    "versions": {"labels": (("stance.v2", 590), ("stance.v3", 30)), "only": None, "unversioned": 12},
    "old_text": {"n": 3, "who": ("alice", "m/judge")},
    "fitted_on": {"who": "m/judge", "n": 12},
    "sealed": {"n": 12, "task": "stance", "looked": "nobody has looked at"},
    "closed": {"n": 2, "task": "stance"},
    "alike": {"names": ("a", "A"), "kind": "labels", "how": "case or spaces"},
    "more_alike": {"n": 4, "kind": "labels", "how": "spaces"},
    "no_cluster": {"n": 4},
    "swapped": {"annotators": 9, "units": 4},
}


def test_there_is_an_example_of_every_code() -> None:
    assert set(EXAMPLES) == set(WORDS) and set(GENERAL) <= set(WORDS)


@pytest.mark.parametrize("code", EXAMPLES)
def test_a_note_keeps_its_code_and_its_parameters(code: str) -> None:
    note = Note(code, **EXAMPLES[code])
    for same in (note, copy.deepcopy(note)):
        assert (same, code_of(same), dict(same.parameters)) == (str(note), code, EXAMPLES[code])
    # Without the counts: what is left are the limits that the words name.
    numbers = {int(n) for n in re.findall(r"\d+", general(note))}
    assert code not in GENERAL or numbers <= {EXAMPLES[code].get("least")}


def test_other_texts_have_no_code() -> None:
    assert code_of("only 3 units") is None and general("only 3 units") == "only 3 units"


def test_numbers_come_with_their_notes() -> None:
    rows = [(f"u{n}", who, "yes" if n % 3 else "no", f"q{n // 2}") for n in range(12) for who in ("a", "b")]
    [kappa] = measures(Ratings.from_rows(rows, ["yes", "no"]), ["cohen_kappa"], interval="percentile")
    codes = {code_of(note): dict(note.parameters) for note in kappa.notes if isinstance(note, Note)}
    assert codes["few_units"] == {"n": 12, "least": 50} and codes["few_questions"]["n"] == 6


def test_no_code_parses_the_text_of_notes() -> None:
    words = [note.partition(":")[0] for code in EXAMPLES if (note := Note(code, **EXAMPLES[code]))]
    # A name alone, as before the colon of some, is nobody's words.
    fixed = {re.sub(r"[\d.%]+", "", word).strip() for word in words if " " in word}
    fixed |= {"have no value", "only \\d"}
    for path in [*(ROOT / "judge").rglob("*.py"), *(ROOT / "annotate").rglob("*.py")]:
        text = path.read_text("utf-8")
        for line in text.splitlines() if path.name != "notes.py" else ():
            assert not (re.search(r"\bre\.", line) and any(word and word in line for word in fixed)), (
                f"{path}: {line}"
            )
