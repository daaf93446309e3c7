"""A new paper is one module and one declaration: the example in CONTRIBUTING.md computes its number."""

import re
import sys
from pathlib import Path

import pytest

from judge.paper_files import read_declaration
from judge.papers.engine.paper import ScoreRequest
from judge.papers.engine.papers import declared
from judge.papers.engine.result import score
from judge.store import Store
from tests.suites.helpers import Judge, give, import_garage

CONTRIBUTING = Path(__file__).parent.parent.parent / "CONTRIBUTING.md"


def test_the_example_of_a_paper(judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    section = CONTRIBUTING.read_text("utf-8").partition("**A paper.**")[2]
    for language, ending in (("python", "py"), ("toml", "toml")):
        [code] = re.findall(
            rf"```{language}\n(.*?)```", section.partition("**A table or a figure.**")[0], re.DOTALL
        )
        (tmp_path / f"refused_share.{ending}").write_text(code, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    paper = declared("refused_share", read_declaration(tmp_path / "refused_share.toml"), "refused_share")
    # Everything but the scores is known before the module is imported.
    assert (paper.parts[0].tasks, paper.better("refusal_rate")) == (("deflection",), -1)
    assert "refused_share" not in sys.modules
    import_garage(judge, tmp_path)
    give("deflection", {f"garage:g{n}@m@full": "missing" if n == 3 else "attempted" for n in (1, 2, 3)})
    with Store.open("study.db") as store:
        [line] = score(store, paper, ScoreRequest(system="m"), interval=None).lines
    assert (line.measure.measure, line.measure.value) == ("refusal_rate", pytest.approx(1 / 3))
    del sys.modules["refused_share"]
