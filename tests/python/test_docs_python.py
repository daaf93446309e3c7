"""The Python blocks of docs/python.md run as they stand, in order, with the commands between them."""

import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from adjudge import Outcome, Report
from tests.cli.helpers import Done
from tests.real import ROOT
from tests.test_docs import blocks

PAGE = ROOT / "docs" / "python.md"


def test_the_page_runs_as_it_stands(
    tmp_path: Path, judge: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(ROOT / "data", tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks(PAGE.read_text("utf-8")):
        if block.kind == "python":
            exec(compile("\n" * block.line + block.body, str(PAGE), "exec"), names)
        elif block.is_run:
            for command in block.commands:
                judge(*shlex.split(command)[1:], code=block.code)
    report, compared, scores = names["report"], names["compared"], names["scores"]
    assert isinstance(report, Report) and isinstance(compared, Outcome)
    assert (tmp_path / "report.html").is_file() and (tmp_path / "compared.html").is_file()
    # What the page says of it: an undefined value is missing, with a reason.
    undefined = scores[scores["value"].isna()]  # type: ignore[index]
    assert len(scores) > 5 and undefined["reason"].notna().all()  # type: ignore[arg-type]
