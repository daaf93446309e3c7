"""The notebooks of docs/ run in a kernel of their own, on the shipped data; notebook.ipynb asks a real model."""

import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.real import ROOT, require

DOCS = ROOT / "docs"


def run(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], list[str]]:
    """What each cell shows as HTML: as it is shipped, and when it is run in this folder."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import nbformat
        from nbclient import NotebookClient

        shutil.copytree(ROOT / "data", folder / "data")
        # Settings and connection files of kernels: none of this machine's own.
        monkeypatch.setenv("IPYTHONDIR", str(folder / "ipython"))
        monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(folder / "runtime"))
        notebook = nbformat.read(DOCS / name, 4)
        stored = [_html(cell) for cell in notebook.cells]
        where = {"metadata": {"path": str(folder)}}
        NotebookClient(notebook, timeout=300, kernel_name="python3", resources=where).execute()
    return stored, [_html(cell) for cell in notebook.cells]


@pytest.mark.real
def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require("minilm")
    stored, fresh = run("notebook.ipynb", tmp_path, monkeypatch)
    (report,) = [html for html in fresh if "adjudge-report" in html]
    assert report.count("<svg") >= 2 and "<script" not in report
    # What is shipped is what it gives: the same cells speak, the same verdict.
    assert [bool(html) for html in fresh] == [bool(html) for html in stored]
    (shipped,) = [html for html in stored if "adjudge-report" in html]
    assert _badge(report) == _badge(shipped)
    assert (tmp_path / "notebook.db").is_file()


@pytest.mark.real
def test_three_systems_in_a_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No model is asked, so every table is the one that is shipped; its numbers are worked out in test_systems.py."""
    stored, fresh = run("systems.ipynb", tmp_path, monkeypatch)
    assert fresh == stored
    assert sum("<table" in html for html in fresh) >= 5


def _html(cell: Any) -> str:
    return "".join(str(out.get("data", {}).get("text/html", "")) for out in cell.get("outputs", []))


def _badge(html: str) -> str:
    return html.split('<span class="badge">')[1].split("</span>")[0]
