"""Calibration on planted worlds: a bias that it repairs, no signal that nothing repairs, and labels it must not see."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from judge import derive
from judge.derive.calibrate import Prior, calibrate
from judge.errors import UsageError
from judge.stats.calibrate import (
    cross_fitted,
    fit_batch,
    fit_bias,
    fit_isotonic,
    fit_temperature,
    information,
    softmax,
)
from judge.store import Store, derived
from tests.annotate.agreement_helpers import checked, judge
from tests.derive import worlds

N = 400
BIAS = (0.0, -1.0, 3.0)


def world(path: Path, signal: float = 2.0, bias: Any = BIAS, **how: Any) -> tuple[Store, derive.RunTable]:
    """400 units in 80 questions and one judge with a bias to 'neutral'."""
    truth = worlds.draw(N, **{k: v for k, v in how.items() if k == "shares"})
    store = worlds.study(path, truth, **{k: v for k, v in how.items() if k == "gold"})
    run = worlds.judged(store, "j/biased", softmax(worlds.logits(truth, signal, bias)))
    return store, derive.read_runs(store, [run])


def result(store: Store, table: derive.RunTable, method: str, prior: Prior | None = None) -> Any:
    truth = derive.reference(store, table, "stance")
    return calibrate(table, truth, "stance", method, prior, replicates=200)


def test_a_fit_finds_the_temperature_and_the_biases_that_made_the_labels() -> None:
    rng = np.random.default_rng(5)
    p = softmax(rng.normal(size=(60_000, 3)) * 2)
    made = softmax(np.log(p) / 2.5 + np.array([0.5, -0.7, 0.2]))
    y = (rng.random(len(p))[:, None] > made.cumsum(axis=1)).sum(axis=1)
    fit = fit_bias(p, y)
    # 60,000 labels: standard errors near .02.
    assert fit.temperature == pytest.approx(2.5, abs=0.1)
    assert fit.bias == pytest.approx([0.5, -0.7, 0.2], abs=0.05)
    assert np.abs(fit.apply(p) - made).max() < 0.02


def test_batch_divides_by_the_mean_and_multiplies_by_the_prior() -> None:
    p = np.array([[0.9, 0.1], [0.7, 0.3]])
    # Means .8 and .2: row 0 is proportional to .9/.8 : .1/.2 = 1.125 : .5, with prior .6 : .4 to .675 : .2.
    assert fit_batch(p, np.array([0.5, 0.5])).apply(p)[0] == pytest.approx([1.125 / 1.625, 0.5 / 1.625])
    assert fit_batch(p, np.array([0.6, 0.4])).apply(p)[0] == pytest.approx([0.675 / 0.875, 0.2 / 0.875])


def test_isotonic_pools_what_is_out_of_order() -> None:
    p = np.array([0.1, 0.2, 0.3, 0.4, 0.5])
    y = np.array([0, 1, 0, 1, 1])
    fit = fit_isotonic(np.column_stack([1 - p, p]), y)
    # 1 then 0 at .2 and .3 pool to .5; ends are kept half of one in five away from 0 and 1.
    assert fit.steps is not None
    assert fit.steps[1] == pytest.approx([0.1, 0.5, 0.5, 0.9, 0.9])
    assert fit.apply(np.array([[0.8, 0.2], [0.55, 0.45]]))[:, 1] == pytest.approx([0.5, 0.9])


def test_a_judge_that_says_nothing_gets_the_shares_of_the_labels() -> None:
    y = np.array([0] * 70 + [1] * 30)
    p = np.full((100, 2), 0.5)
    assert fit_bias(p, y).apply(p)[0] == pytest.approx([0.7, 0.3], abs=1e-3)
    # A judge that is always wrong is not turned round.
    wrong = np.where(y[:, None] == 0, [0.2, 0.8], [0.8, 0.2])
    assert fit_bias(wrong, y).apply(wrong)[0] == pytest.approx([0.7, 0.3], abs=0.01)


@pytest.mark.parametrize("method", ["bias", "batch"])
def test_a_biased_judge_is_repaired(method: str, tmp_path: Path) -> None:
    store, table = world(tmp_path / "w.db")
    found = result(store, table, method, Prior("uniform") if method == "batch" else None)
    before, after, difference = found.measures[0]
    # Planted: with the bias nearly all is 'neutral'; without it the judge's argmax of signal 2 is right in about 80 %.
    assert before.value < 0.4 and after.value > 0.6
    assert difference.low > 0.2 and found.repaired and found.has_signal
    # A third of the units is neutral; the mean of sharp probabilities shows only a part of a bias.
    assert found.shares["neutral"][0] > 0.7 and found.shares["neutral"][1] < (
        0.6 if method == "batch" else 0.42
    )
    ece = found.measures[2]
    assert ece[1].value < ece[0].value / 2


def test_nothing_repairs_a_judge_without_signal() -> None:
    """At most 4 of 40 such judges may be said to have one: two intervals that err upwards in 2.5 % each."""
    from judge.stats import Ratings, mean, measures

    said = 0
    for seed in range(40):
        truth = worlds.draw(300, seed=seed)
        p = softmax(worlds.logits(truth, 0.0, BIAS, seed=1000 + seed))
        fold = np.arange(300) // 5 % 5
        stated, _ = cross_fitted(p, truth, fold, fit_bias)
        told = mean(information(stated, truth, fold), clusters=np.arange(300) // 5, replicates=200)
        codes = np.column_stack([stated.argmax(axis=1), truth])
        table = Ratings.from_codes(codes, worlds.LABELS, ["judge", "truth"], clusters=np.arange(300) // 5)
        [kappa] = measures(table, ["cohen_kappa"], pairwise=False, replicates=200)
        said += any(m.low is not None and m.low > 0 for m in (told, kappa))
    assert said <= 4


def test_no_signal_is_said_and_nothing_is_kept(tmp_path: Path) -> None:
    store, _ = world(tmp_path / "w.db", signal=0.0)
    done = judge("calibrate", "stance", "-d", store.path)
    assert "not stored: bias calibration found no signal" in done.stdout
    assert store.conn.execute("SELECT count(*) FROM runs").fetchone() == (1,)


def test_a_weak_signal_on_few_labels_is_one_where_kappa_is_above_0(tmp_path: Path) -> None:
    """60 labels: the fit costs as many nats as the probabilities tell, and yet they put units in order."""
    truth = worlds.draw(60, (0.5, 0.5, 0.0), seed=4)
    store = worlds.study(tmp_path / "w.db", truth)
    run = worlds.judged(store, "j/weak", softmax(worlds.logits(truth, 0.9, (0, 0, -9), seed=6) / 3))
    found = result(store, derive.read_runs(store, [run]), "bias")
    assert found.signal.low is not None and found.measures[0][1].low > 0
    assert found.has_signal


def test_equal_shares_do_harm_where_one_label_is_rare(tmp_path: Path) -> None:
    """A 5 % label and a judge with no bias at all: taking equal shares for granted lowers kappa, the true ones do not."""
    store, table = world(tmp_path / "w.db", 3.0, (-1.5, 0, 0), shares=(0.05, 0.475, 0.475))
    assumed = result(store, table, "batch")
    known = result(store, table, "batch", Prior("given", (0.05, 0.475, 0.475)))
    assert assumed.measures[0][2].high < 0
    assert known.measures[0][1].value > assumed.measures[0][1].value + 0.05
    done = judge("calibrate", "stance", "--method", "batch", "-d", store.path)
    assert (
        "the result is shown but not recommended" in done.stdout
        and "not stored: the label shares" in done.stdout
    )


def test_a_temperature_changes_no_label_and_mends_the_calibration(tmp_path: Path) -> None:
    truth = worlds.draw(N)
    store = worlds.study(tmp_path / "w.db", truth)
    sharp = softmax(4 * worlds.logits(truth, 2.0))
    table = derive.read_runs(store, [worlds.judged(store, "j/sharp", sharp)])
    found = result(store, table, "temperature")
    assert (found.made.codes == table.labels("stance").codes[:, 0]).all()
    # Logits of noise 1 and signal 2 ask for a slope of 2; these are 4 times as steep: T = 4 / 2.
    assert found.fit.temperature == pytest.approx(2.0, abs=0.4)
    assert found.measures[2][1].value < found.measures[2][0].value
    assert fit_temperature(sharp, truth).temperature == pytest.approx(found.fit.temperature, abs=0.05)


def test_a_questions_own_labels_never_reach_what_labels_it(tmp_path: Path) -> None:
    store, table = world(tmp_path / "w.db")
    truth = derive.reference(store, table, "stance")
    assert truth is not None
    first = calibrate(table, truth, "stance", "bias", interval=None)
    numbers, names = table.questions
    mine = numbers == names.index("w:7")
    turned = derive.Truth("gold", table, truth.domain, np.where(mine, (truth.codes + 1) % 3, truth.codes))
    second = calibrate(table, turned, "stance", "bias", interval=None)
    a, b = first.made.probabilities, second.made.probabilities
    assert a is not None and b is not None
    assert (a[mine] == b[mine]).all()
    fold = truth.deal_folds(5)
    # The same fold is fitted without it, all others with it.
    same = fold == fold[mine][0]
    assert (a[same] == b[same]).all() and (np.abs(a[~same] - b[~same]).max(axis=1) > 0).all()


def test_the_sealed_test_is_neither_fitted_on_nor_counted(tmp_path: Path) -> None:
    store, table = world(tmp_path / "w.db")
    judge("split", "stance", "-d", store.path)
    truth = derive.reference(store, table, "stance")
    assert truth is not None
    found = calibrate(table, truth, "stance", "bias", interval=None)
    sealed = {
        q for q, part in store.conn.execute("SELECT question_id, part FROM split_questions") if part == "test"
    }
    assert found.fitted is not None and sealed and not sealed & set(found.fitted.folds)
    assert found.fitted.units == found.measures[0][0].n_units == N - 5 * len(sealed)
    numbers, names = table.questions
    inside = np.isin(np.array(names, dtype=object)[numbers], list(sealed))
    turned = derive.Truth("gold", table, truth.domain, np.where(inside, (truth.codes + 1) % 3, truth.codes))
    again = calibrate(table, turned, "stance", "bias", interval=None)
    assert found.made.probabilities is not None and again.made.probabilities is not None
    assert (found.made.probabilities == again.made.probabilities).all()
    assert found.measures[0][1].value == again.measures[0][1].value
    assert store.conn.execute("SELECT count(*) FROM split_looks").fetchone() == (0,)


def test_the_command_keeps_a_run_once_and_says_what_it_did(tmp_path: Path) -> None:
    store, _ = world(tmp_path / "w.db")
    document = checked(judge("calibrate", "stance", "-d", store.path, "--json").stdout)
    assert document["method"] == "bias" and document["improved"] and document["reference"] == "gold"
    run = document["run_id"]
    assert checked(judge("calibrate", "stance", "-d", store.path, "--json").stdout)["known"]
    shown = json.loads(judge("runs", "show", run, "-d", store.path, "--json").stdout)
    kappa = next(m for m in shown["fields"][0]["measures"] if m["measure"] == "cohen_kappa")
    # Cross-fitted labels are the run's labels: what was shown is what the run has.
    assert kappa["value"] == pytest.approx(document["measures"][0]["after"]["value"])
    assert derived.folds(store.conn, run).keys() == {f"w:{q}" for q in range(80)}
    told = judge("calibrate", "stance", "-d", store.path).stdout
    assert "agreement with 'gold' rose" in told and f"already in the study as run {run}" in told
    refused = judge("calibrate", "stance", "--run", run, "-d", store.path, code=2)
    assert "already fitted on labels" in refused.stderr


def test_without_labels_batch_is_kept_where_the_shares_are_given(tmp_path: Path) -> None:
    store, _ = world(tmp_path / "w.db", gold=False)
    done = judge("calibrate", "stance", "-d", store.path)
    assert "no labels to compare with" in done.stdout and "not stored: the label shares" in done.stdout
    kept = judge("calibrate", "stance", "--prior", "support=.3,refute=.3,neutral=.4", "-d", store.path)
    assert "stored as run" in kept.stdout


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--prior", "support=.5"), "the shares of support, refute, neutral must add up to 1"),
        (("--prior", "yes=.5"), "uniform, gold, or a share between 0 and 1"),
        (("--prior", "uniform", "--method", "bias"), "--prior requires --method batch"),
        (("--method", "isotonic"), "--method isotonic"),
        (("--run", "nobody"), "no run is called 'nobody'"),
        (("--reference", "ann"), "--reference ann"),
        (("--field", "role"), "has no field 'role'"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(options: tuple[str, ...], told: str, tmp_path: Path) -> None:
    store, _ = world(tmp_path / "w.db")
    method = () if "--method" in options or "--prior" not in options else ("--method", "batch")
    done = judge("calibrate", "stance", *options, *method, "-d", store.path, code=2)
    assert told in done.stderr and len(done.stderr.splitlines()) == 1


def test_a_run_without_probabilities_says_so(tmp_path: Path) -> None:
    truth = worlds.draw(40)
    store = worlds.study(tmp_path / "w.db", truth)
    worlds.judged(store, "j/plain", np.eye(3)[truth], plain=True)
    done = judge("calibrate", "stance", "-d", store.path, code=2)
    assert "has no label probabilities" in done.stderr
    table = derive.read_runs(store, ["last"])
    with pytest.raises(UsageError, match="has no label probabilities"):
        calibrate(table, None, "stance", "batch")


def test_a_fit_on_some_of_very_many_units_takes_them_from_all_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.stats.calibrate.ENOUGH", 1_000)
    # Two passages a question, the first always of one label, the second of the other: every second unit would be one label.
    codes = np.tile([0, 1], 1_000)
    p = np.random.default_rng(0).dirichlet([5, 5], size=2_000)
    shares = fit_bias(p, codes).apply(p).mean(axis=0)
    assert shares == pytest.approx([0.5, 0.5], abs=0.06)
