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
