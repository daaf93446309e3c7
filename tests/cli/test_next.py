"""Each command of the first steps prints the next one, which works as printed for a file of the user's own."""

import json
import shlex
from pathlib import Path

import pytest

import annotate.cli
from tests.real import require
from tests.suites.helpers import Judge


def typed(text: str, start: str) -> list[str]:
    """The words of the first line that begins so, without the program."""
    line = next(line for line in text.splitlines() if line.startswith(start))
    return shlex.split(line.partition(": ")[2])[1:]


def rows(path: Path) -> Path:
    data = [
        {"id": n, "question": f"How old is town {n}?", "passages": [f"Town {n} is old.", "Tea is hot."]}
        for n in range(3)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in data), "utf-8")
    return path


@pytest.mark.real
def test_from_a_file_to_the_labelling_screen(
    judge: Judge, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    require("embedded-model")
    imported = judge("items", "import", rows(tmp_path / "mine.jsonl"))
    run = judge(*typed(imported.err, "next: "))
    words = typed(run.out, "then: ")
    assert words[:6] == ["batches", "new", "pilot", "relevant", "-n", "6"]
    with pytest.raises(SystemExit) as ended:
        annotate.cli.main(words, prog_name="annotate")
    assert not ended.value.code
    assert "annotate open pilot --as me" in capsys.readouterr().err


def test_claims_are_offered_as_whole_questions(judge: Judge, tmp_path: Path) -> None:
    judge("items", "import", rows(tmp_path / "mine.jsonl"))
    answers = [
        {"id": f"mine:{n}", "system": "m", "text": "Old.", "claims": ["One.", "Two."]} for n in range(3)
    ]
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in answers), "utf-8")
    judge("systems", "import", path)
    run = judge("run", "claim_support", "-m", "scripted/hash")
    words = typed(run.out, "then: ")
    assert words[3:6] == ["claim_support", "--by-question", "3"]


def test_the_suite_of_a_second_data_set_is_named(
    judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two files with ids: each is a data set of its own, and the printed suite is one that runs."""
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        rows = [f'q{n},Who?,"[""He did.""]",He {name}.' for n in range(3)]
        (tmp_path / f"{name}.csv").write_text(
            "\n".join(["id,question,contexts,answer", *rows]) + "\n", "utf-8"
        )
    assert "--dataset" not in judge("items", "import", "one.csv").err
    told = judge("items", "import", "two.csv").err
    assert "there are answers in 2 data sets (one, two)" in told
    [line] = [line for line in told.splitlines() if "judge suite faithfulness" in line]
    words = line.partition("next: judge ")[2].split()
    assert words[-2:] == ["--dataset", "two"]
    judge(*[word.replace("MODEL", "scripted/hash") for word in words])
