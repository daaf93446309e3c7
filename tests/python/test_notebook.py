"""docs/notebook.ipynb runs in a kernel of its own, on the shipped data and a real model."""

import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.real import ROOT, require

NOTEBOOK = ROOT / "docs" / "notebook.ipynb"


@pytest.mark.real
def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require("minilm")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import nbformat
        from nbclient import NotebookClient

        shutil.copytree(ROOT / "data", tmp_path / "data")
        # Settings and connection files of kernels: none of this machine's own.
        monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
        monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
        notebook = nbformat.read(NOTEBOOK, 4)
        stored = [_html(cell) for cell in notebook.cells]
        where = {"metadata": {"path": str(tmp_path)}}
        NotebookClient(notebook, timeout=300, kernel_name="python3", resources=where).execute()
    fresh = [_html(cell) for cell in notebook.cells]
    (report,) = [html for html in fresh if "adjudge-report" in html]
    assert report.count("<svg") >= 2 and "<script" not in report
    # What is shipped is what it gives: the same cells speak, the same verdict.
    assert [bool(html) for html in fresh] == [bool(html) for html in stored]
    (shipped,) = [html for html in stored if "adjudge-report" in html]
    assert _badge(report) == _badge(shipped)
    assert (tmp_path / "notebook.db").is_file()


def _html(cell: Any) -> str:
    return "".join(str(out.get("data", {}).get("text/html", "")) for out in cell.get("outputs", []))


def _badge(html: str) -> str:
    return html.split('<span class="badge">')[1].split("</span>")[0]
