"""annotate agreement on tables that break careless programs (outliers, odd line ends, look-alike names), and on many pairs."""

from __future__ import annotations

from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest

from annotate.agreement.every_pair import Pairs, compute_pairs
from judge.stats import METRICS, Ratings, measures
from tests.annotate.agreement_helpers import VOTES, annotate, document, write_csv


def test_a_number_on_a_unit_of_one_annotator_does_not_undo_alpha(tmp_path: Path) -> None:
    rows: list[tuple[object, ...]] = [("unit", "who", "label")]
    for i in range(60):
        rows += [(f"u{i:02}", "a", i % 2), (f"u{i:02}", "b", 1 - i % 2 if i % 20 == 0 else i % 2)]
    rows.append(("uu", "a", 1000000000))
    table = write_csv(tmp_path / "t.csv", rows)
    result = document("agreement", str(table), "--level", "interval", "--measure", "krippendorff_alpha")
    (alpha,) = result["measures"]
    # Units 0, 20 and 40 differ: Do = 3 / 60. b gives three 1s in place of 0, so the 120 values hold
    # 57 zeros and 63 ones: De = 2 * 57 * 63 / (120 * 119).
    assert alpha["value"] == pytest.approx(1 - (3 / 60) / (2 * 57 * 63 / (120 * 119)))
    assert alpha["reason"] is None and alpha["low"] < alpha["value"] < alpha["high"]


def test_total_agreement_in_three_questions_prints_bounds_on_the_scale(tmp_path: Path) -> None:
    rows: list[tuple[object, ...]] = [("unit", "question", "a", "b")]
    rows += [(f"{i:02}", i // 10, *("yn"[i % 10 == 0] * 2)) for i in range(30)]
    table = write_csv(tmp_path / "t.csv", rows)
    printed = annotate("agreement", str(table), "--annotators", "a,b").stdout
    assert "-1.000 to 1.000" in printed and "possible value -1" in printed
    assert "-2.9" not in printed


def test_an_alt_test_of_two_people_compares_with_the_one_other(tmp_path: Path) -> None:
    rows = [("unit", "a", "b", "gpt")]
    rows += [(f"{i:02}", "xy"[i % 2], "xy"[(i + (i % 9 == 0)) % 2], "xy"[i % 2]) for i in range(40)]
    table = (str(write_csv(tmp_path / "t.csv", rows)), "--annotators", "a,b,gpt")
    asked = ("agreement", *table, "--judge", "gpt", "--measure", "alt_test", "--interval", "none")
    (test,) = document(*asked)["fields"][0]["alt_tests"]
    # As the authors' code does, so there is nothing to say of it. Two others are not there to be had.
    assert (test["least_others"], test["notes"], len(test["compared"])) == (1, [], 2)


def test_an_alt_test_of_few_questions_says_that_it_wins_too_easily() -> None:
    asked = ("agreement", VOTES, "--judge", "gpt", "--measure", "alt_test")
    (test,) = document(*asked)["fields"][0]["alt_tests"]
    # The example has 20 questions, where the signed-rank test stands in for the t-test.
    assert {row["test"] for row in test["compared"]} == {"wilcoxon"}
    assert "fewer than 30 questions" in test["notes"][0] and "signed-rank" in test["notes"][0]
    assert "signed-rank" in annotate(*asked).stdout


def lines(path: Path, *rows: str, end: str = "\n") -> str:
    path.write_bytes((end.join(rows) + end).encode())
    return str(path)


def test_old_line_ends_are_read_as_lines(tmp_path: Path) -> None:
    rows = ("unit,who,label", *(f"u{i},{who},{'xy'[i % 2]}" for i in range(4) for who in "ab"))
    for end in ("\r", "\r\n", "\n"):
        result = document("agreement", lines(tmp_path / "t.csv", *rows, end=end), "--interval", "none")
        assert result["fields"][0]["n_units"] == 4, repr(end)
    failed = annotate("agreement", lines(tmp_path / "t.csv", *rows, "u0,a,x", end="\r"), code=1).stderr
    assert "t.csv:10: a second label from 'a' for unit 'u0' (the first is on line 2)" in failed


@pytest.mark.parametrize(
    ("label", "complaint"),
    [
        ("1e400", "t.jsonl:2: not JSON: the number 1e400 "),
        ("9" * 5000, "t.jsonl:2: not JSON: the number 99999999999999999999... has 5,000 digits"),
        ("NaN", "t.jsonl:2: not JSON: NaN is not valid JSON"),
        ("[" * 100_000, "t.jsonl:2: not JSON: nested too deeply"),
        ('1, "label": 2', "t.jsonl:2: the key 'label' occurs twice in one object"),
        ('1, "": 2', "t.jsonl:2: an object has a key without a name"),
    ],
)  # fmt: skip
def test_numbers_that_are_none_are_named_with_their_line(tmp_path: Path, label: str, complaint: str) -> None:
    path = lines(
        tmp_path / "t.jsonl",
        '{"unit": "1", "who": "a", "label": 1}',
        f'{{"unit": "1", "who": "b", "label": {label}}}',
    )
    failed = annotate("agreement", path, code=1).stderr
    assert complaint in failed and "set_int_max_str_digits" not in failed


def test_names_that_differ_in_spaces_are_pointed_out(tmp_path: Path) -> None:
    rows = [("unit", "who", "label"), ("1", "ann", "x"), ("1", "bob", "x")]
    rows += [
        ("2", "ann ", "y"),
        ("2", "bob", "y"),
        ("3", "ann", "x"),
        ("3 ", "bob", "y"),
        ("4", "Bob", "x"),
        ("4", "ann", "x"),
    ]
    notes = document("agreement", str(write_csv(tmp_path / "t.csv", rows)))["fields"][0]["notes"]
    assert "'ann', 'ann ' are different annotators, although they differ only in case or spaces" in notes
    assert "'Bob', 'bob' are different annotators, although they differ only in case or spaces" in notes
    assert "'3', '3 ' are different units, although they differ only in spaces" in notes
    wrong = [("unit", "who", "label")]
    wrong += [(f"{i}{space}", who, "xy"[i % 2]) for i in range(9) for who, space in (("a", ""), ("b", " "))]
    notes = document("agreement", str(write_csv(tmp_path / "t.csv", wrong)))["fields"][0]["notes"]
    assert len([note for note in notes if "are different units" in note]) == 5
    assert "4 more groups of units differ only in spaces" in notes


def test_the_only_label_is_called_found(tmp_path: Path) -> None:
    rows = [("unit", "who", "label"), *((str(i), who, "yes") for i in range(3) for who in "ab")]
    result = document("agreement", str(write_csv(tmp_path / "t.csv", rows)))["measures"]
    reasons = {m["reason"] for m in result if m["measure"] == "cohen_kappa"}
    assert reasons == {"'yes' is the only label in the domain"}


def test_complaints_about_a_whole_table_name_the_file(tmp_path: Path) -> None:
    many = [("unit", "who", "label"), *((str(i), who, i + 1) for i in range(250) for who in "ab")]
    table = str(write_csv(tmp_path / "many.csv", many))
    assert "many.csv: 'label' has 250 different numbers" in annotate("agreement", table, "--level", "ratio", code=1).stderr  # fmt: skip
    assert "many.csv: 'label' has 250 different labels" in annotate("agreement", table, code=1).stderr
    alone = str(write_csv(tmp_path / "alone.csv", [("unit", "who", "label"), ("1", "a", "x")]))
    assert "alone.csv: 'label' has only one annotator, 'a'" in annotate("agreement", alone, code=1).stderr


def test_a_judge_may_be_held_against_another(tmp_path: Path) -> None:
    both = ("--judge", "gpt", "--judge", "cyd", "--reference", "gpt", "--interval", "none")
    result = document("agreement", VOTES, *both)
    assert [one["predicted"] for one in result["fields"][0]["confusions"]] == ["cyd"]


NOMINAL = ["percent", "cohen_kappa", "fleiss_kappa", "krippendorff_alpha", "gwet_ac1", "pabak"]
ORDINAL = ["percent", "cohen_kappa:linear", "cohen_kappa:quadratic", "krippendorff_alpha", "gwet_ac2"]


def table(seed: int, annotators: int = 9, q: int = 3) -> Ratings:
    rng = np.random.default_rng(seed)
    codes = np.where(rng.random((60, annotators)) < 0.4, rng.integers(0, q, (60, annotators)), -1)
    codes[:, 0] = np.where(codes[:, 0] >= 0, 0, -1)  # a constant one
    codes[:30, 1], codes[30:, 2] = -1, -1  # two without a unit in common
    return Ratings.from_codes(codes, [str(i) for i in range(q)], [f"a{i}" for i in range(annotators)])


def rows(result: Pairs) -> dict[tuple[str, str], int]:
    names = result.annotators
    pairs = zip(result.first.tolist(), result.second.tolist(), strict=True)
    return {(names[a], names[b]): i for i, (a, b) in enumerate(pairs)}


@pytest.mark.parametrize(
    ("level", "keys"), [("nominal", NOMINAL), ("ordinal", ORDINAL), ("interval", ["krippendorff_alpha"])]
)
@pytest.mark.parametrize("seed", range(3))
def test_each_value_is_that_of_the_pair_alone(level: str, keys: list[str], seed: int) -> None:
    ratings = table(seed)
    names = ratings.annotators
    result = compute_pairs(ratings, keys, level=level, first=names, second=names)
    place = rows(result)
    assert result.n_pairs == len(list(combinations(names, 2)))
    for pair in combinations(names, 2):
        two = ratings.select(pair)
        # AC1 and Fleiss' kappa also learn from units that only one labelled; pairs here share theirs.
        alone = measures(two.subset((two.codes >= 0).all(axis=1)), keys, level=level, interval=None)
        if pair not in place:
            assert alone[0].n_units == 0
            continue
        i = place[pair]
        assert result.n_units[i] == alone[0].n_units > 0
        for key, one in zip(result.values, alone, strict=True):
            value = result.values[key][i]
            assert METRICS[key].measure == one.measure
            assert np.isnan(value) if one.value is None else value == pytest.approx(one.value, abs=1e-12)


def test_two_lists_are_paired_across() -> None:
    ratings = table(0)
    result = compute_pairs(ratings, ["percent"], level="nominal", first=["a8"], second=["a3", "a4", "a8"])
    assert set(rows(result)) <= set(product(["a8"], ["a3", "a4"])) and result.n_pairs == 2


def test_the_summary_has_quartiles_and_both_means() -> None:
    codes = np.array([[0, 0, 1], [0, 0, -1], [1, 0, 1], [1, 1, -1]])
    ratings = Ratings.from_codes(codes, ["x", "y"], ["a", "b", "c"])
    row = compute_pairs(ratings, ["percent"], level="nominal", first="abc", second="abc").summary("percent")
    # a-b agree on 3 of 4 units, a-c on 1 of 2, b-c on 0 of 2.
    assert (row["n_pairs"], row["n_sharing"], row["n_defined"]) == (3, 3, 3)
    assert (row["min"], row["median"], row["max"]) == (0.0, 0.5, 0.75)
    assert row["mean"] == pytest.approx(1.25 / 3)
    assert row["weighted_mean"] == pytest.approx((3 + 1 + 0) / 8)


def test_nothing_in_common_is_no_number() -> None:
    ratings = Ratings.from_codes(np.array([[0, -1], [-1, 1]]), ["x", "y"], ["a", "b"])
    row = compute_pairs(ratings, ["cohen_kappa"], level="nominal", first="ab", second="ab").summary(
        "cohen_kappa"
    )
    assert (row["n_pairs"], row["n_sharing"], row["n_defined"]) == (1, 0, 0)
    assert row["mean"] is row["max"] is None
