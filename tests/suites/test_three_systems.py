"""Three systems on each paper: one lacks outputs, one has a ranking of its own, one (or its judge) was run with two settings.

The newer setting (seed 2) is planted wrong and lacks a part, so the newest set of runs with equal settings is seed 1: a
number that mixes the two, or that is another system's, differs from those worked out here.
"""

import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest

from judge.papers.mirage import CELLS
from tests.formats import mirage, raguard, write_jsonl
from tests.suites.helpers import Judge, Scored, answers, give, import_garage, outputs, score
from tests.suites.test_confirmation import CLAIMS, LISTS, PAIRS, STANCES, lists
from tests.suites.test_systems import UNITS, ranked
from tests.suites.test_urag import RIGHT, URAG, WITH, distributed
from tests.suites.test_urag import study as urag_study

__all__ = ["urag_study"]
ONE, TWO = {"seed": 1}, {"seed": 2}


def seeds(result: Scored) -> set[object]:
    """The seeds of the runs that were read."""
    return {run["settings"].get("seed") for run in result.document["runs"]}


def test_garage(judge: Judge, tmp_path: Path) -> None:
    import_garage(judge, tmp_path)
    # c has no answer to g2 and g3.
    rows = [(g, s, "full", "It is so [cite_1].") for s in "ab" for g in ("g1", "g2", "g3")]
    answers(judge, tmp_path, [*rows, ("g1", "c", "full", "It is so [cite_1].")])

    def units(**labels: str) -> dict[str, str]:
        return {f"garage:{name[1:]}@{name[0]}@full": label for name, label in labels.items()}

    eligible = units(ag1="No Issues", ag2="No Issues", bg1="No Issues", bg2="Major Issue(s)", cg1="No Issues")
    give("eligibility", eligible, options=ONE)
    give(
        "deflection",
        units(ag1="attempted", ag2="attempted", ag3="missing", bg1="missing", bg2="attempted", bg3="attempted",
              cg1="attempted"),
        options=ONE,
    )  # fmt: skip
    give("eligibility", dict.fromkeys(eligible, "Major Issue(s)"), options=TWO)
    # Eligible: a both, b one of two, c one of two (no answer is a failure). True deflections are of g3 alone, which c does
    # not answer: no deflection. False ones are of g1 and g2.
    for system, expected in (("a", (1.0, 1.0, 0.0)), ("b", (0.5, 0.0, 0.5)), ("c", (0.5, 0.0, 0.0))):
        result = score(judge, "garage", "--part", "eligibility", "--part", "deflection", "--system", system)
        names = ("eligibility", "deflection_true_positive_rate", "deflection_false_positive_rate")
        assert tuple(result.value(name) for name in names) == expected, system
        assert seeds(result) == {1}


def test_confirmation(judge: Judge, tmp_path: Path) -> None:
    judge("items", "import", "claim-pairs", write_jsonl(tmp_path / "c.jsonl", PAIRS), "--dataset", "c")
    documents = {"p1-original": "a", "p1-counter": "b", "p2-original": "e", "p2-counter": "e"}
    lists(judge, tmp_path, {"retrieve": LISTS["retrieve"]}, "a")
    lists(judge, tmp_path, {"retrieve": documents}, "b")
    # c answers the claims of p1 alone, and has no ranking.
    rows = [(claim, s, "rag", f"About {claim}.") for s in "ab" for claim in CLAIMS]
    answers(judge, tmp_path, [*rows, *((claim, "c", "rag", "So.") for claim in CLAIMS[:2])])
    stances = {f"c:{unit}": label for unit, label in STANCES.items()}
    give("stance", stances, options=ONE)
    text = {"a": ("yes", "yes", "yes", "no"), "b": ("yes", "no", "yes", "no"), "c": ("yes", "yes")}
    labels = {f"c:{c}@{s}@rag": v for s, row in text.items() for c, v in zip(CLAIMS, row, strict=False)}
    give("confirmation", labels, options=ONE)
    give("stance", dict.fromkeys(stances, "refute"), options=TWO)
    # SR of a: p1 1/2 and 1, p2 1 and 0: CR (1/2 + 0) / 2. Of b: p1 1 and 1, p2 1 and 0: CR (1 + 0) / 2.
    # CBR: a one of two pairs, b none, c its one pair with two valid answers.
    for system, cr, cbr in (("a", 0.25, 0.5), ("b", 0.5, 0.0), ("c", None, 1.0)):
        result = score(judge, "confirmation", "--system", system, "-m", "m")
        assert result.value("cbr") == cbr, system
        if cr is None:
            assert "cr[retrieve]" not in result.names
            assert [gap["condition"] for gap in result.document["lacking"]] == ["ranking"]
        else:
            assert result.value("cr[retrieve]") == cr, system
        assert seeds(result) == {1}


def test_raguard(judge: Judge, tmp_path: Path) -> None:
    judge("items", "import", "raguard", *raguard(tmp_path))
    # a and b are imported, with rankings of their own; b lacks everything but the first document. s is made by a model.
    ranked(judge, tmp_path, "a", "2", "4", "6")
    ranked(judge, tmp_path, "b", "1", "5", "6")
    zero = zip("123", ("true", "false", "true"), strict=True)
    answers(judge, tmp_path, [*((n, "a", "zero-context", v) for n, v in zero),
                              *((n, s, "top-1", "true") for n in "123" for s in "ab")])  # fmt: skip
    gold = dict(zip(UNITS, ("true", "true", "true", "false", "false", "false"), strict=True))
    claims = {"raguard:1": "true", "raguard:2": "false", "raguard:3": "false"}
    made = {"context": "none", "system": "s"}
    give("verdict", claims, model="openai/x", options={**made, **ONE})
    give("verdict_document", gold, model="s", options={"asked_as": "openai/x", **ONE})
    give("verdict", dict.fromkeys(claims, "true"), model="openai/x", options={**made, **TWO})
    # A judge of the same documents, newer and wrong on each.
    wrong = {unit: {"true": "false", "false": "true"}[v] for unit, v in gold.items()}
    give("verdict_document", wrong, model="the/judge", options=ONE)
    # The only imported outputs on one document at a time are another system's.
    give("verdict_document", gold, model="third", options={"imported": "sha"})
    words = shlex.split("raguard --part zero --part rag --part oracle --part retrieval --k 1")
    a, b = (score(judge, *words, "--system", name) for name in "ab")
    recall = "misleading_retrieval_recall@1[own/owning]"
    # a: without documents wrong on claim 3; b has no such answers. With one document both are right on claim 1 alone.
    assert (a.value("accuracy_zero"), a.value("accuracy_rag_1"), a.value(recall)) == pytest.approx(
        (2 / 3, 1 / 3, 1)
    )
    assert "accuracy_zero" not in b.names and (b.value("accuracy_rag_1"), b.value(recall)) == pytest.approx(
        (1 / 3, 1 / 2)
    )
    assert [gap["condition"] for gap in a.document["lacking"]] == ["oracle"]
    assert [gap["condition"] for gap in b.document["lacking"]] == ["zero-context", "oracle"]
    result = score(judge, "raguard", "--part", "zero", "--part", "oracle", "--system", "s")
    assert (result.value("accuracy_zero"), result.value("accuracy_oracle")) == (1.0, 1.0)
    assert seeds(result) == {1} and {run["model"] for run in result.document["runs"]} == {"openai/x", "s"}


def test_mirage(judge: Judge, tmp_path: Path) -> None:
    judge("items", "import", "mirage", *mirage(tmp_path / "mirage"))
    names = [f"m{n}" for n in range(3)]
    # a is right on m0 without context and on all with: CA 1. b answers without context only.
    rows = [
        (n, "a", c, n if c != "base" or n == "m0" else "?")
        for n in names
        for c in ("base", "oracle", "mixed")
    ]
    answers(judge, tmp_path, [*rows, *((n, "b", "base", n) for n in names)])

    def made(context: str, options: Mapping[str, object], right: str) -> None:
        text = {f"mirage:{n}": n if n in right.split() else "?" for n in names}
        give("mirage_answer", text, model="openai/x", options={"context": context, "system": "s", **options})

    made("none", ONE, "m0 m1")
    made("oracle", ONE, "m1 m2")
    made("fixed5", ONE, "m1")
    made("none", TWO, "")
    made("oracle", TWO, "")
    part = ("mirage", "--part", "adaptability", "--system")
    assert [score(judge, *part, "a").value(name) for name in CELLS] == [0, 1, 0, 0]
    # s: m0 is misinterpreted, m1 accepted, m2 vulnerable to noise.
    result = score(judge, *part, "s")
    assert [result.value(name) for name in CELLS] == pytest.approx([1 / 3, 1 / 3, 0, 1 / 3])
    assert seeds(result) == {1}
    b = score(judge, *part, "b")
    assert [b.value(name) for name in (*CELLS, "accuracy_base")] == [None] * 4 + [1.0]
    assert [gap["condition"] for gap in b.document["lacking"]] == ["oracle", "mixed"]


def test_urag(judge: Judge, tmp_path: Path, urag_study: None) -> None:
    def made(context: str, p: Mapping[str, float], options: Mapping[str, object]) -> None:
        labels = {f"u:{item}": "A" if a > 0.5 else "B" for item, a in p.items()}
        settings = {"context": context, "system": "s", **options}
        run = give("urag_choice", labels, model="openai/x", options=settings)
        rest = {**dict.fromkeys("CDEFGHIJ", 0.0), "unassigned": 0.0}
        distributed(run, {f"u:{item}": {"A": a, "B": 1 - a, **rest} for item, a in p.items()})

    calibration = {item: p for item, p in WITH.items() if item.startswith("c")}
    made("all", {**calibration, "t1": 0.9, "t2": 0.1}, ONE)
    made("none", {**calibration, "t1": 0.1, "t2": 0.1}, ONE)
    made("all", {**calibration, "t1": 0.1, "t2": 0.9}, TWO)
    # a is imported: right on t1 alone with passages, on neither without. b has answers without passages only.
    rows = [
        {"id": item, "system": system, "condition": condition, "probabilities": {"A": p, "B": 1 - p}}
        for system, condition, test in (("a", "plain", (0.9, 0.9)), ("a", "llm-only", (0.1, 0.9)), ("b", "llm-only", (0.9, 0.1)))
        for item, p in {**calibration, "t1": test[0], "t2": test[1]}.items()
    ]  # fmt: skip
    outputs(judge, tmp_path, rows, "--paper", "urag")
    assert (RIGHT["t1"], RIGHT["t2"]) == ("A", "B")
    words = ("urag", "--alpha", "0.5", "--part", "sets", "--part", "ratio", "--system")
    for system, expected in (("a", (1 / 2, 0.0)), ("s", (1.0, 1 / 2))):
        result = score(judge, *words, system)
        assert (result.value("accuracy"), result.value("accuracy_without")) == expected, system
        assert seeds(result) == ({1} if system == "s" else set())
    b = score(judge, *words, "b")
    # Without passages b says A to t1 and B to t2.
    assert (b.value("accuracy"), b.value("accuracy_without"), b.value("accuracy_ratio")) == (None, 1.0, None)
    assert "no outputs under plain" in b["accuracy"]["reason"]
    assert [gap["condition"] for gap in b.document["lacking"]] == ["plain"]
    assert URAG[1] == "-m"


def test_trec_support(judge: Judge, tmp_path: Path) -> None:
    import_garage(judge, tmp_path)
    rows = [(g, s, "one", "It is so [cite_1].") for s in "ab" for g in ("g1", "g2")]
    answers(judge, tmp_path, [*rows, ("g1", "c", "one", "It is so [cite_1].")])
    label = {"a": ("full", "full"), "b": ("partial", "none"), "c": ("full",)}
    labels = {f"garage:g{n}@{s}@one#s0": v for s, row in label.items() for n, v in enumerate(row, 1)}
    give("citation_support", labels, options=ONE)
    each = {f"{unit}/cite_1": v for unit, v in labels.items()}
    give("citation_each", each, options=ONE)
    give("citation_each", dict.fromkeys(each, "none"), options=TWO)
    # One sentence with one citation in each answer. Three topics: what is not answered has 0.
    for system, expected in (("a", 2 / 3), ("b", 0.5 / 3), ("c", 1 / 3)):
        words = ("--system", system, "--condition", "one", "--part", "alce", "--part", "trec")
        result = score(judge, "faithfulness", *words)
        assert result.value("trec_support_precision") == pytest.approx(expected), system
        assert result.value("trec_support_recall") == pytest.approx(expected), system
        assert seeds(result) == {1}
