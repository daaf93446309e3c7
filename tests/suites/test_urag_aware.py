"""URAG's second pass: what is shown, what it changes, and what is refused. Numbers are derived beside them."""

import shlex
from pathlib import Path
from typing import Any

import pytest

from judge.runner import second
from judge.store import Store
from tests.answers.helpers import column
from tests.formats import urag
from tests.suites.helpers import Judge, commands, give, outputs, score
from tests.suites.test_urag import URAG, WITH, distributed, study

__all__ = ["study"]
AWARE = (*URAG, "--part", "aware")
# p(A) the second time. Right are A (t1) and B (t2); what calibrates is as at first.
AGAIN = {**WITH, "t1": 0.8, "t2": 0.1}


def first_run() -> str:
    result: str = column("SELECT run_id FROM runs WHERE json_extract(options, '$.context') = 'all'")[0]
    return result


def asked_again(kind: str, labels: dict[str, str] | None = None) -> str:
    options = {"context": f"all+{kind}-aware", "system": "m", "shown": f"{first_run()}:{kind}"}
    given = {f"u:{item}": "A" if a > 0.5 else "B" for item, a in AGAIN.items()}
    run = give("urag_aware", given | (labels or {}), options=options)
    rest = {**dict.fromkeys("CDEFGHIJ", 0.0), "unassigned": 0.0}
    distributed(run, {f"u:{item}": {"A": a, "B": 1 - a, **rest} for item, a in AGAIN.items()})
    return run


@pytest.mark.parametrize("kind", ["self", "wrong"])
def test_what_a_second_pass_changes(judge: Judge, study: None, kind: str) -> None:
    message = commands(judge, *AWARE, "--aware", kind)
    assert len(message) == 1 and f"urag_aware -m m --context all --shown {first_run()}:{kind}" in message[0]
    asked_again(kind)
    result = score(judge, *AWARE, "--aware", kind)
    # Calibrated as at first: LAC holds p >= 0.8, APS what adds up to 0.8 at most.
    # t1 (A 0.8, right): LAC {A}, APS {A}. t2 (B 0.9, right): LAC {B}, APS {}. At first: accuracy and size 0.5.
    expected = {
        "accuracy": 0.5,
        "coverage": 0.25,
        "set_size": 0.5,
        f"accuracy_{kind}_aware": 1.0,
        f"coverage_{kind}_aware": 0.75,
        f"set_size_{kind}_aware": 0.75,
        f"accuracy_{kind}_aware_change": 0.5,
        f"set_size_{kind}_aware_change": 0.25,
    }
    assert {name: result.value(name) for name in result.names} == pytest.approx(expected)
    assert result[f"set_size_{kind}_aware_change"]["n_units"] == 2


def test_what_failed_at_first_is_no_success_later(judge: Judge, study: None) -> None:
    run = first_run()
    with Store.open("study.db") as store, store.transaction() as conn:
        conn.execute("DELETE FROM labels WHERE annotator_id = ? AND unit_id = 'u:t2'", [run])
        conn.execute("UPDATE judgements SET status = 'refused' WHERE run_id = ? AND unit_id = 'u:t2'", [run])
    again = asked_again("self")
    with Store.open("study.db") as store, store.transaction() as conn:
        for name in ("labels WHERE annotator_id", "judgements WHERE run_id"):
            conn.execute(f"DELETE FROM {name} = ? AND unit_id = 'u:t2'", [again])
    result = score(judge, *AWARE, "--aware", "self")
    # t1 is right both times; t2 was refused, and so had nothing to be shown: wrong both times.
    for name in ("accuracy", "accuracy_self_aware"):
        assert (result.value(name), result[name]["n_units"]) == (0.5, 2), name
    assert (result.value("accuracy_self_aware_change"), result["set_size_self_aware_change"]["n_units"]) == (
        0,
        1,
    )


def test_what_is_shown_is_plain_and_tells_no_gold(judge: Judge, study: None) -> None:
    run = first_run()
    with Store.open("study.db") as store:
        shown, wrong = (second.read_probabilities(store, f"{run}:{kind}").texts for kind in ("self", "wrong"))
    # c1: A is right with 0.9. c2: B is right with 0.6. t2: B is right with 0.3; A leads, and is exchanged all the same.
    assert (shown["u:c1"], wrong["u:c1"]) == ("A. 0.900\nB. 0.100", "A. 0.100\nB. 0.900")
    assert (shown["u:c2"], wrong["u:c2"]) == ("A. 0.400\nB. 0.600", "A. 0.600\nB. 0.400")
    assert (shown["u:t2"], wrong["u:t2"]) == ("A. 0.700\nB. 0.300", "A. 0.300\nB. 0.700")
    generate = f"answers generate urag_aware -m scripted/hash --context all --shown {run}:wrong --estimate"
    prompt = judge(*shlex.split(generate), "--where", "item_id = 'u:c1'").out
    block = prompt.partition("options:\n")[2].partition("\nAnswer:")[0]
    # Nothing beside it of what the first pass gave or what is right.
    assert "A. 0.100\nB. 0.900" in block and prompt.count("0.900") == 1 and "correct" not in prompt


@pytest.mark.parametrize(
    ("masses", "lowest", "second_highest"),
    [
        ({"A": 0.5, "B": 0.3, "C": 0.2}, {"A": 0.2, "B": 0.3, "C": 0.5}, {"A": 0.3, "B": 0.5, "C": 0.2}),
        ({"A": 0.2, "B": 0.3, "C": 0.5}, {"A": 0.5, "B": 0.3, "C": 0.2}, {"A": 0.2, "B": 0.5, "C": 0.3}),
        # Of two with the same the first counts, and equal ones are not exchanged.
        ({"A": 0.4, "B": 0.4, "C": 0.2}, {"A": 0.2, "B": 0.4, "C": 0.4}, None),
        ({"A": 1.0}, None, None),
        ({"A": 0.5, "B": 0.5}, None, None),
    ],
)
def test_the_highest_and_the_lowest_or_the_second_are_exchanged(
    masses: dict[str, float], lowest: dict[str, float] | None, second_highest: dict[str, float] | None
) -> None:
    assert second.exchange(masses) == lowest
    assert second.exchange(masses, second=True) == second_highest


def test_a_second_pass_step_by_step(judge: Judge, tmp_path: Path) -> None:
    judge("items", "import", "urag", urag(tmp_path / "urag.json"))
    words = ("urag", "-m", "scripted/hash", "--alpha", "0.5", "--part", "aware", "--aware", "self")
    judge("suite", "urag", "-m", "scripted/hash", "--option", "logprobs=1", "--part", "sets")
    [line] = commands(judge, *words)
    judge(*shlex.split(line)[1:], "--option", "logprobs=1")
    assert score(judge, *words)["accuracy_self_aware_change"]["coverage"] == 1.0
    runs = column("SELECT json_extract(options, '$.context') FROM runs ORDER BY 1")
    assert runs == ["all", "all+self-aware"]


def test_both_passes_of_ones_own_system_are_imported(judge: Judge, study: None, tmp_path: Path) -> None:
    def given(p: dict[str, float], condition: str) -> None:
        rows: list[dict[str, Any]] = [{"id": i, "probabilities": {"A": a, "B": 1 - a}} for i, a in p.items()]
        outputs(judge, tmp_path, rows, "--system", "own", "--condition", condition)

    given(WITH, "all")
    aware = (*AWARE, "--system", "own", "--aware", "self")
    assert "judge systems import FILE --system own --condition self-aware" in judge("score", *aware).out
    given(AGAIN, "self-aware")
    result = score(judge, *aware)
    # As in the run with the same probabilities.
    assert result.value("accuracy_self_aware_change") == 0.5
    assert result.value("set_size_self_aware_change") == pytest.approx(0.25)


def test_what_a_second_pass_needs(judge: Judge, study: None) -> None:
    run = first_run()
    generate = ("answers", "generate", "urag_aware", "-m", "m", "--context", "all")
    assert (
        "RUN:self, RUN:wrong or RUN:wrong-second"
        in judge(*generate[:-3], "scripted/hash", *generate[-2:], "--shown", f"{run}:x", code=2).err
    )
    words = ("answers", "generate", "urag_choice", "-m", "scripted/hash", "--context", "all")
    assert "does not show option probabilities" in judge(*words, "--shown", f"{run}:self", code=2).err
    words = ("answers", "generate", "urag_aware", "-m", "scripted/hash", "--context", "all")
    assert "--shown RUN:self" in judge(*words, code=2).err
    assert "--aware self" in judge("score", *AWARE, code=2).err
    distributed(run, {f"u:{name}": None for name in WITH})
    assert "--shown" in judge("score", *AWARE, "--aware", "self", code=2).err


def test_the_second_most_probable_option_is_a_reading_of_its_own(judge: Judge, study: None) -> None:
    [line] = commands(judge, *AWARE, "--aware", "wrong-second")
    assert f"--shown {first_run()}:wrong-second" in line
