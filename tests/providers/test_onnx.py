"""ONNX classifiers that read two texts: their classes as labels with probabilities, batches, what is refused."""

import asyncio
import json
import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from onnx import TensorProto

from judge.errors import MissingExtra, Rejected, UsageError
from judge.parse import Parsed
from judge.prompts import load_task
from judge.prompts.pair import PairRenderer
from judge.providers import base, sessions
from judge.providers.onnx import Provider
from judge.providers.sessions import SessionBatches
from judge.runner.plan import RunReport
from judge.runner.requests import Asker, Sampling
from judge.types import Unit
from tests.loopback.calls import running
from tests.providers.onnx_models import by_word, folder
from tests.runner.helpers import make_study, plan, run, select

NLI = {"labels": {"entailment": "support", "contradiction": "refute", "neutral": "neutral"}}
NAMES = ["entailment", "neutral", "contradiction"]
# "hot" is a point for entailment, "cold" two for contradiction, and nothing else says anything.
WEIGHTS = by_word(hot=[1, 0, 0], cold=[0, 0, 2])


def nli(tmp_path: Path, **more: Any) -> Path:
    return folder(tmp_path / "nli", WEIGHTS, NAMES, NLI, **more)


def opened(path: Path, **options: str) -> Provider:
    provider = Provider(str(path), base.Settings(options={"threads": "1", **options}))
    asyncio.run(provider.open())
    return provider


async def judged(path: Path, *texts: str) -> tuple[Path, RunReport]:
    """A study of these passages beside the model, and the report of a run over it."""
    db = make_study(path.parent / "s.db", texts)
    async with running(base.get(f"onnx/{path}", base.Settings(options={"threads": "1"}))) as provider:
        return db, await run(db, provider, plan(sampling=Sampling()))


def answered(provider: Provider, task: str = "stance", **inputs: str) -> Parsed:
    """The parsed answer for one unit."""
    asker = Asker(load_task(task), "m", provider, Sampling())
    request, _ = asker.request(Unit("u", inputs, {}), 0)
    return asker.accept(asyncio.run(provider.complete(request)), request)


def softmax(*numbers: float) -> list[float]:
    powers = [math.exp(x) for x in numbers]
    return [p / sum(powers) for p in powers]


async def test_classes_become_labels_with_probabilities(tmp_path: Path) -> None:
    db, report = await judged(nli(tmp_path), "tea is hot", "tea is cold", "tea")
    assert report.ended == {"ok": 3}
    rows = select(
        db,
        "SELECT value, distribution FROM labels WHERE field = 'stance' AND annotator_id <> 'gold' ORDER BY unit_id",
    )
    assert [value for value, _ in rows] == ["support", "refute", "support"]
    # The claim "Tea is hot." holds one "hot" itself (the tokens: [UNK] is hot [UNK]): entailment 2, 1 and 1.
    masses = [json.loads(stored) for _, stored in rows]
    for mass, logits in zip(masses, [(2, 0, 0), (1, 0, 2), (1, 0, 0)], strict=True):
        entailed, neutral, against = softmax(*logits)
        wanted = {"support": entailed, "refute": against, "neutral": neutral, "unassigned": 0.0}
        assert mass == pytest.approx(wanted, abs=1e-6)
    assert list(masses[0]) == ["support", "refute", "neutral", "unassigned"], "in the task's order"
    ((options, facts),) = select(db, "SELECT options, provider FROM runs")
    assert json.loads(options)["mode"] == "pair"
    assert str(tmp_path) not in facts, "no path of this machine is stored"


async def test_a_batch_gives_what_single_calls_give(tmp_path: Path) -> None:
    provider = Provider(str(nli(tmp_path)), base.Settings(options={"threads": "1"}))
    await provider.open()
    asker = Asker(load_task("stance"), "m", provider, Sampling())
    texts = ["hot " * n + "cold " * (n % 3) for n in range(1, 40)]
    requests = [asker.request(Unit(t, {"claim": "is tea", "passage": t}, {}), 0)[0] for t in texts]
    alone = [await provider.complete(r) for r in requests]
    together = await asyncio.gather(*(provider.complete(r) for r in requests))
    for single, other in zip(alone, together, strict=True):
        assert single.tokens is not None and other.tokens is not None
        assert single.tokens[0].alternatives == pytest.approx(other.tokens[0].alternatives, abs=1e-6)
    assert {r.text for r in alone} == {"support", "refute"}


async def test_those_who_wait_are_worked_on_together() -> None:
    sizes: list[int] = []

    def work(batch: Sequence[int]) -> list[int]:
        sizes.append(len(batch))
        return [n * n for n in batch]

    batches = SessionBatches[int, int](work, lambda n: n)
    assert await asyncio.gather(*(batches.get_result(n) for n in range(100))) == [n * n for n in range(100)]
    assert sum(sizes) == 100
    assert max(sizes) == sessions.BATCH
    assert len(sizes) <= 8, "64 at once, in sixteens: four batches and three"


async def test_an_error_in_a_batch_is_its_own_units_and_the_others_have_their_answers() -> None:
    def work(batch: Sequence[int]) -> list[int]:
        if 0 in batch:
            raise ValueError("no zero")
        return list(batch)

    batches = SessionBatches[int, int](work, lambda n: n)
    results = await asyncio.gather(*(batches.get_result(n) for n in (2, 0, 1)), return_exceptions=True)
    assert results[::2] == [2, 1]
    assert isinstance(results[1], ValueError)
    assert await batches.get_result(5) == 5


async def test_a_cancelled_call_leaves_the_others(tmp_path: Path) -> None:
    batches = SessionBatches[int, int](lambda batch: list(batch), lambda n: n)
    gone, kept = asyncio.create_task(batches.get_result(1)), asyncio.create_task(batches.get_result(2))
    await asyncio.sleep(0)
    gone.cancel()
    assert await kept == 2


def test_a_reranker_says_yes_above_its_threshold(tmp_path: Path) -> None:
    classes = {
        "labels": {"yes": "relevant", "no": "not_relevant"},
        "order": ["statement", "evidence"],
        "threshold": 1.5,
    }
    provider = opened(folder(tmp_path / "one", by_word(tea=[1.0]), (), classes))
    facts = {}
    for text in ("tea", "tea tea", "cold"):
        (answer,) = answered(provider, "relevant", question="tea", passage=text).labels
        assert answer.distribution is not None
        facts[text] = (answer.value, answer.distribution.probabilities["relevant"])
    # Logits 2, 3 and 1 (the question's own "tea" counts), less 1.5.
    assert {t: v for t, (v, _) in facts.items()} == {
        "tea": "relevant",
        "tea tea": "relevant",
        "cold": "not_relevant",
    }
    assert facts["tea"][1] == pytest.approx(1 / (1 + math.exp(-0.5)), abs=1e-6)


def test_several_classes_stand_for_one_label_and_null_for_none(tmp_path: Path) -> None:
    classes = {"labels": {"entailment": "support", "neutral": "neutral", "contradiction": "neutral"}}
    path = folder(tmp_path / "a", WEIGHTS, NAMES, classes)
    (answer,) = answered(opened(path), claim="tea", passage="cold").labels
    entailed, neutral, against = softmax(0, 0, 2)
    assert answer.distribution is not None
    assert answer.distribution.probabilities == pytest.approx(
        {"support": entailed, "refute": 0.0, "neutral": neutral + against}, abs=1e-6
    )
    (path / "classes.json").write_text(json.dumps({"labels": {**classes["labels"], "contradiction": None}}))
    parsed = answered(opened(path), claim="tea", passage="cold")
    assert [a.distribution for a in parsed.labels] == [None], "most of the mass is on a class without a label"
    assert "do not represent a label" in (parsed.reason or "")


async def test_long_evidence_is_cut_the_claim_is_kept_and_it_is_said(tmp_path: Path) -> None:
    db, report = await judged(nli(tmp_path, most=12), "filler " * 50 + "cold cold cold")
    ((value,),) = select(db, "SELECT value FROM labels WHERE field = 'stance'")
    assert value == "support", "the claim's own 'hot' is read, and the end of the passage is not"
    assert report.notes[-1:] == ("1 pairs were longer than 12 tokens, so their evidence was truncated",)


@pytest.mark.parametrize(
    ("classes", "says"),
    [
        (
            {"labels": {"entailment": "support", "neutral": "neutral"}},
            "'contradiction'",
        ),
        ({"labels": {**NLI["labels"], "other": None}}, "the model has no class 'other'"),
        ({"labels": {}}, "'labels' must map"),
        ({"labels": {"entailment": 1}}, "'entailment' must be"),
        ({**NLI, "order": ["evidence"]}, "'order' must be"),
        ({**NLI, "threshold": "much"}, "'threshold'"),
        ({**NLI, "treshold": 1}, "unknown key 'treshold'"),
        ([], "not a JSON object"),
        (None, "no such file"),
    ],
)
def test_a_file_of_classes_that_cannot_be_used(tmp_path: Path, classes: Any, says: str) -> None:
    path = folder(tmp_path / "m", WEIGHTS, NAMES, classes)
    with pytest.raises(UsageError, match=says):
        opened(path)


def test_labels_that_the_task_has_not_are_refused(tmp_path: Path) -> None:
    provider = opened(nli(tmp_path))
    with pytest.raises(UsageError, match=r"class 'entailment' is mapped to 'support', but relevant.v2"):
        Asker(load_task("relevant"), "m", provider, Sampling())


@pytest.mark.parametrize(
    ("sampling", "says"),
    [
        (Sampling(answers="json"), "--answers json"),
        (Sampling(orders=2), "--label-order"),
        (Sampling(label_order="reversed"), "--label-order"),
    ],
)
def test_what_only_a_prompt_could_say_is_refused(tmp_path: Path, sampling: Sampling, says: str) -> None:
    provider = opened(nli(tmp_path))
    with pytest.raises(UsageError, match=says):
        Asker(load_task("stance"), "m", provider, sampling)
    with pytest.raises(UsageError, match="--guidelines"):
        Asker(load_task("stance").with_guidelines(), "m", provider, Sampling())


@pytest.mark.parametrize("task", ["mirage_support", "verdict", "qa_answer"])
def test_tasks_that_are_no_pair_are_refused(task: str) -> None:
    with pytest.raises(UsageError, match="a model that compares two texts"):
        PairRenderer(load_task(task))


def test_a_pair_is_a_claim_and_its_passages() -> None:
    shown = PairRenderer(load_task("claim_support")).render(
        {"answer_claim": "Tea is hot.", "context": [{"marker": "a", "title": "Tea", "text": "Hot."}, "Cold."]}
    )
    assert [(m.role, m.content) for m in shown.messages] == [
        ("statement", "Tea is hot."),
        ("evidence", "Tea\nHot.\n\nCold."),
    ]
    titled = PairRenderer(load_task("stance")).render({"claim": "c", "passage": "p", "passage_title": "t"})
    assert titled.messages[1].content == "t\np", "as judge retrieve shows it"


def test_another_mapping_or_other_weights_are_another_judge(tmp_path: Path) -> None:
    first = opened(nli(tmp_path)).describe()["content"]
    other = folder(tmp_path / "b", by_word(hot=[2, 0, 0], cold=[0, 0, 2]), NAMES, NLI)
    assert opened(other).describe()["content"] != first
    (tmp_path / "turned.json").write_text(json.dumps({**NLI, "order": ["statement", "evidence"]}))
    turned = opened(nli(tmp_path), classes=str(tmp_path / "turned.json")).describe()["content"]
    assert turned != first

    path = nli(tmp_path)
    (path / "model.onnx_data").write_bytes(b"weights beside the model")
    beside = opened(path).describe()["content"]
    assert beside != first
    (path / "model.onnx_data").unlink()
    _words(path, hot=9, cold=8)
    assert opened(path).describe()["content"] not in (first, beside)
    assert Provider(str(path), base.Settings()).describe()["content"], "known before it is opened"


def _words(path: Path, **numbers: int) -> None:
    """Give words of the tokenizer other numbers."""
    tokenizer = json.loads((path / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"].update(numbers)
    (path / "tokenizer.json").write_text(json.dumps(tokenizer))


def test_a_model_that_wants_small_integers(tmp_path: Path) -> None:
    path = nli(tmp_path, kind=TensorProto.INT32)
    assert answered(opened(path), claim="tea", passage="cold").labels[0].value == "refute"


def test_an_empty_passage_is_a_unit_like_others(tmp_path: Path) -> None:
    assert answered(opened(nli(tmp_path)), claim="hot", passage="").labels[0].value == "support"


async def test_a_model_that_fails_fails_its_unit_and_is_not_asked_again(tmp_path: Path) -> None:
    path = nli(tmp_path)
    _words(path, filler=99)  # beyond the table of weights: the model itself refuses it
    db, report = await judged(path, "tea is hot", "filler")
    assert report.ended == {"ok": 1, "failed": 1}
    ((reason,),) = select(db, "SELECT reason FROM judgements WHERE status = 'failed'")
    assert reason.startswith("onnxruntime: ")


def test_folders_and_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such folder"):
        Provider(str(tmp_path / "gone"), base.Settings())
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(UsageError, match=r"--option model=FILE"):
        Provider(str(empty), base.Settings())
    path = nli(tmp_path)
    with pytest.raises(UsageError, match=r"no file other.onnx"):
        Provider(str(path), base.Settings(options={"model": "other.onnx"}))
    with pytest.raises(UsageError, match="onnx has no option 'treads'"):
        Provider(str(path), base.Settings(options={"treads": "1"}))
    (path / "model.onnx").write_bytes(b"no model")
    with pytest.raises(Rejected, match="onnxruntime cannot load it"):
        opened(path)
    (path / "tokenizer.json").write_text("{}")
    with pytest.raises(Rejected, match="not a tokenizer file"):
        opened(path)


def test_the_libraries_are_loaded_when_a_model_is_opened_and_not_before(tmp_path: Path) -> None:
    code = (
        "import sys; from judge.providers import base; import judge.providers.embedded; "
        f"base.get('onnx/{nli(tmp_path)}'); base.get('embedded/minilm'); "
        "print(sorted({'onnxruntime', 'tokenizers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_without_the_extra_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = nli(tmp_path)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtra, match=r"pip install 'adjudge\[onnx\]'"):
        opened(path)
