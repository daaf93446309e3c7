"""judge models: list, check."""

from pathlib import Path

import pytest

from tests.cli.helpers import Judge, checked, write_rows


def test_list_says_what_each_needs(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {r["vendor"]: r for r in checked(judge("models", "show", "--json").out, "models")["rows"]}
    assert set(rows) >= {"anthropic", "llamacpp", "openai", "scripted"}
    assert not set(rows) & {"base", "http", "tokens"}, "helpers are no vendors"
    assert (rows["openai"]["ready"], rows["openai"]["needs"]) == (False, "OPENAI_API_KEY in the environment")
    assert rows["scripted"]["ready"] is True
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    done = judge("models", "show", "--json")
    rows = {r["vendor"]: r for r in checked(done.out, "models")["rows"]}
    assert rows["openai"]["ready"] is True
    assert "sk-canary" not in done.out + done.err


def test_check(judge: Judge) -> None:
    document = checked(judge("models", "show", "scripted/first", "--json").out, "model_check")
    assert (document["status"], document["label"], document["answers"]) == ("ok", "support", "json")
    assert document["provider"] == {"script": "first"}
    codes = checked(
        judge("models", "show", "scripted/hash", "--option", "logprobs=1", "--json").out, "model_check"
    )
    assert (codes["answers"], codes["label_probabilities"]) == ("codes", True)
    bad = checked(judge("models", "show", "scripted/garbage", "--json").out, "model_check")
    assert (bad["status"], bad["label"]) == ("unparsed", None)
    assert bad["reason"]
    assert "status: ok" in judge("models", "show", "scripted/first").out


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["nobody/x"], 2, "openai, openai-decisions, scripted"),
        (["openai"], 2, "must have the form vendor/name"),
        (["openai/m"], 3, "OPENAI_API_KEY"),
        (["openai/m", "--base-url", "http://127.0.0.1:9"], 3, "127.0.0.1:9"),
        (["llamacpp/no-such-file.gguf"], 2, "no-such-file.gguf"),
    ],
)
def test_what_cannot_be_asked(judge: Judge, args: list[str], code: int, words: str) -> None:
    done = judge("models", "show", *args, code=code)
    assert words in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        "run stance",
        "answers generate qa_answer --context none",
        "pairs build",
        "distractors generate",
        "suite garage",
        "drift stance",
        "probe stance",
        "improve stance",
    ],
)
def test_a_command_that_asks_a_model_needs_one(judge: Judge, tmp_path: Path, words: str) -> None:
    judge("items", "import", "jsonl", write_rows(tmp_path / "pairs.jsonl"))
    err = judge(*words.split(), code=2).err
    assert "-m" in err and ". to try" not in err
