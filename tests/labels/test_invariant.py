"""One question, one answer: every command gives the same value, n and coverage, whatever the study looks like."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from annotate.agreement.one_field import analyse
from annotate.report import ReportOptions, build
from annotate.store import open_study
from judge.document.blocks import Document
from judge.improve import contest
from judge.labels.reference import ReferenceLabels, available_references, resolve
from judge.labels.scope import Scope, read_panel
from judge.notes import code_of
from judge.papers.engine.paper import ScoreRequest
from judge.papers.engine.papers import PAPERS
from judge.papers.engine.result import score
from judge.papers.engine.swap import swap
from judge.stats import MISSING
from judge.stats.bootstrap import IntervalSettings
from judge.store import Store
from judge.types import Measure
from tests.annotate.agreement_helpers import document
from tests.formats import garage_row, write_jsonl
from tests.suites.helpers import Judge, answers, give
from tests.suites.test_people import people, unit

LABELS = ("No Issues", "Minor Issue(s)", "Major Issue(s)")
N = 30
SEVEN = ("ann", "bob", "cyd", "dan", "eve", "fay", "guy")


def noisy(seed: int, share: float, every: float = 1.0) -> dict[str, str]:
    """Labels of units that follow one truth with this share of errors, on this share of the units."""
    rng = np.random.default_rng(seed)
    truth = np.arange(N) % 3
    wrong = rng.random(N) < share
    given = np.where(wrong, rng.integers(0, 3, N), truth)
    return {unit(n): LABELS[given[n]] for n in range(N) if rng.random() < every}


def votes(n: int, every: float = 1.0) -> dict[str, dict[str, str]]:
    return {name: noisy(i, 0.3, every) for i, name in enumerate(SEVEN[:n])}


def decided(n: int, every: float = 1.0) -> dict[str, dict[str, str]]:
    """Their votes, and a lead's decisions where they differ, but for the last three of those."""
    given = votes(n, every)
    differ = [u for u in map(unit, range(N)) if len({own[u] for own in given.values() if u in own}) > 1]
    return given | {"adjudicated": {u: LABELS[i % 3] for i, u in enumerate(differ[:-3])}}


STUDIES: dict[str, dict[str, dict[str, str]]] = {
    "gold": {"gold": noisy(9, 0.1)},
    "one": votes(1, 0.8),
    "two": votes(2, 0.8),
    "three": votes(3, 0.8) | {"gold": noisy(9, 0.1, 0.5)},
    "seven": votes(7, 0.5),
    "decided": decided(2),
    "decided of three": decided(3, 0.8) | {"gold": noisy(9, 0.1, 0.5)},
    "one and a lead": votes(1) | {"adjudicated": noisy(8, 0.2, 0.4)},
    "weighted": decided(2),
}


def batch() -> None:
    """A batch of ann and bob that drew 20 units, every second with twice the weight; ann labelled more besides."""
    with open_study(Path("study.db")) as store, store.transaction() as conn:
        conn.execute(
            "INSERT INTO batches (batch, task, purpose, seed, options, created) "
            "VALUES ('b', (SELECT task FROM runs LIMIT 1), 'validation', 0, '{}', '2026-01-01T00:00:00Z')"
        )
        for n in range(20):
            row = [unit(n), 1.0 + n % 2]
            conn.execute("INSERT INTO batch_units VALUES ('b', ?, 'sample', NULL, NULL, ?)", row)
            for who in ("ann", "bob"):
                conn.execute(
                    "INSERT INTO assignments (batch, annotator_id, position, unit_id, role) VALUES ('b', ?, ?, ?, 'sample')",
                    [who, n, unit(n)],
                )


@pytest.fixture(params=STUDIES)
def study(request: pytest.FixtureRequest, judge: Judge, tmp_path: Path) -> str:
    """Two judges, one with replies that failed or were refused and units it was not asked about; people and gold."""
    rows = [garage_row(f"g{n}", ["ANSWER-THE-QUESTION"]) for n in range(N)]
    judge("items", "import", "garage", write_jsonl(tmp_path / "garage.jsonl", rows))
    answers(judge, tmp_path, [(f"g{n}", "m", "full", f"A{n} holds [cite_1].") for n in range(N)])
    some = noisy(20, 0.2, 0.9) | {unit(3): "refused", unit(7): "unparsed", unit(11): "failed"}
    give("eligibility", some, model="a")
    give("eligibility", noisy(21, 0.4), model="b")
    given = STUDIES[request.param]
    people("eligibility", given)
    sentences = {who: {f"{u}#s0": "supported" for u in own} for who, own in given.items()}
    give("grounding", {f"{unit(n)}#s0": "supported" if n % 4 else "unsupported" for n in range(N)}, model="a")
    if "gold" not in given:
        # People agree on every sentence: nothing comes to a lead, and what they agree on is decided all the same.
        people("grounding", {who: own for who, own in sentences.items() if who != "adjudicated"})
    if request.param == "weighted":
        batch()
    return str(request.param)


def told(m: Measure) -> tuple[float | None, int, float | None]:
    return m.value, m.n_units, m.coverage


def bounds(m: Measure) -> tuple[float | None, ...]:
    return m.value, m.low, m.high


def named(m: Measure, short: Mapping[str, str]) -> tuple[str, str | None, frozenset[str]]:
    return m.measure, m.weights, frozenset(short.get(name, name) for name in m.annotators or ())


def cells(found: Document, key: str) -> dict[str, list[Any]]:
    return {
        str(row[0]): list(row[1:])
        for s in found.sections
        for t in s.tables()
        if t.key == key
        for row in t.rows
    }


def scopes(name: str) -> list[str | None]:
    return [None, "b"] if name == "weighted" else [None]


@pytest.fixture
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values, n and coverage are compared, no bounds: a hundred resamples will do."""
    monkeypatch.setattr(IntervalSettings.__init__, "__defaults__", ("bca", 0.95, 100, 0))


@pytest.mark.usefixtures("few_resamples")
def test_every_command_says_the_same(study: str) -> None:
    with Store.open("study.db", create=False) as store:
        panel = read_panel(store, Scope("eligibility", "eligibility"))
        words = [one.word for one in available_references(panel)] + (
            panel.people[:1] if study == "two" else []
        )
        assert words, "each study has something to hold the judges against"
        for chosen in scopes(study):
            for word in words:
                same(store, word, chosen)


def same(store: Store, word: str, chosen: str | None) -> None:
    panel = read_panel(store, Scope("eligibility", "eligibility", chosen))
    reference = resolve(panel, word)
    assert reference is not None
    # The labels: of the panel, and of what corrects a paper's means and tells conformal sets what is true.
    codes = panel.labels_of(reference.name).tolist()
    mine = {u: panel.domain[c] for u, c in zip(panel.ratings.units, codes, strict=True) if c != MISSING}
    assert ReferenceLabels(store, word, chosen).labels("eligibility", "eligibility.v2") == mine
    report = build(store, ReportOptions(task="eligibility", reference=word, batch=chosen))
    # annotate agreement and the report: every two of judges, people, majority and references.
    short = {panel.shown[one["run"]]: one["name"] for one in report.facts["judges"]}
    found: dict[Any, Any] = {}
    cut = panel.drop_undrawn()
    for m in analyse(cut, resolve(cut, word), interval=None).measures:
        found[named(m, short)] = told(m)
    compared = 0
    for section, m in report.measures():
        if section in ("judges", "ceiling") and named(m, {}) in found:
            assert told(m) == pytest.approx(found[named(m, {})]), (word, section, m.annotators)
            compared += 1
    assert compared >= 4
    plans(word, chosen, cut, report)
    papers(store, word, chosen, report)
    judges(store, word, chosen, report)


def plans(word: str, chosen: str | None, panel: Any, report: Document) -> None:
    """annotate plan, from a pilot and of a verdict."""
    given = ("plan", "--field", "eligibility", "-d", "study.db", "--reference", word)
    given += ("--batch", chosen) if chosen else ()
    pilot = document(*given, "--width", "0.2")
    reference = resolve(panel, word)
    assert reference is not None
    [kappa] = panel.measure([panel.judges[0], reference.name], ["cohen_kappa"], interval=None)
    assert (pilot["design"]["value"], pilot["design"]["n_units"]) == (
        pytest.approx(kappa.value),
        kappa.n_units,
    )
    verdicts = document(*given, "--verdict")["judges"]
    for plan, ruling in zip(verdicts, report.rulings, strict=True):
        assert plan["decision"] == ruling.decision
        assert [(c["name"], c["state"], c["value"], c["n_units"]) for c in plan["conditions"]] == [
            (c.name, c.state, c.value, c.n_units) for c in ruling.conditions
        ]
        # (a), or the threshold in its place, is the verdict's first measure.
        first = next(c for c in plan["conditions"] if c["name"] in ("non_inferiority", "threshold"))
        assert (first["value"], first["n_units"]) == (ruling.measures[0].value, ruling.measures[0].n_units)


def papers(store: Store, word: str, chosen: str | None, report: Document) -> None:
    """judge score --reference, and the report's corrected numbers."""
    for parts, measure in ((("eligibility",), "eligibility"), (("factuality",), "factuality")):
        asked = ScoreRequest(models=("a",), system="m", parts=parts, partial=True)
        if chosen is not None:
            continue  # the report alone takes the labels of one batch
        result = score(store, PAPERS["garage"], asked, reference=word, interval=None)
        assert result.correction is not None
        mine = result.correction.measures.get(measure)
        if mine is None:
            assert measure == "factuality"
            continue
        row = cells(report, "corrected_1").get(measure)
        assert row is not None, measure
        assert [told(m) for m in row[:3]] == [told(mine.judge_only), told(mine.human_only), told(mine.ppi)]
        assert row[3] == mine.lam


def judges(store: Store, word: str, chosen: str | None, report: Document) -> None:
    """The report's comparison of judges, annotate agreement, judge compare and score compare; judge runs show and gold."""
    [(name, row)] = cells(report, "judges_compared").items()
    ran = {one["name"]: one["run"] for one in report.facts["judges"]}
    second, first = name.split(" minus ")
    compared = row[0]
    # Units that were drawn with unequal probabilities have weighted values, and no intervals.
    weighted = code_of(compared.notes[0]) == "weighted"
    assert compared.value is not None and (weighted or compared.low < compared.value < compared.high)
    tested = [*bounds(compared), *row[1:3], compared.n_units, compared.n_clusters]
    panel = read_panel(store, Scope("eligibility", "eligibility", chosen)).drop_undrawn()
    [own] = analyse(panel, resolve(panel, word)).compared
    assert (panel.shown[ran[first]], panel.shown[ran[second]]) == (own.first, own.second)
    d = own.difference
    assert [*bounds(d), own.p_value, own.adjusted, d.n_units, d.n_clusters] == tested
    if chosen is not None:
        return
    found = contest.compare(store, read_panel(store, Scope("eligibility", "eligibility")), word)
    page = contest.as_json(found)
    [pair] = page["pairs"]
    assert (pair["first"], pair["second"]) == (ran[first], ran[second])
    by_compare = [pair[key] for key in ("difference", "low", "high", "p", "p_holm")]
    assert [*by_compare, page["units"], page["questions"]] == tested
    # Each one's own kappa, where both labelled the same units.
    weights = page["measure"].partition(":")[2] or None
    for one in page["runs"]:
        [kappa] = [
            m
            for section, m in report.measures()
            if section == "judges"
            and named(m, {}) == ("cohen_kappa", weights, frozenset((one["model"], found.reference.name)))
        ]
        if kappa.n_units == page["units"]:
            assert [one["kappa"], one["low"], one["high"]] == list(bounds(kappa))
    swapped = swap(store, {}, first, second, ScoreRequest(), reference=word)
    [difference] = [
        d for d in swapped.differences[f"agreement with {word}"] if "eligibility" in d.first.measure
    ]
    assert [*bounds(difference.difference), *told(difference.difference)] == [
        *bounds(compared),
        *told(compared),
    ]
    if word != "gold":
        return
    from judge.prompts import load_task
    from judge.scores.gold import compare as held

    for one in report.facts["judges"]:
        gold_measures = held(store, load_task("eligibility"), one["run"])[0].measures
        kappa = next(m for m in gold_measures if m.measure == "cohen_kappa")
        [theirs] = [
            m
            for section, m in report.measures()
            if section == "judges" and named(m, {}) == named(kappa, {"judge": one["name"]})
        ]
        assert told(kappa) == told(theirs)
